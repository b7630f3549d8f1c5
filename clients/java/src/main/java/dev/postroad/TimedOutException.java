package dev.postroad;

/** No complete response in time; or a message that is not final after the time of {@link Postroad#waitFor}. */
public final class TimedOutException extends PostroadException {
    private static final long serialVersionUID = 1L;

    /** The last message that was read, or null. Exceptions can be serialized, messages cannot. */
    private final transient Message lastMessage;

    TimedOutException(Failure failure, String idempotencyKey, int attempts) {
        super(failure, idempotencyKey, attempts);
        this.lastMessage = null;
    }

    TimedOutException(String text, Message lastMessage) {
        super(Failure.noResponse(Failure.TIMED_OUT, text, null), null, 1);
        this.lastMessage = lastMessage;
    }

    /**
     * The message as it was when {@link Postroad#waitFor} ended.
     *
     * @return the message, or null when no message was waited for
     */
    public Message lastMessage() {
        return lastMessage;
    }
}
