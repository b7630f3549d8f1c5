package dev.postroad;

import java.time.Duration;

/** Why one attempt did not succeed. The caller sees a {@link PostroadException} made of the last one. */
final class Failure extends Exception {
    static final String CONNECTION_FAILED = "connection_failed";
    static final String TIMED_OUT = "timed_out";
    static final String UNEXPECTED_RESPONSE = "unexpected_response";
    static final String INTERRUPTED = "interrupted";
    static final String INVALID_SIGNATURE = "invalid_signature";
    static final String INSUFFICIENT_CREDITS = "insufficient_credits";

    private static final long serialVersionUID = 1L;

    final int status;
    final String code;
    final String requestId;
    final Duration retryAfter;

    Failure(int status, String code, String text, String requestId, Duration retryAfter, Throwable cause) {
        super(text, cause);
        this.status = status;
        this.code = code;
        this.requestId = requestId;
        this.retryAfter = retryAfter;
    }

    static Failure noResponse(String code, String text, Throwable cause) {
        return new Failure(0, code, text, null, null, cause);
    }
}
