package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class WebhooksTest {
    private static final String BOUNCED = "{\"id\":\"evt_1\",\"type\":\"email.bounced\",\"created_at\":\"2026-01-31T12:00:03.811Z\","
            + "\"new\":[],\"data\":{\"email_id\":\"em_1\",\"recipient_id\":\"rcp_1\",\"to\":\"bounce@example.net\","
            + "\"from\":\"bounces@example.com\",\"subject\":\"Hello\",\"smtp_code\":550,\"smtp_response\":\"5.1.1 user unknown\"}}";
    private static final String SIGNATURE = "t=1769860803,v1=826887d96b1a6922d5101358616473de3bb3e31fcf882eeef492daf484103c1c";

    @Test
    void agreesWithEveryVector() throws IOException {
        Path file = Path.of("..", "conformance", "webhook-signatures.json");
        Map<?, ?> document = (Map<?, ?>) JsonReader.read(Files.readAllBytes(file));
        for (Object each : (List<?>) document.get("vectors")) {
            Map<?, ?> vector = (Map<?, ?>) each;
            boolean genuine = Webhooks.verify(
                    Base64.getDecoder().decode((String) vector.get("body_base64")),
                    (String) vector.get("header"),
                    (String) vector.get("secret"),
                    Duration.ofSeconds((Long) vector.get("tolerance")),
                    Instant.ofEpochSecond((Long) vector.get("now")));
            assertEquals(vector.get("valid"), genuine, (String) vector.get("name"));
        }
    }

    @Test
    void readsAnEvent() {
        Event event = parse(BOUNCED, SIGNATURE, "whsec_another", "", "whsec_1");
        assertEquals(new Event("evt_1", "email.bounced", Instant.parse("2026-01-31T12:00:03.811Z"), new Event.Data(
                "em_1", "rcp_1", "bounce@example.net", "bounces@example.com", "Hello", 550, "5.1.1 user unknown", false)), event);
    }

    @Test
    void refusesAForgedEvent() {
        assertThrows(SignatureVerificationException.class, () -> parse(BOUNCED, SIGNATURE, "whsec_another"));
        assertThrows(SignatureVerificationException.class, () -> parse(BOUNCED, SIGNATURE));
        assertThrows(SignatureVerificationException.class, () -> parse(BOUNCED, null, "whsec_1"));
        assertThrows(SignatureVerificationException.class, () -> parse(BOUNCED + " ", SIGNATURE, "whsec_1"));
        assertThrows(SignatureVerificationException.class, () -> Webhooks.parseEvent(bytes(BOUNCED), SIGNATURE, "whsec_1"), "old");
        assertThrows(SignatureVerificationException.class, () -> Webhooks.parseEvent(bytes(BOUNCED), SIGNATURE, null));
    }

    @Test
    void trustsNothingWithoutASecret() {
        assertFalse(Webhooks.verify(new byte[0], "t=1,v1=" + "0".repeat(64), null));
    }

    @Test
    void survivesOddHeaders() {
        for (String header : List.of(",", "=", "t", "v1", ",,,t=1,,", "t=1,v1=\ud83c", "\0", "t=1,v1=" + "0".repeat(1 << 20))) {
            assertFalse(Webhooks.verify(new byte[] {1}, header, "whsec_x", Duration.ofSeconds(300), Instant.ofEpochSecond(1)));
        }
    }

    private static Event parse(String body, String header, String... secrets) {
        return Webhooks.parseEvent(
                bytes(body), header, List.of(secrets), Duration.ofSeconds(300), Instant.ofEpochSecond(1769860805));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
