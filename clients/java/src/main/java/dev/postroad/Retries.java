package dev.postroad;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Repeats attempts that are worth repeating, as long as there is time. No thread waits for them. */
final class Retries {
    private static final long FIRST_PAUSE = TimeUnit.MILLISECONDS.toNanos(500);
    private static final int DOUBLINGS = 4; // to 8 seconds

    private final long timeout;
    private final long maxElapsed;
    private final Timing timing;

    /** One attempt, which may take {@code limit} nanoseconds, and fails with a {@link Failure}. */
    interface Attempt {
        CompletableFuture<Response> within(long limit);
    }

    /** What to make of a response. */
    interface Reader<T> {
        T read(Response response) throws Failure;
    }

    Retries(Duration timeout, Duration maxElapsed, Timing timing) {
        // convert() gives the largest long for what does not fit, where toNanos() would throw.
        this.timeout = TimeUnit.NANOSECONDS.convert(timeout);
        this.maxElapsed = TimeUnit.NANOSECONDS.convert(maxElapsed);
        this.timing = timing;
    }

    /** Makes a call. The future fails with a {@link PostroadException}; whoever cancels it ends the call. */
    <T> CompletableFuture<T> start(
            String idempotencyKey, boolean isRepeatable, Attempt attempt, Reader<T> reader) {
        Call<T> call = new Call<>(idempotencyKey, isRepeatable, attempt, reader);
        call.attempt(1, maxElapsed == 0 ? timeout : maxElapsed); // 0 is one attempt, with all of its time
        return call.result;
    }

    /** Makes a call, and waits for it. */
    <T> T run(String idempotencyKey, boolean isRepeatable, Attempt attempt, Reader<T> reader) {
        return await(start(idempotencyKey, isRepeatable, attempt, reader), idempotencyKey);
    }

    void pause(long nanos) {
        await(timing.after(nanos), null);
    }

    private static <T> T await(CompletableFuture<T> future, String idempotencyKey) {
        try {
            return future.get();
        } catch (InterruptedException e) {
            future.cancel(true);
            Thread.currentThread().interrupt();
            Failure failure = Failure.noResponse(Failure.INTERRUPTED, "the thread was interrupted", e);
            throw PostroadException.of(failure, idempotencyKey, 1);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof PostroadException error) {
                error.fillInStackTrace(); // where the application has called, not where the response was read
                throw error;
            }
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            throw new IllegalStateException(e.getCause());
        }
    }

    /** The attempts of one call, and the pauses between them. */
    private final class Call<T> {
        private final CompletableFuture<T> result = new CompletableFuture<>();
        private final String idempotencyKey;
        // Whether a second request does no harm when nobody knows what became of the first.
        private final boolean isRepeatable;
        private final Attempt attempt;
        private final Reader<T> reader;
        private final long start = timing.nanoTime();

        Call(String idempotencyKey, boolean isRepeatable, Attempt attempt, Reader<T> reader) {
            this.idempotencyKey = idempotencyKey;
            this.isRepeatable = isRepeatable;
            this.attempt = attempt;
            this.reader = reader;
        }

        void attempt(int number, long left) {
            CompletableFuture<Response> exchange = attempt.within(Math.min(timeout, left));
            endWithResult(exchange);
            exchange.whenComplete((response, error) -> settle(() -> {
                try {
                    if (error != null) {
                        throw failure(error);
                    }
                    result.complete(reader.read(response));
                } catch (Failure failure) {
                    repeat(number, PostroadException.of(failure, idempotencyKey, number));
                }
            }));
        }

        private void repeat(int number, PostroadException error) {
            long pause = pauseAfter(number, error.retryAfter());
            if (!error.isRetryable() || !isRepeatable && !isUndone(error) || pause >= left()) {
                result.completeExceptionally(error);
                return;
            }
            CompletableFuture<Void> wait = timing.after(pause);
            endWithResult(wait);
            wait.thenRun(() -> settle(() -> {
                if (left() > 0) {
                    attempt(number + 1, left());
                } else {
                    result.completeExceptionally(error); // the pause was longer than asked for
                }
            }));
        }

        /** Whether the response says that nothing was done. */
        private static boolean isUndone(PostroadException error) {
            return error.status() == 429 || error.code().equals("service_unavailable");
        }

        private long left() {
            return maxElapsed - (timing.nanoTime() - start);
        }

        /** Who cancels the result does not want to wait for anything else. */
        private void endWithResult(CompletableFuture<?> step) {
            result.whenComplete((value, error) -> step.cancel(true));
        }

        /** A future swallows what its callbacks throw, and the result would never come. */
        private void settle(Runnable step) {
            try {
                step.run();
            } catch (RuntimeException | Error e) {
                result.completeExceptionally(e);
            }
        }
    }

    private static Failure failure(Throwable error) {
        Throwable cause = error instanceof CompletionException ? error.getCause() : error;
        if (cause instanceof Failure failure) {
            return failure;
        }
        throw new CompletionException(cause);
    }

    /** What the server asked for, and on top of it a random time, so that clients do not come back together. */
    private long pauseAfter(int retry, Duration retryAfter) {
        long most = FIRST_PAUSE << Math.min(retry - 1, DOUBLINGS);
        long random = most / 2 + (long) (timing.random() * (most / 2));
        return TimeUnit.NANOSECONDS.convert(retryAfter == null
                ? Duration.ofNanos(random)
                : retryAfter.plusNanos(random));
    }
}
