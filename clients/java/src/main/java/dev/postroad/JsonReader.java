package dev.postroad;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads JSON as RFC 8259 has it, and nothing more lenient. Values become a {@link Map} in the order
 * of the text, {@link List}, {@link String}, {@link Long} or (with a fraction, an exponent, or too
 * large) {@link BigDecimal}, {@link Boolean} or null. Of members with the same name the last counts.
 */
final class JsonReader {
    static final int DEEPEST = 100; // so that no text can exhaust the stack
    static final int LONGEST_NUMBER = 1000; // reading digits takes time in the square of their number

    private static final Pattern NUMBER =
            Pattern.compile("-?(?:0|[1-9][0-9]*+)(\\.[0-9]++)?([eE][+-]?[0-9]++)?");

    private final String text;
    private final Matcher number;
    private int at;

    private JsonReader(String text) {
        this.text = text;
        this.number = NUMBER.matcher(text);
    }

    static Object read(byte[] utf8) {
        try {
            // Unlike new String(…), a new decoder does not put up with bytes that are no UTF-8.
            return read(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(utf8)).toString());
        } catch (CharacterCodingException e) {
            throw new JsonException("it is not UTF-8");
        }
    }

    static Object read(String text) {
        JsonReader reader = new JsonReader(text);
        Object value = reader.value(0);
        if (reader.next() != 0) {
            throw reader.wrong();
        }
        return value;
    }

    private Object value(int depth) {
        if (depth > DEEPEST) {
            throw new JsonException("it is nested too deeply");
        }
        switch (next()) {
            case '{':
                return object(depth);
            case '[':
                return array(depth);
            case '"':
                return string();
            case 't':
                return word("true", true);
            case 'f':
                return word("false", false);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> members = new LinkedHashMap<>();
        at++;
        if (accept('}')) {
            return members;
        }
        do {
            if (next() != '"') {
                throw wrong();
            }
            String name = string();
            expect(':');
            members.put(name, value(depth + 1));
        } while (accept(','));
        expect('}');
        return members;
    }

    private List<Object> array(int depth) {
        List<Object> elements = new ArrayList<>();
        at++;
        if (accept(']')) {
            return elements;
        }
        do {
            elements.add(value(depth + 1));
        } while (accept(','));
        expect(']');
        return elements;
    }

    private String string() {
        StringBuilder value = new StringBuilder();
        for (at++; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == '"') {
                at++;
                return value.toString();
            }
            if (c < ' ') {
                throw wrong();
            }
            value.append(c == '\\' ? escape() : c);
        }
        throw wrong();
    }

    /** The character of an escape; leaves the reader on its last character. */
    private char escape() {
        at++;
        char c = at < text.length() ? text.charAt(at) : 0;
        int simple = "\"\\/bfnrt".indexOf(c);
        if (simple >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(simple);
        }
        if (c != 'u' || at + 4 >= text.length()) {
            throw wrong();
        }
        int unit = 0;
        for (int i = 0; i < 4; i++) {
            at++;
            int digit = text.charAt(at) < 128 ? Character.digit(text.charAt(at), 16) : -1;
            if (digit < 0) {
                throw wrong();
            }
            unit = unit * 16 + digit;
        }
        return (char) unit;
    }

    private Number number() {
        number.region(at, text.length());
        if (!number.lookingAt()) {
            throw wrong();
        }
        String digits = number.group();
        if (digits.length() > LONGEST_NUMBER) {
            throw new JsonException("a number is too long");
        }
        at = number.end();
        boolean whole = number.group(1) == null && number.group(2) == null;
        try {
            return whole && digits.length() <= 18 ? (Number) Long.valueOf(digits) : new BigDecimal(digits);
        } catch (NumberFormatException e) {
            throw new JsonException("a number is too large"); // an exponent beyond those of BigDecimal
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong();
        }
        at += word.length();
        return value;
    }

    /** The next character that is not white space, which stays unread; 0 at the end. */
    private char next() {
        while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        if (at < text.length() && text.charAt(at) == 0) {
            throw wrong();
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean accept(char c) {
        if (next() != c) {
            return false;
        }
        at++;
        return true;
    }

    private void expect(char c) {
        if (!accept(c)) {
            throw wrong();
        }
    }

    private JsonException wrong() {
        return new JsonException(at >= text.length() ? "the JSON ends too early" : "no JSON at character " + at);
    }
}
