package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Instant;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Test;

/** Webhooks as requests: what comes is answered by its status, and only what is signed reaches the function. */
class WebhookReceiverTest {
    private static final String EVENT = "{\"id\":\"evt_1\",\"type\":\"email.delivered\"}";
    private static final String BAD = "{\"id\":\"evt_bad\",\"type\":\"email.delivered\"}";

    private final List<String> received = new CopyOnWriteArrayList<>();
    private final WebhookReceiver receiver = new WebhookReceiver(List.of("whsec_old", "whsec_1"), event -> {
        if (event.id().equals("evt_bad")) {
            throw new IllegalStateException("the database is away");
        }
        received.add(event.id());
    });

    @Test
    void answersRequestsOfAServer() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        server.createContext("/", receiver);
        server.start();
        try {
            URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
            assertEquals(204, exchange(uri, "POST", EVENT, header(EVENT, "whsec_1")).statusCode());
            assertEquals(400, exchange(uri, "POST", EVENT + " ", header(EVENT, "whsec_1")).statusCode());
            assertEquals(500, exchange(uri, "POST", BAD, header(BAD, "whsec_old")).statusCode());
            String tooLong = "x".repeat(WebhookReceiver.LARGEST_BODY + 1);
            assertEquals(413, exchange(uri, "POST", tooLong, header(tooLong, "whsec_1")).statusCode());
            HttpResponse<Void> refused = exchange(uri, "PUT", EVENT, header(EVENT, "whsec_1"));
            assertEquals(405, refused.statusCode());
            assertEquals(List.of("POST"), refused.headers().allValues("Allow"));
        } finally {
            server.stop(0);
        }
        assertEquals(List.of("evt_1"), received);
    }

    @Test
    void tellsAnApplicationTheStatus() throws Exception {
        assertEquals(204, receive(EVENT, header(EVENT, "whsec_old")));
        assertEquals(400, receive(EVENT, header(EVENT, "whsec_another")));
        assertEquals(400, receive(EVENT, null));
        assertEquals(400, receive("[]", header("[]", "whsec_1")), "signed, but no event");
        String longest = EVENT + " ".repeat(WebhookReceiver.LARGEST_BODY - EVENT.length());
        assertEquals(204, receive(longest, header(longest, "whsec_1")));
        assertEquals(List.of("evt_1", "evt_1"), received);
        String header = header(BAD, "whsec_1");
        assertThrows(IllegalStateException.class, () -> receive(BAD, header), "the application's own");
    }

    @Test
    void needsASecret() {
        assertThrows(IllegalArgumentException.class, () -> new WebhookReceiver(List.of(), event -> { }));
        assertThrows(IllegalArgumentException.class, () -> new WebhookReceiver("", event -> { }));
        assertThrows(IllegalArgumentException.class, () -> new WebhookReceiver((String) null, event -> { }));
        assertTrue(!receiver.toString().contains("whsec_"), "does not show it");
    }

    private int receive(String body, String header) throws IOException {
        return receiver.receive("POST", new ByteArrayInputStream(body.getBytes(StandardCharsets.UTF_8)), header);
    }

    /** What Postroad sends as Service-Signature. */
    static String header(String body, String secret) throws GeneralSecurityException {
        String time = Long.toString(Instant.now().getEpochSecond());
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        byte[] signature = mac.doFinal((time + "." + body).getBytes(StandardCharsets.UTF_8));
        return "t=" + time + ",v1=" + HexFormat.of().formatHex(signature);
    }

    private static HttpResponse<Void> exchange(URI uri, String method, String body, String header) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(uri).header("Service-Signature", header)
                .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        return HttpClient.newBuilder().proxy(HttpClient.Builder.NO_PROXY).build()
                .send(request, HttpResponse.BodyHandlers.discarding());
    }
}
