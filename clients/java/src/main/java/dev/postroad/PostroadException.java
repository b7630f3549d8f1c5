package dev.postroad;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * A request that did not succeed: Postroad refused it, or there was no answer that could be used.
 * {@link #getMessage()} is for people; {@link #code()} and the questions below are for programs.
 */
public final class PostroadException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The HTTP status; 0 when there was no answer. */
    private final int status;
    /** The code of the answer, or of this client. */
    private final String code;
    /** The id of the request at the server, or null. */
    private final String requestId;
    /** How long the server asks to wait, or null. */
    private final Duration retryAfter;
    /** The key of the send, or null. */
    private final String idempotencyKey;

    PostroadException(Failure failure, String idempotencyKey, int attempts) {
        super(describe(failure, attempts), failure.getCause());
        this.status = failure.status;
        this.code = failure.code;
        this.requestId = failure.requestId;
        this.retryAfter = failure.retryAfter;
        this.idempotencyKey = idempotencyKey;
    }

    /**
     * The HTTP status.
     *
     * @return the status, or 0 when there was no answer
     */
    public int status() {
        return status;
    }

    /**
     * What went wrong, in one word: the {@code code} of Postroad's answer, or one of the client's
     * own, which are {@code connection_failed}, {@code timed_out}, {@code unexpected_response} (an
     * answer that Postroad does not give, such as a proxy's page) and {@code interrupted}.
     *
     * @return the code
     */
    public String code() {
        return code;
    }

    /**
     * The id of the request, under which the server's log has it.
     *
     * @return the id, or null
     */
    public String requestId() {
        return requestId;
    }

    /**
     * How long the server asks to wait before another try.
     *
     * @return the time, or null
     */
    public Duration retryAfter() {
        return retryAfter;
    }

    /**
     * The key of the send, with which it can be repeated later.
     *
     * @return the key, or null for a {@code get}
     */
    public String idempotencyKey() {
        return idempotencyKey;
    }

    /**
     * Whether the same may succeed later. The client has tried again already, within its bounds.
     *
     * @return true for 429, 503, a first send that still runs, and a lost connection
     */
    public boolean isRetryable() {
        return status == 429 || status == 503 || code.equals("idempotency_in_progress")
                || code.equals(Failure.CONNECTION_FAILED) || code.equals(Failure.TIMED_OUT);
    }

    /**
     * Whether the account has too few credits.
     *
     * @return true if so
     */
    public boolean isInsufficientCredits() {
        return code.equals("insufficient_credits");
    }

    /**
     * Whether the key was used before, with another message.
     *
     * @return true if so
     */
    public boolean isIdempotencyConflict() {
        return code.equals("idempotency_conflict");
    }

    private static String describe(Failure failure, int attempts) {
        List<String> notes = new ArrayList<>();
        if (failure.requestId != null) {
            notes.add(failure.requestId);
        }
        if (attempts > 1) {
            notes.add(attempts + " attempts");
        }
        return (failure.status == 0 ? "" : failure.status + " ")
                + failure.code + ": " + failure.getMessage()
                + (notes.isEmpty() ? "" : " (" + String.join(", ", notes) + ")");
    }
}
