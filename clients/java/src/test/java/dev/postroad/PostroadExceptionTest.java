package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PostroadExceptionTest {
    @ParameterizedTest
    @CsvSource({
        "400, invalid_request, InvalidRequest", "408, unexpected_response, InvalidRequest",
        "413, payload_too_large, InvalidRequest", "415, invalid_request, InvalidRequest",
        "422, invalid_request, InvalidRequest", "499, unexpected_response, InvalidRequest",
        "401, unauthorized, Authentication", "402, insufficient_credits, InsufficientCredits",
        "402, unexpected_response, InsufficientCredits", "403, insufficient_credits, InsufficientCredits",
        "403, account_suspended, PermissionDenied", "404, not_found, NotFound",
        "409, idempotency_conflict, Idempotency", "409, idempotency_in_progress, Idempotency",
        "429, warmup_limited, RateLimit", "500, internal_error, Server", "502, unexpected_response, Server",
        "503, timed_out, Server", "599, unexpected_response, Server", "200, unexpected_response, UnexpectedResponse",
        "302, unexpected_response, UnexpectedResponse", "0, unexpected_response, UnexpectedResponse",
        "0, connection_failed, ConnectionFailed", "0, timed_out, TimedOut", "0, invalid_signature, SignatureVerification",
        "0, interrupted, Postroad"})
    void hasAClassForEachKind(int status, String code, String name) {
        PostroadException error = PostroadException.of(new Failure(status, code, "why", "req_1", null, null), "key-1", 2);
        assertEquals(name + "Exception", error.getClass().getSimpleName());
        assertEquals((status == 0 ? "" : status + " ") + code + ": why (req_1, 2 attempts)", error.getMessage());
        assertEquals(code, error.code());
        assertEquals("key-1", error.idempotencyKey());
    }
}
