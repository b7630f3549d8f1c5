<?php

/**
 * When an attempt has to be over.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Postroad\Http\TransportException;

/** @internal */
final readonly class Deadline
{
    private float $end;

    public function __construct(private float $seconds)
    {
        $this->end = hrtime(true) / 1e9 + $seconds;
    }

    /**
     * The seconds that are left.
     *
     * @param string $aim what did not come about if there are none
     *
     * @throws TransportException
     */
    public function left(string $aim): float
    {
        $left = $this->end - hrtime(true) / 1e9;

        return $left > 0 ? $left : throw $this->failure($aim);
    }

    public function failure(string $aim): TransportException
    {
        return TransportException::timedOut("$aim within " . max(0.0, round($this->seconds, 3)) . ' s');
    }
}
