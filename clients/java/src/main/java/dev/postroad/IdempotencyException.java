package dev.postroad;

/** The key was used with another message, or its first request is in progress: status 409. */
public final class IdempotencyException extends PostroadException {
    private static final long serialVersionUID = 1L;

    IdempotencyException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
    }
}
