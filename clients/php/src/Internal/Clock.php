<?php

/**
 * What retrying needs of the world; tests have one that they can turn.
 */

declare(strict_types=1);

namespace Postroad\Internal;

/** @internal */
interface Clock
{
    /** Seconds of a clock that nobody sets. */
    public function now(): float;

    /** Seconds since 1970. */
    public function time(): float;

    public function sleep(float $seconds): void;

    /** Between 0 and 1. */
    public function random(): float;
}
