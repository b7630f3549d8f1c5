package dev.postroad;

/** Too many requests, or more mail than the sender may send now: status 429. */
public final class RateLimitException extends PostroadException {
    private static final long serialVersionUID = 1L;

    RateLimitException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
    }
}
