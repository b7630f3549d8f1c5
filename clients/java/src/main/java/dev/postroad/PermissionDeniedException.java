package dev.postroad;

/** The credential may not do this, or the account is suspended: status 403. */
public final class PermissionDeniedException extends PostroadException {
    private static final long serialVersionUID = 1L;

    PermissionDeniedException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
    }
}
