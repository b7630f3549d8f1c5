<?php

/**
 * A clock that moves only when somebody sleeps, and remembers how long.
 */

declare(strict_types=1);

namespace Postroad\Tests\Support;

use Postroad\Internal\Clock;

final class FakeClock implements Clock
{
    /** @var list<float> */
    public array $pauses = [];
    public float $now = 1000.0;

    public function __construct(private readonly float $random = 1.0)
    {
    }

    public function now(): float
    {
        return $this->now;
    }

    public function time(): float
    {
        return 1_770_000_000.0 + $this->now;
    }

    public function sleep(float $seconds): void
    {
        $this->pauses[] = $seconds;
        $this->now += $seconds;
    }

    public function random(): float
    {
        return $this->random;
    }
}
