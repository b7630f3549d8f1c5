<?php

/**
 * Reads a message again and again until it is final.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Closure;
use InvalidArgumentException;
use Postroad\Message;
use Postroad\TimedOutException;

/** @internal */
final readonly class Poller
{
    private const FIRST_PAUSE = 1.0;
    private const LONGEST_PAUSE = 10.0;

    public function __construct(private Clock $clock = new SystemClock())
    {
    }

    /**
     * @param Closure(): Message $read
     *
     * @throws TimedOutException
     */
    public function wait(Closure $read, float $timeout): Message
    {
        if (!is_finite($timeout) || $timeout < 0) {
            throw new InvalidArgumentException('timeout is a number of seconds, 0 or more');
        }
        $end = $this->clock->now() + $timeout;
        for ($pause = self::FIRST_PAUSE;; $pause = min(self::LONGEST_PAUSE, $pause * 1.5)) {
            $message = $read();
            if ($message->isFinal()) {
                return $message;
            }
            $left = $end - $this->clock->now();
            if ($left <= 0) {
                $reason = "timed_out: $message->id is not final after $timeout s";
                throw new TimedOutException($reason, lastMessage: $message);
            }
            $this->clock->sleep(min($pause, $left));
        }
    }
}
