<?php

/**
 * Makes a call of one attempt or more: what may be retried is retried, as long as there is time.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Closure;
use InvalidArgumentException;
use Postroad\Http\Request;
use Postroad\Http\Transport;
use Postroad\Http\TransportException;
use Postroad\PostroadException;

/** @internal */
final readonly class Caller
{
    private const FIRST_PAUSE = 0.5;
    private const LONGEST_PAUSE = 8.0;

    public function __construct(
        private Transport $transport,
        private float $timeout,
        private float $maxElapsed,
        private Clock $clock = new SystemClock(),
    ) {
        if (!is_finite($timeout) || $timeout <= 0) {
            throw new InvalidArgumentException('timeout is a number of seconds, and more than 0');
        }
        if (!is_finite($maxElapsed) || $maxElapsed < 0) {
            throw new InvalidArgumentException('maxElapsed is a number of seconds, 0 or more');
        }
    }

    /**
     * @template T of object
     *
     * @param Closure(Members): T $make reads the response
     *
     * @return T
     *
     * @throws PostroadException
     */
    public function call(Request $request, Closure $make): object
    {
        $end = $this->clock->now() + $this->maxElapsed;
        for ($attempt = 1;; $attempt++) {
            // No time at all is one attempt, with all of its time.
            $left = $this->maxElapsed > 0 ? $end - $this->clock->now() : $this->timeout;
            try {
                $response = $this->transport->exchange($request, min($this->timeout, $left));

                return Answer::read($response, $make, $this->clock->time());
            } catch (TransportException $exception) {
                $failure = new Failure($exception->errorCode, $exception->getMessage(), previous: $exception);
            } catch (Failure $failure) {
            }
            $error = self::error($failure, $attempt, $request->idempotencyKey);
            $pause = ($error->retryAfter ?? 0.0) + $this->backOff($attempt);
            // What might do something twice is repeated only after a response that says that nothing was done.
            $mayRepeat = $request->isRepeatable()
                || $error->status === 429
                || $error->errorCode === 'service_unavailable';
            if (!$mayRepeat || !$error->isRetryable() || $this->clock->now() + $pause >= $end) {
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

        return new (ErrorKinds::classOf($failure->status, $failure->errorCode))(
            ltrim("$failure->status $failure->errorCode: ") . $failure->getMessage()
                . ($notes === [] ? '' : ' (' . implode(', ', $notes) . ')'),
            $failure->errorCode,
            $failure->status,
            $failure->requestId,
            $failure->retryAfter,
            $idempotencyKey,
            $failure->getPrevious()?->getPrevious(),
        );
    }
}
