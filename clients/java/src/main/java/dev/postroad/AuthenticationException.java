package dev.postroad;

/** The token, or the username and password, are not valid: status 401. */
public final class AuthenticationException extends PostroadException {
    private static final long serialVersionUID = 1L;

    AuthenticationException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
    }
}
