package dev.postroad;

/** Bytes that are not JSON, or JSON that is not what was looked for; the message says why. */
final class JsonException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    JsonException(String message) {
        super(message);
    }
}
