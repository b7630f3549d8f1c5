package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class RetriesTest {
    private static final Duration LONG = Duration.ofSeconds(Long.MAX_VALUE);

    private final FakeTiming timing = new FakeTiming();
    private final List<Duration> limits = new ArrayList<>();

    @Test
    void pausesLongerEachTimeToALimit() {
        Retries retries = new Retries(LONG, Duration.ofMillis(375 + 750 + 1500 + 3000 + 4 * 6000), timing);
        PostroadException error = failing(retries, new Failure(503, "service_unavailable", "later", "req_1", null, null));
        assertEquals(millis(375, 750, 1500, 3000, 6000, 6000, 6000), timing.pauses);
        assertEquals("503 service_unavailable: later (req_1, 8 attempts)", error.getMessage());
        assertEquals("key-1", error.idempotencyKey());
    }

    @Test
    void pausesBetweenHalfAndAll() {
        Failure failure = Failure.noResponse(Failure.CONNECTION_FAILED, "gone", null);
        timing.random = 0;
        failing(new Retries(LONG, Duration.ofMillis(600), timing), failure);
        timing.random = Math.nextDown(1.0);
        failing(new Retries(LONG, Duration.ofMillis(600), timing), failure);
        assertEquals(Duration.ofMillis(250), timing.pauses.get(0));
        assertEquals(500, Math.round(timing.pauses.get(1).toNanos() / 1e6));
    }

    @Test
    void waitsAsTheServerAsksAndSomeMore() {
        Retries retries = new Retries(LONG, Duration.ofSeconds(60), timing);
        failing(retries, new Failure(429, "rate_limited", "slowly", null, Duration.ofSeconds(20), null));
        assertEquals(millis(20_375, 20_750), timing.pauses);
    }

    @Test
    void doesNotBeginAPauseThatEndsTooLate() {
        Retries retries = new Retries(LONG, Duration.ofSeconds(60), timing);
        failing(retries, new Failure(429, "warmup_limited", "tomorrow", null, Duration.ofSeconds(999_999_999_999_999L), null));
        failing(retries, new Failure(429, "rate_limited", "slowly", null, Duration.ofSeconds(59).plusMillis(625), null));
        assertEquals(List.of(), timing.pauses);
        failing(retries, new Failure(429, "rate_limited", "slowly", null, Duration.ofSeconds(59).plusMillis(624), null));
        assertEquals(millis(59_999), timing.pauses);
    }

    @Test
    void doesNotWaitForEverAfterALateAnswer() {
        Retries retries = new Retries(LONG, Duration.ofSeconds(60), timing);
        Failure failure = new Failure(503, "service_unavailable", "later", null, Duration.ofSeconds(999_999_999_999_999L), null);
        assertThrows(PostroadException.class, () -> retries.run(null, true, limit -> {
            timing.pass(Duration.ofSeconds(61));
            return CompletableFuture.failedFuture(failure);
        }, response -> null));
        assertEquals(List.of(), timing.pauses);
    }

    @Test
    void givesAnAttemptWhatIsLeft() {
        Retries retries = new Retries(Duration.ofSeconds(30), Duration.ofSeconds(60), timing);
        assertThrows(PostroadException.class, () -> retries.run(null, true, limit -> {
            limits.add(Duration.ofNanos(limit));
            timing.pass(Duration.ofNanos(limit));
            return CompletableFuture.failedFuture(Failure.noResponse(Failure.TIMED_OUT, "late", null));
        }, response -> null));
        assertEquals(millis(30_000, 29_625), limits);
    }

    @Test
    void countsWhatWasSleptTooLong() {
        Retries retries = new Retries(LONG, Duration.ofSeconds(60), timing);
        Failure failure = new Failure(503, "service_unavailable", "later", null, Duration.ofSeconds(39).plusMillis(625), null);
        timing.oversleep = Duration.ofSeconds(5);
        failing(retries, failure);
        timing.oversleep = Duration.ofSeconds(20);
        failing(retries, failure);
        assertEquals(millis(60_000, 15_000, 60_000), limits);
    }

    @Test
    void triesOnceInNoTimeAndForWhatIsFinal() {
        PostroadException error = failing(
                new Retries(Duration.ofSeconds(30), Duration.ZERO, timing),
                new Failure(503, "service_unavailable", "later", null, null, null));
        assertTrue(error.isRetryable());
        assertEquals("503 service_unavailable: later", error.getMessage());
        error = failing(new Retries(LONG, LONG, timing), new Failure(501, "internal_error", "no", null, null, null));
        assertFalse(error.isRetryable());
        assertEquals(List.of(Duration.ofSeconds(30), Duration.ofNanos(Long.MAX_VALUE)), limits);
    }

    @Test
    void repeatsWhatMayPass() {
        for (int status : new int[] {408, 429, 500, 502, 503, 504}) {
            assertEquals(2, attempts(new Failure(status, "unexpected_response", "<html>", null, null, null)), "" + status);
        }
        assertEquals(2, attempts(new Failure(409, "idempotency_in_progress", "wait", null, null, null)));
        assertEquals(2, attempts(Failure.noResponse(Failure.CONNECTION_FAILED, "refused", null)));
        assertEquals(2, attempts(Failure.noResponse(Failure.TIMED_OUT, "late", null)));
        for (int status : new int[] {200, 302, 400, 401, 402, 403, 404, 409, 413, 422, 501, 505}) {
            assertEquals(1, attempts(new Failure(status, "unexpected_response", "<html>", null, null, null)), "" + status);
        }
        assertEquals(1, attempts(Failure.noResponse(Failure.UNEXPECTED_RESPONSE, "no HTTP", null)));
    }

    @Test
    void endsWhenThePauseIsInterrupted() {
        timing.stuck = true;
        Thread.currentThread().interrupt();
        PostroadException error = failing(
                new Retries(LONG, LONG, timing), new Failure(503, "service_unavailable", "later", null, null, null));
        assertTrue(Thread.interrupted(), "the flag is kept");
        assertEquals("interrupted", error.code());
        assertInstanceOf(InterruptedException.class, error.getCause());
        assertFalse(error.isRetryable());
    }

    @Test
    void endsWhenTheFutureIsCancelled() {
        Retries retries = new Retries(LONG, LONG, timing);
        CompletableFuture<Response> exchange = new CompletableFuture<>();
        assertTrue(retries.start(null, true, limit -> exchange, response -> null).cancel(true));
        assertTrue(exchange.isCancelled());

        timing.stuck = true;
        AtomicInteger attempts = new AtomicInteger();
        CompletableFuture<Object> waiting = retries.start(null, true, limit -> {
            attempts.incrementAndGet();
            return CompletableFuture.failedFuture(new Failure(503, "service_unavailable", "later", null, null, null));
        }, response -> null);
        assertFalse(waiting.isDone());
        waiting.cancel(true);
        assertEquals(1, attempts.get());
    }

    @Test
    void doesNotHideAFaultOfItsOwn() {
        Retries retries = new Retries(LONG, LONG, timing);
        CompletableFuture<Object> call = retries.start(null, true, limit -> CompletableFuture.completedFuture(null), response -> {
            throw new IllegalStateException("a fault");
        });
        assertInstanceOf(IllegalStateException.class, assertThrows(CompletionException.class, call::join).getCause());
    }

    @Test
    void showsWhereTheApplicationCalled() {
        Retries retries = new Retries(LONG, Duration.ZERO, timing);
        CompletableFuture<Response> late = CompletableFuture.supplyAsync(() -> {
            throw new CompletionException(Failure.noResponse(Failure.TIMED_OUT, "late", null));
        });
        PostroadException error = assertThrows(PostroadException.class, () -> retries.run(null, true, limit -> late, response -> null));
        assertTrue(Arrays.stream(error.getStackTrace()).anyMatch(frame -> frame.getClassName().equals(getClass().getName())));
    }

    private PostroadException failing(Retries retries, Failure failure) {
        return assertThrows(PostroadException.class, () -> retries.run("key-1", true, limit -> {
            limits.add(Duration.ofNanos(limit));
            return CompletableFuture.failedFuture(failure);
        }, response -> null));
    }

    /** How often it is tried when there is time for one pause. */
    private int attempts(Failure failure) {
        limits.clear();
        failing(new Retries(LONG, Duration.ofSeconds(1), timing), failure);
        return limits.size();
    }

    private static List<Duration> millis(long... millis) {
        return Arrays.stream(millis).mapToObj(Duration::ofMillis).toList();
    }
}
