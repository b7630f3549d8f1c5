package dev.postroad;

/** The account has fewer credits than the message has recipients: status 402. */
public final class InsufficientCreditsException extends PostroadException {
    private static final long serialVersionUID = 1L;

    InsufficientCreditsException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
    }
}
