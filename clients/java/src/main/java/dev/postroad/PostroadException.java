package dev.postroad;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * A request that did not succeed: Postroad refused it, or there was no response that could be used.
 * {@link #getMessage()} is for people; the subclasses, {@link #code()} and the questions below are
 * for programs. Only a thread that was interrupted has no subclass.
 */
public class PostroadException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private static final Set<Integer> RETRYABLE_STATUSES = Set.of(408, 429, 500, 502, 503, 504);
    private static final Set<String> RETRYABLE_CODES =
            Set.of("idempotency_in_progress", Failure.CONNECTION_FAILED, Failure.TIMED_OUT);

    /** The HTTP status; 0 when there was no response. */
    private final int status;
    /** The code of the response, or of this client. */
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

    /** The exception of the kind that the failure is of. */
    static PostroadException of(Failure failure, String idempotencyKey, int attempts) {
        if (failure.code.equals(Failure.INSUFFICIENT_CREDITS)) {
            return new InsufficientCreditsException(failure, idempotencyKey, attempts);
        }
        return switch (failure.status) {
            case 0 -> withoutResponse(failure, idempotencyKey, attempts);
            case 401 -> new AuthenticationException(failure, idempotencyKey, attempts);
            case 402 -> new InsufficientCreditsException(failure, idempotencyKey, attempts);
            case 403 -> new PermissionDeniedException(failure, idempotencyKey, attempts);
            case 404 -> new NotFoundException(failure, idempotencyKey, attempts);
            case 409 -> new IdempotencyException(failure, idempotencyKey, attempts);
            case 429 -> new RateLimitException(failure, idempotencyKey, attempts);
            default -> switch (failure.status / 100) {
                case 4 -> new InvalidRequestException(failure, idempotencyKey, attempts);
                case 5 -> new ServerException(failure, idempotencyKey, attempts);
                default -> new UnexpectedResponseException(failure, idempotencyKey, attempts);
            };
        };
    }

    private static PostroadException withoutResponse(Failure failure, String idempotencyKey, int attempts) {
        return switch (failure.code) {
            case Failure.CONNECTION_FAILED -> new ConnectionFailedException(failure, idempotencyKey, attempts);
            case Failure.TIMED_OUT -> new TimedOutException(failure, idempotencyKey, attempts);
            case Failure.INVALID_SIGNATURE -> new SignatureVerificationException(failure, idempotencyKey, attempts);
            case Failure.INTERRUPTED -> new PostroadException(failure, idempotencyKey, attempts);
            default -> new UnexpectedResponseException(failure, idempotencyKey, attempts);
        };
    }

    /**
     * The HTTP status.
     *
     * @return the status, or 0 when there was no response
     */
    public int status() {
        return status;
    }

    /**
     * What went wrong, in one word: the {@code code} of Postroad's response, or one of the
     * client's own, which are {@code connection_failed}, {@code timed_out}, {@code unexpected_response}
     * (a response that Postroad does not give, such as a proxy's page), {@code invalid_signature} (of
     * a webhook) and {@code interrupted}.
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
     * @return the key, or null when nothing was sent
     */
    public String idempotencyKey() {
        return idempotencyKey;
    }

    /**
     * Whether the same may succeed later. The client has tried again already, within its bounds.
     *
     * @return true for 408, 429, 500, 502, 503 and 504, a first send that still runs, and a lost connection
     */
    public boolean isRetryable() {
        return RETRYABLE_STATUSES.contains(status) || RETRYABLE_CODES.contains(code);
    }

    /**
     * Whether the account has too few credits.
     *
     * @return true if so
     */
    public boolean isInsufficientCredits() {
        return code.equals(Failure.INSUFFICIENT_CREDITS);
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
