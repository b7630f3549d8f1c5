package dev.postroad;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** A clock that stands still until somebody sleeps, and chance that is half. */
final class FakeTiming implements Timing {
    static final Instant START = Instant.parse("2026-01-31T12:00:00Z");

    final List<Duration> pauses = new ArrayList<>();
    double random = 0.5;
    Duration oversleep = Duration.ZERO;
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
    public void sleep(long nanos) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        pauses.add(Duration.ofNanos(nanos));
        this.nanos += nanos + oversleep.toNanos();
    }
}
