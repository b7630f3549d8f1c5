package dev.postroad;

/** Postroad does not accept the request: status 400, 413, 415, 422, or another 4xx without a class of its own. */
public final class InvalidRequestException extends PostroadException {
    private static final long serialVersionUID = 1L;

    InvalidRequestException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
    }
}
