package dev.postroad;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.regex.Pattern;

/** Reads the header {@code Retry-After}. */
final class RetryAfter {
    private static final Pattern SECONDS = Pattern.compile("[0-9]+");
    private static final int MOST_DIGITS = 15; // thirty million years

    private RetryAfter() {
    }

    /** How long to wait: from a number of seconds or an HTTP date to come; null for anything else. */
    static Duration parse(String value, Instant now) {
        if (SECONDS.matcher(value).matches()) {
            String digits = value.replaceFirst("^0+(?=.)", "");
            return Duration.ofSeconds(Long.parseLong(
                    digits.length() > MOST_DIGITS ? "9".repeat(MOST_DIGITS) : digits));
        }
        try {
            Instant date = ZonedDateTime.parse(value, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
            return date.isAfter(now) ? Duration.between(now, date) : null;
        } catch (DateTimeException e) {
            return null;
        }
    }
}
