package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.http.HttpHeaders;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ResponseTest {
    @Test
    void readsAReceipt() throws Failure {
        Receipt receipt = answer(202, """
                {"id": "em_1", "status": "queued", "source": "api", "request_id": "req_1", "from": "a@example.com",
                 "to": ["b@example.net"], "cc": [], "reply_to": null, "subject": "Hi", "billing_status": "reserved",
                 "recipient_count": 1, "credits_reserved": 1, "headers": {"X-A": "1"}, "tags": ["t"], "new": [{}],
                 "attachments": [{"filename": "a.txt", "content_type": "text/plain", "size": 3}],
                 "send_at": "2026-01-31T12:00:00Z", "metadata": {"order": "1042"}}
                """).read(Receipt::from, FakeTiming.START);
        assertEquals(new Receipt("em_1", "queued", "api", "req_1", "a@example.com", List.of("b@example.net"), List.of(),
                List.of(), List.of(), "Hi", "reserved", 1, 1, Map.of("X-A", "1"), List.of("t"),
                List.of(new AttachmentInfo("a.txt", "text/plain", 3, null)),
                Instant.parse("2026-01-31T12:00:00Z"), null, Map.of("order", "1042")), receipt);
        assertThrows(UnsupportedOperationException.class, () -> receipt.to().clear());
        assertThrows(UnsupportedOperationException.class, () -> receipt.headers().clear());
    }

    @Test
    void readsWhereRepliesGo() throws Failure {
        assertEquals(List.of("a@example.com"), replyTo("\"a@example.com\""));
        assertEquals(List.of("a@example.com", "b@example.com"), replyTo("[\"a@example.com\", \"b@example.com\"]"));
    }

    private static List<String> replyTo(String json) throws Failure {
        return answer(202, "{\"id\": \"em_1\", \"reply_to\": " + json + "}")
                .read(Receipt::from, FakeTiming.START).replyTo();
    }

    @Test
    void readsAMessage() throws Failure {
        Message message = answer(200, """
                {"id": "em_1", "status": "snoozed", "test": true, "created_at": "2026-01-31T13:00:00.250+01:00", "recipients": [
                  {"id": "rcp_1", "email": "b@example.net", "status": "bounced", "billing_status": "released",
                   "attempt_count": 1, "last_smtp_code": 550, "last_smtp_response": "no such user",
                   "delivered_at": null, "bounced_at": "2026-01-31T12:00:01Z"}]}
                """).read(Message::from, FakeTiming.START);
        assertEquals(new Message("em_1", "snoozed", null, null, null, null, null, null,
                Instant.parse("2026-01-31T12:00:00.250Z"),
                List.of(new Recipient("rcp_1", "b@example.net", "bounced", "released", 1, 550, "no such user", null,
                        Instant.parse("2026-01-31T12:00:01Z"), Map.of())),
                null, null, null, Map.of(), true), message);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "", "null", "[]", "\"em_1\"", "{}", "{\"id\":\"\"}", "{\"id\":7}", "{\"id\":null}", "<html>", "{\"id\":\"a\"",
        "{\"id\":\"a\",\"to\":\"b\"}", "{\"id\":\"a\",\"to\":[1]}", "{\"id\":\"a\",\"to\":[null]}", "{\"id\":\"a\",\"status\":1}",
        "{\"id\":\"a\",\"recipient_count\":\"1\"}", "{\"id\":\"a\",\"recipient_count\":1.5}",
        "{\"id\":\"a\",\"recipient_count\":3000000000}", "{\"id\":\"a\",\"headers\":{\"b\":1}}",
        "{\"id\":\"a\",\"attachments\":[7]}", "{\"id\":\"a\",\"attachments\":{}}"})
    void refusesWhatIsNoReceipt(String body) {
        Failure failure = failure(202, body, "X-Request-ID", "req_header");
        assertEquals("unexpected_response", failure.code);
        assertEquals(202, failure.status);
        assertEquals("req_header", failure.requestId);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "{\"id\":\"a\"}", "{\"id\":\"a\",\"status\":\"queued\",\"created_at\":\"yesterday\"}",
        "{\"id\":\"a\",\"status\":\"queued\",\"created_at\":1}", "{\"id\":\"a\",\"status\":\"queued\",\"recipients\":[[]]}"})
    void refusesWhatIsNoMessage(String body) {
        Failure failure = assertThrows(Failure.class, () -> answer(200, body).read(Message::from, FakeTiming.START));
        assertEquals("unexpected_response", failure.code);
    }

    @Test
    void readsAnError() {
        String body = "{\"error\":\"too few\",\"code\":\"insufficient_credits\",\"request_id\":\"req_1\"}";
        PostroadException error = error(failure(402, body, "X-Request-ID", "req_header"));
        assertEquals("402 insufficient_credits: too few (req_1)", error.getMessage());
        assertEquals("req_1", error.requestId());
        assertTrue(error.isInsufficientCredits());
        assertFalse(error.isRetryable() || error.isIdempotencyConflict());
        assertNull(error.retryAfter());
        assertTrue(error(failure(409, "{\"code\":\"idempotency_conflict\"}")).isIdempotencyConflict());
        assertTrue(error(failure(409, "{\"code\":\"idempotency_in_progress\"}")).isRetryable());
        assertEquals(Duration.ofSeconds(3), failure(429, "{\"code\":\"x\"}", "Retry-After", "3").retryAfter);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "<h1>Bad Gateway</h1>", "[]", "{}", "{\"code\":7,\"request_id\":8}"})
    void takesOtherErrorsByTheirStatus(String body) {
        assertFalse(error(failure(501, body)).isRetryable());
        assertTrue(error(failure(502, body)).isRetryable());
        assertTrue(error(failure(503, body)).isRetryable());
        assertEquals("unexpected_response", failure(503, body).code);
        assertNull(failure(503, body).requestId);
    }

    @Test
    void quotesTwoHundredCharactersOnOneLine() {
        String text = failure(502, "<b>\r\n\u001b[31m" + "🎉".repeat(1000)).getMessage();
        assertTrue(text.endsWith(": <b> [31m" + "🎉".repeat(192)), text);
    }

    @Test
    void namesWhereARedirectLeads() {
        String text = failure(302, "", "Location", "https://elsewhere.example/" + "x".repeat(1000)).getMessage();
        assertTrue(text.contains(" https://elsewhere.example/" + "x".repeat(174) + ";"), text);
        assertTrue(text.endsWith("redirects are not followed"), text);
        assertEquals("unexpected_response", failure(304, "").code);
    }

    private static Failure failure(int status, String body, String... header) {
        return assertThrows(Failure.class, () -> answer(status, body, header).read(Receipt::from, FakeTiming.START));
    }

    private static PostroadException error(Failure failure) {
        return PostroadException.of(failure, null, 1);
    }

    private static Response answer(int status, String body, String... header) {
        Map<String, List<String>> headers = new TreeMap<>();
        if (header.length > 0) {
            headers.put(header[0], List.of(header[1]));
        }
        return new Response(status, HttpHeaders.of(headers, (n, v) -> true), body.getBytes(StandardCharsets.UTF_8));
    }
}
