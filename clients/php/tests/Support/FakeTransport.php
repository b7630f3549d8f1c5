<?php

/**
 * Gives the outcomes of a list in turn, the last one for ever, and remembers what was asked.
 */

declare(strict_types=1);

namespace Postroad\Tests\Support;

use Postroad\Http\Request;
use Postroad\Http\Response;
use Postroad\Http\Transport;
use Postroad\Http\TransportException;

final class FakeTransport implements Transport
{
    /** @var list<Request> */
    public array $requests = [];
    /** @var list<float> */
    public array $timeouts = [];
    /** @var list<Response|TransportException> */
    private array $outcomes;

    public function __construct(private readonly FakeClock $clock, Response|TransportException ...$outcomes)
    {
        $this->outcomes = $outcomes;
    }

    public function exchange(Request $request, float $timeout): Response
    {
        $this->requests[] = $request;
        $this->timeouts[] = $timeout;
        $outcome = $this->outcomes[min(count($this->requests), count($this->outcomes)) - 1];
        if ($outcome instanceof Response) {
            return $outcome;
        }
        if ($outcome->errorCode === 'timed_out') {
            $this->clock->now += $timeout;
        }
        throw $outcome;
    }
}
