package dev.postroad;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** Repeats attempts that are worth repeating, as long as there is time. */
final class Retries {
    private static final long FIRST_PAUSE = TimeUnit.MILLISECONDS.toNanos(500);
    private static final int DOUBLINGS = 4; // to 8 seconds

    private final long timeout;
    private final long maxElapsed;
    private final Timing timing;

    /** One attempt, which may take {@code limit} nanoseconds. */
    interface Attempt<T> {
        T within(long limit) throws Failure, InterruptedException;
    }

    Retries(Duration timeout, Duration maxElapsed, Timing timing) {
        // convert() gives the largest long for what does not fit, where toNanos() would throw.
        this.timeout = TimeUnit.NANOSECONDS.convert(timeout);
        this.maxElapsed = TimeUnit.NANOSECONDS.convert(maxElapsed);
        this.timing = timing;
    }

    <T> T run(String idempotencyKey, Attempt<T> attempt) {
        try {
            return repeat(idempotencyKey, attempt);
        } catch (InterruptedException e) {
            throw interrupted(e, idempotencyKey);
        }
    }

    /** Sleeps, and ends as a call does when the thread is interrupted. */
    void pause(long nanos) {
        try {
            timing.sleep(nanos);
        } catch (InterruptedException e) {
            throw interrupted(e, null);
        }
    }

    private static PostroadException interrupted(InterruptedException cause, String idempotencyKey) {
        Thread.currentThread().interrupt();
        Failure failure = Failure.noResponse(Failure.INTERRUPTED, "the thread was interrupted", cause);
        return PostroadException.of(failure, idempotencyKey, 1);
    }

    private <T> T repeat(String idempotencyKey, Attempt<T> attempt) throws InterruptedException {
        long start = timing.nanoTime();
        long left = maxElapsed == 0 ? timeout : maxElapsed; // 0 is one attempt, with all of its time
        for (int attempts = 1; ; attempts++) {
            PostroadException error;
            try {
                return attempt.within(Math.min(timeout, left));
            } catch (Failure failure) {
                error = PostroadException.of(failure, idempotencyKey, attempts);
            }
            long pause = pause(attempts, error.retryAfter());
            left = maxElapsed - (timing.nanoTime() - start);
            if (!error.isRetryable() || pause >= left) {
                throw error;
            }
            timing.sleep(pause);
            left = maxElapsed - (timing.nanoTime() - start);
            if (left <= 0) {
                throw error; // the sleep was longer than asked for
            }
        }
    }

    /** What the server asked for, and on top of it a random time, so that clients do not come back together. */
    private long pause(int retry, Duration retryAfter) {
        long most = FIRST_PAUSE << Math.min(retry - 1, DOUBLINGS);
        long random = most / 2 + (long) (timing.random() * (most / 2));
        return TimeUnit.NANOSECONDS.convert(retryAfter == null
                ? Duration.ofNanos(random)
                : retryAfter.plusNanos(random));
    }
}
