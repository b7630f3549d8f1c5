package dev.postroad;

/** The service, or a proxy before it, is out of order: status 5xx. */
public final class ServerException extends PostroadException {
    private static final long serialVersionUID = 1L;

    ServerException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
    }
}
