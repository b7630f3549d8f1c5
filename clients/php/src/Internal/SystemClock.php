<?php

/**
 * The real clock.
 */

declare(strict_types=1);

namespace Postroad\Internal;

/** @internal */
final class SystemClock implements Clock
{
    public function now(): float
    {
        return hrtime(true) / 1e9;
    }

    public function time(): float
    {
        return microtime(true);
    }

    public function sleep(float $seconds): void
    {
        $end = $this->now() + $seconds;
        // A signal that the application handles ends usleep() early.
        while (($left = $end - $this->now()) > 0) {
            usleep((int) ceil($left * 1e6));
        }
    }

    public function random(): float
    {
        return random_int(0, 1_000_000) / 1e6;
    }
}
