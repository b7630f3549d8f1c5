package dev.postroad;

import java.math.BigDecimal;
import java.util.HexFormat;
import java.util.Map;

/** Writes strings, numbers, booleans, null, iterables, and maps with string keys as JSON. */
final class JsonWriter {
    private final StringBuilder out = new StringBuilder();

    private JsonWriter() {
    }

    /** The JSON; an {@link IllegalArgumentException} if it cannot say a value. */
    static String write(Object value) {
        JsonWriter writer = new JsonWriter();
        writer.value(value, 0);
        return writer.out.toString();
    }

    private void value(Object value, int depth) {
        if (depth > JsonReader.DEEPEST) {
            throw new IllegalArgumentException("a value is nested too deeply");
        }
        if (value == null || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof String text) {
            string(text);
        } else if (value instanceof Number number) {
            number(number);
        } else if (value instanceof Map<?, ?> members) {
            object(members, depth);
        } else if (value instanceof Iterable<?> elements) {
            array(elements, depth);
        } else {
            throw new IllegalArgumentException("JSON has no " + value.getClass().getName());
        }
    }

    private void object(Map<?, ?> members, int depth) {
        String separator = "{";
        for (Map.Entry<?, ?> member : members.entrySet()) {
            if (!(member.getKey() instanceof String name)) {
                throw new IllegalArgumentException("a key in JSON is a string");
            }
            out.append(separator);
            string(name);
            out.append(':');
            value(member.getValue(), depth + 1);
            separator = ",";
        }
        out.append(members.isEmpty() ? "{}" : "}");
    }

    private void array(Iterable<?> elements, int depth) {
        out.append('[');
        String separator = "";
        for (Object element : elements) {
            out.append(separator);
            value(element, depth + 1);
            separator = ",";
        }
        out.append(']');
    }

    private void number(Number number) {
        try {
            out.append(new BigDecimal(number.toString()));
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("JSON has no number " + number);
        }
    }

    private void string(String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || isLone(text, i)) {
                out.append("\\u").append(HexFormat.of().toHexDigits(c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    /** Half of a surrogate pair; UTF-8 has no bytes for it, and Java would write a question mark. */
    private static boolean isLone(String text, int i) {
        char c = text.charAt(i);
        if (Character.isHighSurrogate(c)) {
            return i + 1 == text.length() || !Character.isLowSurrogate(text.charAt(i + 1));
        }
        return Character.isLowSurrogate(c) && (i == 0 || !Character.isHighSurrogate(text.charAt(i - 1)));
    }
}
