package dev.postroad;

/** There is no message with this id: status 404. */
public final class NotFoundException extends PostroadException {
    private static final long serialVersionUID = 1L;

    NotFoundException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
    }
}
