package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RetryAfterTest {
    @ParameterizedTest
    @CsvSource({"0, 0", "7, 7", "007, 7", "86400, 86400", "999999999999999, 999999999999999"})
    void readsSeconds(String value, long seconds) {
        assertEquals(Duration.ofSeconds(seconds), RetryAfter.parse(value, FakeTiming.START));
    }

    @Test
    void readsAnyNumberOfDigits() {
        Duration longest = Duration.ofSeconds(999_999_999_999_999L);
        assertEquals(longest, RetryAfter.parse("9".repeat(5000), FakeTiming.START));
        assertEquals(Duration.ofSeconds(5), RetryAfter.parse("0".repeat(5000) + "5", FakeTiming.START));
    }

    @Test
    void readsDatesToCome() {
        assertEquals(Duration.ofSeconds(90), RetryAfter.parse("Sat, 31 Jan 2026 12:01:30 GMT", FakeTiming.START));
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "", " ", "-1", "+1", "1.5", "1e3", "0x10", "١", "1 s", "soon", "2026-01-31T12:01:30Z",
        "Sat, 31 Jan 2026 12:00:00 GMT", "Fri, 30 Jan 2026 12:00:00 GMT", "Sat, 32 Jan 2026 12:00:00 GMT"})
    void takesAnythingElseAsNone(String value) {
        assertNull(RetryAfter.parse(value, FakeTiming.START));
    }
}
