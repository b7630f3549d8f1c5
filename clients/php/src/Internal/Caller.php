<?php

/**
 * Makes a call of one attempt or more: what may be retried is retried, within the bounds.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Closure;
use InvalidArgumentException;
use Postroad\PostroadException;

/** @internal */
final readonly class Caller
{
    private const FIRST_PAUSE = 0.5;
    private const LONGEST_PAUSE = 8.0;

    public function __construct(
        private Transport $transport,
        private float $timeout,
        private int $maxRetries,
        private float $maxElapsed,
        private Clock $clock = new SystemClock(),
    ) {
        foreach (['timeout' => $timeout, 'maxElapsed' => $maxElapsed] as $name => $seconds) {
            if (!is_finite($seconds) || $seconds <= 0) {
                throw new InvalidArgumentException("$name is a number of seconds, and more than 0");
            }
        }
        if ($maxRetries < 0) {
            throw new InvalidArgumentException('maxRetries is 0 or more');
        }
    }

    /**
     * @template T of object
     *
     * @param Closure(Members): T $make reads the answer
     *
     * @return T
     *
     * @throws PostroadException
     */
    public function call(Request $request, Closure $make): object
    {
        $end = $this->clock->now() + $this->maxElapsed;
        for ($attempt = 1;; $attempt++) {
            try {
                $response = $this->transport->exchange($request, min($this->timeout, $end - $this->clock->now()));

                return Answer::read($response, $make, $this->clock->time());
            } catch (Failure $failure) {
                $error = self::error($failure, $attempt, $request->idempotencyKey);
            }
            $pause = ($error->retryAfter ?? 0.0) + $this->backOff($attempt);
            if (!$error->isRetryable() || $attempt > $this->maxRetries || $this->clock->now() + $pause >= $end) {
                throw $error;
            }
            $this->clock->sleep($pause);
        }
    }

    /** Between half and all of a pause that doubles with each retry. */
    private function backOff(int $retry): float
    {
        $pause = min(self::LONGEST_PAUSE, self::FIRST_PAUSE * 2 ** ($retry - 1));

        return $pause * (1 + $this->clock->random()) / 2;
    }

    private static function error(Failure $failure, int $attempts, ?string $idempotencyKey): PostroadException
    {
        $notes = array_filter([$failure->requestId, $attempts > 1 ? "$attempts attempts" : null]);

        return new PostroadException(
            ltrim("$failure->status $failure->errorCode: ") . $failure->getMessage()
                . ($notes === [] ? '' : ' (' . implode(', ', $notes) . ')'),
            $failure->errorCode,
            $failure->status,
            $failure->requestId,
            $failure->retryAfter,
            $idempotencyKey,
        );
    }
}
