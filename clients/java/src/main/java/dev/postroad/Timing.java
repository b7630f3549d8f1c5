package dev.postroad;

import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** Clocks, pauses and chance in one place, so that tests need neither wait nor guess. */
interface Timing {
    Timing SYSTEM = new Timing() {
        @Override
        public long nanoTime() {
            return System.nanoTime();
        }

        @Override
        public Instant now() {
            return Instant.now();
        }

        @Override
        public double random() {
            return ThreadLocalRandom.current().nextDouble();
        }

        @Override
        public CompletableFuture<Void> after(long nanos) {
            Executor later = CompletableFuture.delayedExecutor(nanos, TimeUnit.NANOSECONDS);
            return CompletableFuture.runAsync(() -> { }, later);
        }
    };

    long nanoTime();

    Instant now();

    /** At least 0, less than 1. */
    double random();

    /** A future that is complete after so long. */
    CompletableFuture<Void> after(long nanos);
}
