package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertAll;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** Every operation beside sending and reading: the request that it makes, and what it gives. */
class ResourcesTest {
    private static final Instant NOON = Instant.parse("2026-01-31T12:00:00Z");
    private static final Email EMAIL = Email.builder().from("a@example.com").to("b@example.net").text("Hi")
            .sendAt(NOON).expiresIn(120).metadata("order", "1").build();
    private static final String EVERYTHING = """
            {"id": "em_1", "status": "queued", "results": [{"id": "em_1"}], "statistics": {"queued": 3},
             "template": {"alias": "welcome"}, "suppression": {"email": "ada@example.net"},
             "domain": {"name": "example.com"}, "webhook": {"id": "whk_1"}, "webhooks": [{"id": "whk_1"}],
             "delivery": {"id": "whd_1"}, "secret": "whsec_1", "messages": [{"id": "em_1"}],
             "templates": [{"alias": "welcome"}], "suppressions": [{"email": "ada@example.net"}],
             "domains": [{"id": "dom_1"}], "deliveries": [{"id": "whd_1"}], "api_keys": [{"id": "key_1"}],
             "api_key": {"id": "key_1"}, "account": {"balance": 3}, "next_cursor": null}
            """;

    private Postroad postroad;

    @Test
    void makesRequests() {
        assertAll(
                () -> check("POST /emails/batch", "{\"emails\":[{\"from\":\"a@example.com\",\"to\":[\"b@example.net\"],\"text\":\"Hi\",\"send_at\":\"2026-01-31T12:00:00Z\",\"expires_in\":120,\"metadata\":{\"order\":\"1\"}}]}", "[{id=em_1}]",
                        () -> postroad.sendBatch(List.of(EMAIL), false, null)),
                () -> check("POST /emails/batch", "{\"emails\":[{\"template\":\"welcome\"}],\"all_or_nothing\":true}", "[{id=em_1}]",
                        () -> postroad.sendBatch(List.of(Email.builder().template("welcome").build()), true, null)),
                () -> check("POST /emails/batch", "{\"template\":\"welcome\"}", "[{id=em_1}]",
                        () -> postroad.sendTemplateBatch(Map.of("template", "welcome"), "key")),
                () -> check("PATCH /emails/em_1", "{\"send_at\":\"2026-01-31T12:00:00Z\"}", "*",
                        () -> postroad.reschedule("em_1", NOON)),
                () -> check("PATCH /emails/em_1", "{\"send_at\":null}", "*",
                        () -> postroad.reschedule("em_1", null)),
                () -> check("POST /emails/em_1/cancel", "", "*",
                        () -> postroad.cancel("em_1")),
                () -> check("GET /emails/em_1?include=queue", "", "em_1",
                        () -> postroad.getWithQueue("em_1").id()),
                () -> check("GET /v1/statistics?period=7d", "", "{queued=3}",
                        () -> postroad.statistics("7d")),
                () -> check("GET /v1/messages?metadata=order%3A1%202", "", "{id=em_1}",
                        () -> first(postroad.messages().list(Map.of("metadata", "order:1 2")))),
                () -> check("GET /v1/messages?after=2026-01-31T12%3A00%3A00Z", "", "{id=em_1}",
                        () -> first(postroad.messages().list(Map.of("after", NOON)))),
                () -> check("GET /v1/messages/em_1", "", "*",
                        () -> postroad.messages().get("em_1")),
                () -> check("POST /v1/messages/em_1/retry", "{}", "*",
                        () -> postroad.messages().retry("em_1")),
                () -> check("POST /v1/messages/em_1/retry", "{\"recipient_id\":\"rcp_1\"}", "*",
                        () -> postroad.messages().retry("em_1", "rcp_1")),
                () -> check("GET /v1/templates", "", "{alias=welcome}",
                        () -> first(postroad.templates().list(Map.of()))),
                () -> check("GET /v1/templates/a%2Fb%3F", "", "{alias=welcome}",
                        () -> postroad.templates().get("a/b?")),
                () -> check("PUT /v1/templates/welcome", "{\"subject\":\"Hi\"}", "{alias=welcome}",
                        () -> postroad.templates().save("welcome", Map.of("subject", "Hi"))),
                () -> check("DELETE /v1/templates/welcome", "", "null",
                        () -> none(() -> postroad.templates().delete("welcome"))),
                () -> check("POST /v1/templates/welcome/preview", "{\"variables\":{}}", "*",
                        () -> postroad.templates().preview("welcome", Map.of())),
                () -> check("GET /v1/suppressions?source=account", "", "{email=ada@example.net}",
                        () -> first(postroad.suppressions().list(Map.of("source", "account")))),
                () -> check("POST /v1/suppressions", "", "ada@example.net",
                        () -> postroad.suppressions().create("ada@example.net", "asked").get("email")),
                () -> check("GET /v1/suppressions/a%2Bb%40example.net", "", "{email=ada@example.net}",
                        () -> postroad.suppressions().get("a+b@example.net")),
                () -> check("DELETE /v1/suppressions/ada%40example.net", "", "null",
                        () -> none(() -> postroad.suppressions().delete("ada@example.net"))),
                () -> check("GET /v1/domains", "", "{id=dom_1}",
                        () -> first(postroad.domains().list(Map.of()))),
                () -> check("POST /v1/domains", "{\"name\":\"example.com\"}", "{name=example.com}",
                        () -> postroad.domains().create("example.com")),
                () -> check("GET /v1/domains/dom_1", "", "{name=example.com}",
                        () -> postroad.domains().get("dom_1")),
                () -> check("POST /v1/domains/dom_1/check", "", "{name=example.com}",
                        () -> postroad.domains().check("dom_1")),
                () -> check("POST /v1/domains/dom_1/rotate-key", "", "{name=example.com}",
                        () -> postroad.domains().rotateKey("dom_1")),
                () -> check("DELETE /v1/domains/dom_1", "", "null",
                        () -> none(() -> postroad.domains().delete("dom_1"))),
                () -> check("GET /v1/webhooks", "", "{id=whk_1}",
                        () -> first(postroad.webhooks().list())),
                () -> check("POST /v1/webhooks", "{\"url\":\"https://example.com\"}", "whsec_1",
                        () -> postroad.webhooks().create(Map.of("url", "https://example.com")).get("secret")),
                () -> check("GET /v1/webhooks/whk_1", "", "{id=whk_1}",
                        () -> postroad.webhooks().get("whk_1")),
                () -> check("PATCH /v1/webhooks/whk_1", "{\"enabled\":false}", "{id=whk_1}",
                        () -> postroad.webhooks().update("whk_1", Map.of("enabled", false))),
                () -> check("DELETE /v1/webhooks/whk_1", "", "null",
                        () -> none(() -> postroad.webhooks().delete("whk_1"))),
                () -> check("POST /v1/webhooks/whk_1/rotate-secret", "{\"overlap_hours\":24}", "whsec_1",
                        () -> postroad.webhooks().rotateSecret("whk_1", 24)),
                () -> check("POST /v1/webhooks/whk_1/ping", "", "{id=whd_1}",
                        () -> postroad.webhooks().ping("whk_1")),
                () -> check("GET /v1/webhooks/whk_1/deliveries?status=failed", "", "{id=whd_1}",
                        () -> first(postroad.webhooks().deliveries("whk_1", Map.of("status", "failed")))),
                () -> check("GET /v1/webhooks/whk_1/deliveries/whd_1", "", "{id=whd_1}",
                        () -> postroad.webhooks().getDelivery("whk_1", "whd_1")),
                () -> check("POST /v1/webhooks/whk_1/deliveries/replay", "{\"after\":\"2026-01-31T12:00:00Z\"}", "*",
                        () -> postroad.webhooks().replayFailed("whk_1", Map.of("after", "2026-01-31T12:00:00Z"))),
                () -> check("GET /v1/api-keys", "", "{id=key_1}",
                        () -> first(postroad.apiKeys().list(Map.of()))),
                () -> check("POST /v1/api-keys", "{\"name\":\"shop\"}", "*",
                        () -> postroad.apiKeys().create(Map.of("name", "shop"))),
                () -> check("PATCH /v1/api-keys/key_1", "{\"name\":\"shop\"}", "{id=key_1}",
                        () -> postroad.apiKeys().update("key_1", Map.of("name", "shop"))),
                () -> check("DELETE /v1/api-keys/key_1", "", "null",
                        () -> none(() -> postroad.apiKeys().revoke("key_1"))),
                () -> check("GET /v1/account", "", "{balance=3}",
                        () -> postroad.account()),
                () -> check("GET /v1/statistics", "", "{queued=3}",
                        () -> postroad.statistics()),
                () -> check("POST /v1/webhooks/whk_1/deliveries/whd_1/replay", "", "{id=whd_1}",
                        () -> postroad.webhooks().replay("whk_1", "whd_1")));
    }

    private void check(String line, String body, String expected, Supplier<Object> operation) throws IOException {
        ScriptedServer.Step answer = line.startsWith("DELETE")
                ? ScriptedServer.answer(204, "")
                : ScriptedServer.answer(200, EVERYTHING);
        try (ScriptedServer server = new ScriptedServer(answer)) {
            postroad = client(server);
            Object given = operation.get();
            String request = server.requests.get(0);
            assertTrue(request.startsWith(line + " HTTP/1.1\r\n"), request);
            assertTrue(request.endsWith("\r\n\r\n" + body) || body.isEmpty(), request);
            assertEquals(line.endsWith("/batch"), request.contains("\r\nIdempotency-Key: "), request);
            assertEquals(expected, expected.equals("*") && given instanceof Map<?, ?> map && "em_1".equals(map.get("id"))
                    ? "*" : String.valueOf(given), line);
        }
    }

    @Test
    void readsThePagesThatAreNeeded() throws IOException {
        try (ScriptedServer server = new ScriptedServer(
                ScriptedServer.answer(200, "{\"domains\":[{\"id\":\"dom_1\"},{\"id\":\"dom_2\"}],\"next_cursor\":\"dom_2\"}"),
                ScriptedServer.answer(200, "{\"domains\":[{\"id\":\"dom_3\"}],\"next_cursor\":null}"))) {
            List<Object> ids = new ArrayList<>();
            for (Map<String, Object> domain : client(server).domains().list(Map.of("limit", 2))) {
                ids.add(domain.get("id"));
                assertEquals(ids.size() < 3 ? 1 : 2, server.requests.size());
            }
            assertEquals(List.of("dom_1", "dom_2", "dom_3"), ids);
            assertTrue(server.requests.get(1).startsWith("GET /v1/domains?limit=2&cursor=dom_2 "));
        }
    }

    @Test
    void repeatsOnlyWhatDoesNoHarmTwice() throws IOException {
        repeats(2, client -> client.templates().save("welcome", Map.of()));
        repeats(2, client -> client.cancel("em_1"));
        repeats(2, client -> client.sendBatch(List.of(), false, null));
        repeats(1, client -> client.domains().create("example.com"));
        repeats(1, client -> client.messages().retry("em_1"));
    }

    private static void repeats(int requests, Function<Postroad, Object> operation) throws IOException {
        ScriptedServer.Step busy = ScriptedServer.answer(500, "{\"error\":\"a fault\",\"code\":\"internal_error\"}");
        try (ScriptedServer server = new ScriptedServer(busy, ScriptedServer.answer(200, EVERYTHING))) {
            if (requests == 1) {
                assertThrows(ServerException.class, () -> operation.apply(client(server)));
            } else {
                operation.apply(client(server));
            }
            assertEquals(requests, server.requests.size());
        }
    }

    @Test
    void refusesResponsesOfOthersAndPathsElsewhere() throws IOException {
        try (ScriptedServer server = new ScriptedServer(
                ScriptedServer.answer(200, "{}"), ScriptedServer.answer(200, "{}"))) {
            Postroad client = client(server);
            assertThrows(UnexpectedResponseException.class, () -> client.domains().get("dom_1"));
            assertThrows(UnexpectedResponseException.class, () -> client.sendBatch(List.of(), false, null));
            for (String name : List.of("", ".", "..")) {
                assertThrows(IllegalArgumentException.class, () -> client.templates().get(name));
            }
            assertThrows(IllegalArgumentException.class, () -> client.cancel("em_1/../em_2"));
            assertEquals(2, server.requests.size());
        }
    }

    private static Object first(Iterable<Map<String, Object>> items) {
        return items.iterator().next();
    }

    private static Object none(Runnable operation) {
        operation.run();
        return null;
    }

    private static Postroad client(ScriptedServer server) {
        return Postroad.builder(server.url()).token("pr_live_1").build(new FakeTiming());
    }
}
