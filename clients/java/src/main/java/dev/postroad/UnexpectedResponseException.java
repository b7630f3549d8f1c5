package dev.postroad;

/** A response that Postroad does not give: a 2xx or 3xx of something else, or no HTTP at all. */
public final class UnexpectedResponseException extends PostroadException {
    private static final long serialVersionUID = 1L;

    UnexpectedResponseException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
    }
}
