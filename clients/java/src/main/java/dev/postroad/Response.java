package dev.postroad;

import java.net.http.HttpHeaders;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.function.Function;

/** A whole response of a server, which may be Postroad or something that stands before it. */
record Response(int status, HttpHeaders headers, byte[] body) {
    private static final int LONGEST_QUOTE = 200;

    /** What {@code shape} makes of a success; a failure for every other response. */
    <T> T read(Function<Members, T> shape, Instant now) throws Failure {
        Members members = null;
        String problem = null;
        try {
            members = members();
            if (status >= 200 && status < 300) {
                return shape.apply(members);
            }
        } catch (JsonException e) {
            problem = e.getMessage();
        }
        String code = stringOf(members, "code");
        String header = headers.firstValue("X-Request-ID").orElse(null);
        String requestId = stringOf(members, "request_id") != null ? stringOf(members, "request_id") : header;
        Duration retryAfter = headers.firstValue("Retry-After").map(v -> RetryAfter.parse(v, now)).orElse(null);
        if (status >= 400 && code != null && !code.isEmpty()) {
            String error = stringOf(members, "error");
            throw new Failure(status, code, error == null ? "no reason was given" : error, requestId, retryAfter, null);
        }
        throw new Failure(status, Failure.UNEXPECTED_RESPONSE, unexpected(problem), requestId, retryAfter, null);
    }

    private Members members() {
        if (status == 204) {
            return new Members(Map.of());
        }
        if (body.length == 0) {
            throw new JsonException("it is empty");
        }
        if (body.length > BoundedBody.LIMIT) {
            throw new JsonException("it is longer than 4 MiB");
        }
        if (JsonReader.read(body) instanceof Map<?, ?> members) {
            return new Members(members);
        }
        throw new JsonException("it is no JSON object");
    }

    private String unexpected(String problem) {
        String location = headers.firstValue("Location").orElse(null);
        if (status >= 300 && status < 400 && location != null) {
            return "a redirect to " + quote(location) + "; redirects are not followed";
        }
        return "Postroad does not respond like this"
                + (problem == null ? "" : ": " + problem)
                + (body.length == 0 ? "" : ": " + quote(new String(body, StandardCharsets.UTF_8)));
    }

    /** The beginning of a stranger's text, on one line. */
    static String quote(String text) {
        // Cut first, and with room for blanks that fall together: the text may have megabytes.
        String line = text.substring(0, Math.min(text.length(), 8 * LONGEST_QUOTE))
                .replaceAll("[\\p{Cntrl}\\s]+", " ").strip();
        return line.codePoints().limit(LONGEST_QUOTE)
                .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append).toString();
    }

    private static String stringOf(Members members, String name) {
        try {
            return members == null ? null : members.string(name);
        } catch (JsonException e) {
            return null; // in an error, a member of another type counts as none
        }
    }
}
