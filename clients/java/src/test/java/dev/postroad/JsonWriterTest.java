package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonWriterTest {
    @Test
    void writesEveryKindOfValue() {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("a", Arrays.asList(1, 2L, (short) 3, 1.5, true, null, "x"));
        members.put("b", Map.of());
        members.put("c", List.of());
        members.put("d", new BigInteger("12345678901234567890123"));
        assertEquals("{\"a\":[1,2,3,1.5,true,null,\"x\"],\"b\":{},\"c\":[],\"d\":12345678901234567890123}",
                JsonWriter.write(members));
    }

    @Test
    void escapesWhatMustBe() {
        assertEquals("\"\\\"\\\\/\\u0000\\u000a\\u001f\u007f\u2028é🎉\"", JsonWriter.write("\"\\/\0\n\u001f\u007f\u2028é🎉"));
    }

    @Test
    void keepsHalvesOfSurrogatePairs() {
        for (String text : List.of("\ud83c", "a\ud83cb", "\udf89", "\udf89\ud83c", "\ud83c\ud83c\udf89", "🎉\udf89")) {
            assertEquals(text, JsonReader.read(JsonWriter.write(text).getBytes(StandardCharsets.UTF_8)));
        }
    }

    @Test
    void writesNumbersThatTheReaderReadsBack() {
        for (Number number : List.of(0, -1, Long.MIN_VALUE, Double.MIN_VALUE, Double.MAX_VALUE, 1e21, 0.1f)) {
            String written = JsonWriter.write(number);
            assertEquals(new BigDecimal(number.toString()), new BigDecimal(written));
            assertEquals(written, JsonReader.read(written).toString());
        }
    }

    @Test
    void refusesWhatJsonCannotSay() {
        List<Object> itself = new ArrayList<>();
        itself.add(itself);
        for (Object value : List.of(Double.NaN, Float.POSITIVE_INFINITY, new Object(), Map.of(1, 2), new int[0], itself)) {
            assertThrows(IllegalArgumentException.class, () -> JsonWriter.write(value));
        }
    }
}
