package dev.postroad;

import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Makes the requests of the resources: paths, queries, bodies, and the retries that each may have. */
final class Api {
    /** The members that lead to the next page, and the filters that they become. */
    private static final Map<String, String> NEXT_PAGES = Map.of("next_cursor", "cursor", "next_before", "before");

    private final String baseUrl;
    private final Transport transport;
    private final Retries retries;
    private final Timing timing;

    Api(String baseUrl, Transport transport, Retries retries, Timing timing) {
        this.baseUrl = baseUrl;
        this.transport = transport;
        this.retries = retries;
        this.timing = timing;
    }

    /** A part of a path of any characters. One of "." or ".." is another path to whoever normalizes it. */
    static String segment(String name) {
        if (name == null || name.isEmpty() || name.equals(".") || name.equals("..")) {
            throw new IllegalArgumentException("a name in a path is not empty, and not \".\" or \"..\"");
        }
        return "/" + encode(name);
    }

    Map<String, Object> get(String path) {
        return call("GET", path, null, true, Members::map);
    }

    /** A request with this body, or without one when it is null, and a member of the response. */
    Map<String, Object> call(String method, String path, Map<String, ?> body, String member) {
        return call(method, path, body, false, members -> members.requiredMap(member));
    }

    /** The same with a reader of the response. A POST is repeated only if it is harmless. */
    <T> T call(String method, String path, Map<String, ?> body, boolean isHarmless, Function<Members, T> shape) {
        URI uri = URI.create(baseUrl + path);
        byte[] json = body == null ? null : JsonWriter.write(body).getBytes(StandardCharsets.UTF_8);
        Retries.Attempt attempt = limit -> transport.exchange(method, uri, json, null, limit);
        boolean isRepeatable = isHarmless || !method.equals("POST");
        return retries.run(null, isRepeatable, attempt, response -> response.read(shape, timing.now()));
    }

    void delete(String path) {
        call("DELETE", path, null, true, Members::map);
    }

    /** The items of a list, page after page; the next page is read when it is needed. */
    Iterable<Map<String, Object>> pages(String path, String name, Map<String, ?> filters) {
        return () -> new Pages(path, name, filters);
    }

    private static String query(Map<String, ?> query) {
        String text = query.entrySet().stream()
                .map(each -> encode(each.getKey()) + "=" + encode(text(each.getValue())))
                .collect(Collectors.joining("&"));
        return text.isEmpty() ? "" : "?" + text;
    }

    private static String text(Object value) {
        return value instanceof Instant || value instanceof Number ? value.toString() : (String) value;
    }

    private static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private final class Pages implements Iterator<Map<String, Object>> {
        private final String path;
        private final String name;
        private final Map<String, Object> query;
        private Iterator<Map<String, Object>> items = List.<Map<String, Object>>of().iterator();
        private boolean isLast;

        Pages(String path, String name, Map<String, ?> filters) {
            this.path = path;
            this.name = name;
            this.query = new LinkedHashMap<>(filters);
        }

        @Override
        public boolean hasNext() {
            while (!items.hasNext() && !isLast) {
                call("GET", path + query(query), null, true, this::read);
            }
            return items.hasNext();
        }

        @Override
        public Map<String, Object> next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            return items.next();
        }

        private Pages read(Members page) {
            items = page.objects(name, Members::map).iterator();
            isLast = true;
            NEXT_PAGES.forEach((member, filter) -> {
                if (page.string(member) != null) {
                    isLast = false;
                    query.put(filter, page.string(member));
                }
            });
            return this;
        }
    }
}
