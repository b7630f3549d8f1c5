package dev.postroad;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** A clock that stands still until somebody sleeps, and chance that is half. */
final class FakeTiming implements Timing {
    static final Instant START = Instant.parse("2026-01-31T12:00:00Z");

    final List<Duration> pauses = new ArrayList<>();
    double random = 0.5;
    Duration oversleep = Duration.ZERO;
    /** Pauses do not end. */
    boolean stuck;
    /** What happens when a pause begins. */
    Runnable atPause = () -> { };
    private long nanos = 42;

    void pass(Duration time) {
        nanos += time.toNanos();
    }

    @Override
    public long nanoTime() {
        return nanos;
    }

    @Override
    public Instant now() {
        return START;
    }

    @Override
    public double random() {
        return random;
    }

    @Override
    public CompletableFuture<Void> after(long nanos) {
        pauses.add(Duration.ofNanos(nanos));
        atPause.run();
        this.nanos += nanos + oversleep.toNanos();
        return stuck ? new CompletableFuture<>() : CompletableFuture.completedFuture(null);
    }
}
