package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class WebhooksTest {
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
    void trustsNothingWithoutASecret() {
        assertFalse(Webhooks.verify(new byte[0], "t=1,v1=" + "0".repeat(64), null));
    }

    @Test
    void survivesOddHeaders() {
        for (String header : List.of(",", "=", "t", "v1", ",,,t=1,,", "t=1,v1=\ud83c", "\0", "t=1,v1=" + "0".repeat(1 << 20))) {
            assertFalse(Webhooks.verify(new byte[] {1}, header, "whsec_x", Duration.ofSeconds(300), Instant.ofEpochSecond(1)));
        }
    }
}
