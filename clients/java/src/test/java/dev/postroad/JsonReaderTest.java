package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonReaderTest {
    @Test
    void readsEveryKindOfValue() {
        Object read = JsonReader.read(" {\"a\" : [1, -2.5, true, false, null, \"x\"],\r\n\t\"b\":{}, \"c\":[ ]} ");
        assertEquals(Map.of(
                "a", Arrays.asList(1L, new BigDecimal("-2.5"), true, false, null, "x"),
                "b", Map.of(),
                "c", List.of()), read);
    }

    @Test
    void readsEscapesAndSurrogates() {
        assertEquals("\"\\/\b\f\n\r\tA", JsonReader.read("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\""));
        assertEquals("🎉🎉", JsonReader.read("\"🎉\\ud83C\\uDf89\""));
        assertEquals("\ud83c!", JsonReader.read("\"\\ud83c!\""));
    }

    @Test
    void keepsNumbersAsTheyWereSaid() {
        assertEquals(0L, JsonReader.read("-0"));
        assertEquals(999999999999999999L, JsonReader.read("999999999999999999"));
        assertEquals(new BigDecimal("12345678901234567890123"), JsonReader.read("12345678901234567890123"));
        assertEquals(new BigDecimal("1E+400"), JsonReader.read("1e400"));
        assertEquals(new BigDecimal("0.10"), JsonReader.read("0.10"));
    }

    @Test
    void takesTheLastOfTwoMembersWithOneName() {
        assertEquals(Map.of("a", 2L), JsonReader.read("{\"a\":1,\"a\":2}"));
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "", " ", "{", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:1}",
        "\"", "\"\\", "\"\\u12\"", "\"\\u12g4\"", "\"\\u١١١١\"", "\"\\x\"", "\"a\nb\"", "'a'", "tru", "True", "nul",
        "NaN", "Infinity", "01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1", "1 1", "{}{}", "// x\n1", "\u00a01", "\0", "1\0",
        "1e99999999999", "\ufeff1"})
    void refusesWhatIsNoJson(String text) {
        assertThrows(JsonException.class, () -> JsonReader.read(text));
    }

    @Test
    void refusesBytesThatAreNoUtf8() {
        for (byte[] bytes : List.of(
                new byte[] {'"', (byte) 0xff, '"'},
                new byte[] {'"', (byte) 0xc0, (byte) 0xaf, '"'},
                new byte[] {'"', (byte) 0xed, (byte) 0xa0, (byte) 0x80, '"'},
                "\"x\"".getBytes(StandardCharsets.UTF_16))) {
            assertThrows(JsonException.class, () -> JsonReader.read(bytes));
        }
    }

    @Test
    void boundsDepthAndDigits() {
        int most = JsonReader.DEEPEST;
        JsonReader.read("[".repeat(most) + 1 + "]".repeat(most));
        assertThrows(JsonException.class, () -> JsonReader.read("[".repeat(most + 1) + 1 + "]".repeat(most + 1)));
        assertThrows(JsonException.class, () -> JsonReader.read("[".repeat(4 << 20)));
        assertThrows(JsonException.class, () -> JsonReader.read("{\"a\":".repeat(1 << 20)));
        assertThrows(JsonException.class, () -> JsonReader.read("9".repeat(4 << 20)));
        assertThrows(JsonException.class, () -> JsonReader.read("0." + "9".repeat(4 << 20)));
    }
}
