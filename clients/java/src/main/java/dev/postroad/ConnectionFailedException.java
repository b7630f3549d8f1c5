package dev.postroad;

/** No connection, or one that was lost before the response was complete. */
public final class ConnectionFailedException extends PostroadException {
    private static final long serialVersionUID = 1L;

    ConnectionFailedException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
    }
}
