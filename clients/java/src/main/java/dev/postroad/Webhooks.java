package dev.postroad;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Tells requests that Postroad has sent from those of strangers. */
public final class Webhooks {
    private static final Duration TOLERANCE = Duration.ofSeconds(300);
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
