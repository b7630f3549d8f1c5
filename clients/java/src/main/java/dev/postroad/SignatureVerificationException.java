package dev.postroad;

/** A webhook request that was not signed with the secret, or not recently. */
public final class SignatureVerificationException extends PostroadException {
    private static final long serialVersionUID = 1L;

    SignatureVerificationException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
    }
}
