package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.http.HttpClient;
import java.util.HashSet;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class PostroadTest {
    private static final Email EMAIL = Email.builder().from("a@example.com").to("b@example.net").text("Grüße").build();
    private static final String UNAVAILABLE = "{\"error\":\"later\",\"code\":\"service_unavailable\"}";

    @Test
    void sends() throws Exception {
        try (ScriptedServer server = new ScriptedServer(ScriptedServer.answer(202, ScriptedServer.RECEIPT))) {
            assertEquals("em_1", server.client().send(EMAIL, "order-1042").id());
            List<String> lines = server.requests.get(0).lines().toList();
            assertEquals("POST /emails HTTP/1.1", lines.get(0));
            assertTrue(lines.containsAll(List.of(
                    "Authorization: Bearer pr_live_test", "Content-Type: application/json", "Idempotency-Key: order-1042",
                    "User-Agent: postroad-java/0.1.0",
                    "{\"from\":\"a@example.com\",\"to\":[\"b@example.net\"],\"text\":\"Grüße\"}")), lines.toString());
        }
    }

    @Test
    void gets() throws Exception {
        try (ScriptedServer server = new ScriptedServer(ScriptedServer.answer(200, ScriptedServer.MESSAGE))) {
            Postroad postroad = Postroad.builder(server.url() + "/mail/").credential("smtp_1", "pä:ss").build();
            assertEquals("delivered", postroad.get("em_1").status());
            List<String> lines = server.requests.get(0).lines().toList();
            assertEquals("GET /mail/emails/em_1 HTTP/1.1", lines.get(0));
            assertTrue(lines.contains("Authorization: Basic c210cF8xOnDDpDpzcw=="));
            assertTrue(lines.stream().noneMatch(line -> line.startsWith("Idempotency-Key")));
        }
    }

    @Test
    void keepsItsKeyAndBodyInEveryAttempt() throws Exception {
        try (ScriptedServer server = new ScriptedServer(
                ScriptedServer.answer(503, UNAVAILABLE),
                ScriptedServer.reset(),
                ScriptedServer.answer(502, "<html>"),
                ScriptedServer.answer(202, ScriptedServer.RECEIPT))) {
            server.client().send(EMAIL);
            assertEquals(4, server.requests.size());
            assertEquals(1, new HashSet<>(server.requests).size());
            UUID.fromString(key(server.requests.get(0)));
        }
    }

    @Test
    void makesAKeyForEachSend() throws Exception {
        try (ScriptedServer server = new ScriptedServer(
                ScriptedServer.answer(202, ScriptedServer.RECEIPT), ScriptedServer.answer(202, ScriptedServer.RECEIPT))) {
            Postroad postroad = server.client();
            postroad.send(EMAIL);
            postroad.send(EMAIL);
            assertNotEquals(key(server.requests.get(0)), key(server.requests.get(1)));
        }
    }

    @Test
    void sendsWithoutWaiting() throws Exception {
        try (ScriptedServer server = new ScriptedServer(
                ScriptedServer.answer(503, UNAVAILABLE),
                ScriptedServer.reset(),
                ScriptedServer.answer(202, ScriptedServer.RECEIPT),
                ScriptedServer.answer(200, ScriptedServer.MESSAGE),
                ScriptedServer.answer(404, "{\"code\":\"not_found\"}"))) {
            Postroad postroad = server.client();
            assertEquals("em_1", postroad.sendAsync(EMAIL, "order-1042").get(10, TimeUnit.SECONDS).id());
            assertEquals(1, new HashSet<>(server.requests).size());
            assertEquals("delivered", postroad.getAsync("em_1").get(10, TimeUnit.SECONDS).status());
            ExecutionException error = assertThrows(
                    ExecutionException.class, () -> postroad.getAsync("em_1").get(10, TimeUnit.SECONDS));
            assertEquals(NotFoundException.class, error.getCause().getClass());
            assertThrows(IllegalArgumentException.class, () -> postroad.getAsync("../v1"));
            assertThrows(IllegalArgumentException.class, () -> postroad.sendAsync(EMAIL, "a\r\nb"));
        }
    }

    @Test
    void hangsUpWhenASendIsCancelled() throws Exception {
        try (ScriptedServer server = new ScriptedServer()) {
            server.then(server.hang(""));
            CompletableFuture<Receipt> send = server.client().sendAsync(EMAIL, null);
            while (server.requests.isEmpty()) {
                Thread.sleep(1);
            }
            assertTrue(send.cancel(true));
            assertTrue(server.clientHasGone());
            assertEquals(1, server.requests.size());
        }
    }

    @Test
    void sendsTenTimesOverOneConnection() throws Exception {
        try (ScriptedServer server = new ScriptedServer()) {
            int connections = 0;
            // HttpClient needs a moment until a connection can be used again: on a busy machine a longer one.
            for (long moment = 1; moment < 2000 && connections != 1; moment *= 4) {
                int before = server.connections.get();
                Postroad postroad = server.client();
                for (int i = 0; i < 10; i++) {
                    server.then(ScriptedServer.answer(202, ScriptedServer.RECEIPT));
                    postroad.send(EMAIL);
                    Thread.sleep(moment);
                }
                connections = server.connections.get() - before;
            }
            assertEquals(1, connections);
        }
    }

    @Test
    void givesTheLastErrorWithItsKey() throws Exception {
        try (ScriptedServer server = new ScriptedServer()) {
            IntStream.range(0, 14).forEach(i -> server.then(ScriptedServer.answer(503, UNAVAILABLE, "X-Request-ID: req_" + i)));
            PostroadException error = assertThrows(ServerException.class, () -> server.client().send(EMAIL));
            assertEquals("503 service_unavailable: later (req_13, 14 attempts)", error.getMessage());
            assertEquals(key(server.requests.get(0)), error.idempotencyKey());
        }
    }

    @Test
    void speaksToAddressesOfIpv6() throws Exception {
        try (ScriptedServer server = new ScriptedServer("::1", ScriptedServer.answer(200, ScriptedServer.MESSAGE))) {
            assertEquals("em_1", server.client().get("em_1").id());
        }
    }

    @Test
    void isSharedByThreads() throws Exception {
        try (ScriptedServer server = new ScriptedServer()) {
            IntStream.range(0, 40).forEach(i -> server.then(ScriptedServer.answer(202, ScriptedServer.RECEIPT)));
            Postroad postroad = server.client();
            long sent = IntStream.range(0, 40).parallel().filter(i -> postroad.send(EMAIL).id().equals("em_1")).count();
            assertEquals(40, sent);
            assertEquals(40, new HashSet<>(server.requests).size(), "each send has its own key");
        }
    }

    @Test
    void takesAnHttpClientOfTheApplication() throws Exception {
        try (ScriptedServer server = new ScriptedServer(ScriptedServer.answer(302, "", "Location: /elsewhere"))) {
            Postroad postroad = Postroad.builder(server.url()).token("t").httpClient(HttpClient.newHttpClient()).build();
            assertEquals(302, assertThrows(PostroadException.class, () -> postroad.get("em_1")).status());
            assertTrue(server.requests.get(0).startsWith("GET /emails/em_1 HTTP/1.1\r\n"));
            assertEquals(1, server.requests.size());
        }
    }

    @Test
    void printsNoSecret() {
        Postroad.Builder builder = Postroad.builder("https://mail.example.com/").credential("smtp_1", "hidden");
        assertEquals("Postroad[https://mail.example.com/emails]", builder.build().toString());
        assertTrue(!builder.toString().contains("hidden"));
    }

    private static String key(String request) {
        return request.lines().filter(line -> line.startsWith("Idempotency-Key: ")).findFirst().orElseThrow().substring(17);
    }
}
