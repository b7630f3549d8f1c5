package dev.postroad;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * The members of a JSON object by name and type. One that is missing or null is empty; one of
 * another type is a {@link JsonException}.
 */
final class Members {
    private final Map<?, ?> members;

    Members(Map<?, ?> members) {
        this.members = members;
    }

    /** The object as it came. */
    Map<String, Object> map() {
        Map<String, Object> map = new LinkedHashMap<>();
        members.forEach((name, value) -> map.put((String) name, value));
        return Collections.unmodifiableMap(map);
    }

    Map<String, Object> requiredMap(String name) {
        if (members.get(name) == null) {
            throw new JsonException("it has no " + name);
        }
        return object(name).map();
    }

    /** The list of objects that has to be there. */
    List<Map<String, Object>> requiredMaps(String name) {
        if (members.get(name) == null) {
            throw new JsonException("it has no " + name);
        }
        return objects(name, Members::map);
    }

    /** A string that must be there and say something. */
    String required(String name) {
        String value = string(name);
        if (value == null || value.isEmpty()) {
            throw new JsonException("it has no " + name);
        }
        return value;
    }

    String string(String name) {
        return typed(name, members.get(name), String.class);
    }

    Integer integer(String name) {
        Long value = typed(name, members.get(name), Long.class);
        if (value != null && value != value.intValue()) {
            throw new JsonException(name + " is too large");
        }
        return value == null ? null : value.intValue();
    }

    /** False when it is missing. */
    boolean flag(String name) {
        return Boolean.TRUE.equals(typed(name, members.get(name), Boolean.class));
    }

    /** An object without members when it is missing. */
    Members object(String name) {
        Map<?, ?> value = typed(name, members.get(name), Map.class);
        return new Members(value == null ? Map.of() : value);
    }

    Instant time(String name) {
        String value = string(name);
        try {
            return value == null ? null : OffsetDateTime.parse(value).toInstant();
        } catch (DateTimeException e) {
            throw new JsonException(name + " is no time");
        }
    }

    List<String> strings(String name) {
        return list(name, each -> element(name, each, String.class));
    }

    /** The same where one string may stand alone. */
    List<String> oneOrMoreStrings(String name) {
        return members.get(name) instanceof String one ? List.of(one) : strings(name);
    }

    <T> List<T> objects(String name, Function<Members, T> shape) {
        return list(name, each -> shape.apply(new Members(element(name, each, Map.class))));
    }

    Map<String, String> stringMap(String name) {
        Map<String, String> map = new LinkedHashMap<>();
        Map<?, ?> values = typed(name, members.get(name), Map.class);
        if (values != null) {
            values.forEach((key, value) -> map.put((String) key, element(name, value, String.class)));
        }
        return Collections.unmodifiableMap(map);
    }

    private <T> List<T> list(String name, Function<Object, T> element) {
        List<T> list = new ArrayList<>();
        List<?> values = typed(name, members.get(name), List.class);
        if (values != null) {
            values.forEach(value -> list.add(element.apply(value)));
        }
        return Collections.unmodifiableList(list);
    }

    private static <T> T element(String name, Object value, Class<T> type) {
        if (value == null) {
            throw new JsonException(name + " holds a null");
        }
        return typed(name, value, type);
    }

    private static <T> T typed(String name, Object value, Class<T> type) {
        if (value != null && !type.isInstance(value)) {
            throw new JsonException(name + " has the wrong type");
        }
        return type.cast(value);
    }
}
