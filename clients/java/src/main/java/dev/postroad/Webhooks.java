package dev.postroad;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Tells requests that Postroad has sent from those of strangers, and reads them. */
public final class Webhooks {
    static final Duration TOLERANCE = Duration.ofSeconds(300);
    private static final Pattern SECONDS = Pattern.compile("[0-9]{1,15}");

    private Webhooks() {
    }

    /**
     * Whether a request was signed with the secret, at most 300 seconds from now.
     *
     * @param rawBody the body's bytes as they came, not JSON that was read and written again
     * @param header the value of {@code Service-Signature}, or null when the request has none
     * @param secret the whole secret, {@code whsec_} included
     * @return true if the request may be trusted
     */
    public static boolean verify(byte[] rawBody, String header, String secret) {
        return verify(rawBody, header, secret, TOLERANCE);
    }

    /**
     * Whether a request was signed with the secret, at most {@code tolerance} from now.
     *
     * @param rawBody the body's bytes as they came, not JSON that was read and written again
     * @param header the value of {@code Service-Signature}, or null when the request has none
     * @param secret the whole secret, {@code whsec_} included
     * @param tolerance how far the time of the signature may be away, in whole seconds
     * @return true if the request may be trusted
     */
    public static boolean verify(byte[] rawBody, String header, String secret, Duration tolerance) {
        return verify(rawBody, header, secret, tolerance, Instant.now());
    }

    /**
     * The same with another clock, for tests.
     *
     * @param rawBody the body's bytes as they came, not JSON that was read and written again
     * @param header the value of {@code Service-Signature}, or null when the request has none
     * @param secret the whole secret, {@code whsec_} included
     * @param tolerance how far the time of the signature may be away, in whole seconds
     * @param now what takes the place of the clock
     * @return true if the request may be trusted
     */
    public static boolean verify(byte[] rawBody, String header, String secret, Duration tolerance, Instant now) {
        if (header == null || secret == null || secret.isEmpty()) {
            return false;
        }
        List<String> times = new ArrayList<>();
        List<String> signatures = new ArrayList<>();
        for (String part : header.split(",")) {
            String[] pair = part.split("=", 2);
            String value = pair.length == 2 ? pair[1] : "";
            if (pair[0].equals("t")) {
                times.add(value);
            } else if (pair[0].equals("v1")) {
                signatures.add(value);
            }
        }
        if (times.size() != 1 || !SECONDS.matcher(times.get(0)).matches()) {
            return false;
        }
        if (Math.abs(now.getEpochSecond() - Long.parseLong(times.get(0))) > tolerance.toSeconds()) {
            return false;
        }
        // A signature that is no 64 hex digits cannot be equal, so it needs no check of its own.
        byte[] expected = bytes(HexFormat.of().formatHex(sign(times.get(0), rawBody, secret)));
        boolean genuine = false;
        for (String signature : signatures) {
            genuine |= MessageDigest.isEqual(expected, bytes(signature));
        }
        return genuine;
    }

    /**
     * The event of a request that was signed with the secret, at most 300 seconds from now.
     *
     * @param rawBody the body's bytes as they came, not JSON that was read and written again
     * @param header the value of {@code Service-Signature}, or null when the request has none
     * @param secret the whole secret, {@code whsec_} included
     * @return the event
     * @throws SignatureVerificationException if the request is not to be trusted
     * @throws IllegalArgumentException if it was signed, but is no event
     */
    public static Event parseEvent(byte[] rawBody, String header, String secret) {
        return parseEvent(rawBody, header, secret == null ? List.of() : List.of(secret), TOLERANCE);
    }

    /**
     * The event of a request that was signed with one of the secrets, at most {@code tolerance} from now.
     *
     * @param rawBody the body's bytes as they came, not JSON that was read and written again
     * @param header the value of {@code Service-Signature}, or null when the request has none
     * @param secrets the secrets of which one has to match
     * @param tolerance how far the time of the signature may be away, in whole seconds
     * @return the event
     * @throws SignatureVerificationException if the request is not to be trusted
     * @throws IllegalArgumentException if it was signed, but is no event
     */
    public static Event parseEvent(byte[] rawBody, String header, List<String> secrets, Duration tolerance) {
        return parseEvent(rawBody, header, secrets, tolerance, Instant.now());
    }

    /**
     * The same with another clock, for tests.
     *
     * @param rawBody the body's bytes as they came, not JSON that was read and written again
     * @param header the value of {@code Service-Signature}, or null when the request has none
     * @param secrets the secrets of which one has to match
     * @param tolerance how far the time of the signature may be away, in whole seconds
     * @param now what takes the place of the clock
     * @return the event
     * @throws SignatureVerificationException if the request is not to be trusted
     * @throws IllegalArgumentException if it was signed, but is no event
     */
    public static Event parseEvent(
            byte[] rawBody, String header, List<String> secrets, Duration tolerance, Instant now) {
        if (secrets.stream().noneMatch(secret -> verify(rawBody, header, secret, tolerance, now))) {
            String text = "the webhook request was not signed with this secret, or not recently";
            throw PostroadException.of(Failure.noResponse(Failure.INVALID_SIGNATURE, text, null), null, 1);
        }
        try {
            if (JsonReader.read(rawBody) instanceof Map<?, ?> members) {
                return Event.from(new Members(members));
            }
        } catch (JsonException e) {
            throw new IllegalArgumentException("the body is signed, but is not an event: " + e.getMessage());
        }
        throw new IllegalArgumentException("the body is signed, but is not an event: it is no JSON object");
    }

    private static byte[] sign(String time, byte[] rawBody, String secret) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(bytes(secret), "HmacSHA256"));
            mac.update(bytes(time + "."));
            return mac.doFinal(rawBody);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e); // every Java has HmacSHA256, and takes any key
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
