package dev.postroad;

import java.net.URI;
import java.net.URISyntaxException;
import java.time.Duration;
import java.util.regex.Pattern;

/**
 * Checks of what an application gives, made before there is a request. They keep a value from
 * becoming another header or another path; everything else is left to the server, which explains
 * better. No message quotes a value, since it may be a secret.
 */
final class Arguments {
    private static final Pattern ID = Pattern.compile("[A-Za-z0-9_-]+");
    private static final Pattern PRINTABLE_ASCII = Pattern.compile("[ -~]+");

    private Arguments() {
    }

    static <T> T given(String name, T value) {
        if (value == null) {
            throw new IllegalArgumentException(name + " is missing");
        }
        return value;
    }

    /** The URL without the slash at its end, so that a path can be added. */
    static URI baseUrl(String text) {
        URI url;
        try {
            url = new URI(given("the base URL", text).replaceFirst("/+$", ""));
        } catch (URISyntaxException e) {
            // Its message has the URL, and so perhaps a password: it is not passed on.
            throw new IllegalArgumentException("the base URL is no URL");
        }
        if (!"http".equalsIgnoreCase(url.getScheme()) && !"https".equalsIgnoreCase(url.getScheme())) {
            throw new IllegalArgumentException("the base URL must begin with http:// or https://");
        }
        if (url.getRawUserInfo() != null || url.getRawQuery() != null || url.getRawFragment() != null) {
            throw new IllegalArgumentException("the base URL must have no user, no query and no fragment");
        }
        if (url.getHost() == null) {
            throw new IllegalArgumentException("the base URL needs a host: letters, digits, '-' and '.', or an IP address");
        }
        if (url.getPort() == 0 || url.getPort() > 65535) {
            throw new IllegalArgumentException("the port of the base URL must be 1 to 65535");
        }
        return url;
    }

    static String id(String id) {
        if (!ID.matcher(given("id", id)).matches()) {
            throw new IllegalArgumentException("a message id is letters, digits, '_' and '-'");
        }
        return id;
    }

    static String headerValue(String name, String value) {
        if (!PRINTABLE_ASCII.matcher(value).matches()) {
            throw new IllegalArgumentException(name + " must be printable ASCII, and not empty");
        }
        return value;
    }

    static String username(String username) {
        if (notEmpty("username", username).indexOf(':') >= 0) {
            throw new IllegalArgumentException("username must not have a colon");
        }
        return username;
    }

    static String notEmpty(String name, String value) {
        if (given(name, value).isEmpty()) {
            throw new IllegalArgumentException(name + " is empty");
        }
        return value;
    }

    static Duration positive(String name, Duration duration) {
        if (given(name, duration).isNegative() || duration.isZero()) {
            throw new IllegalArgumentException(name + " must be more than nothing");
        }
        return duration;
    }

    static Duration notNegative(String name, Duration duration) {
        if (given(name, duration).isNegative()) {
            throw new IllegalArgumentException(name + " must not be negative");
        }
        return duration;
    }
}
