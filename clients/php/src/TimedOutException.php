<?php

/**
 * No complete response in time; or a message that is not final after the time of a wait.
 */

declare(strict_types=1);

namespace Postroad;

use Throwable;

final class TimedOutException extends PostroadException
{
    /** @param ?Message $lastMessage the message as it was when wait() ended; null when no message was waited for */
    public function __construct(
        string $message,
        string $errorCode = 'timed_out',
        ?int $status = null,
        ?string $requestId = null,
        ?float $retryAfter = null,
        ?string $idempotencyKey = null,
        ?Throwable $previous = null,
        public readonly ?Message $lastMessage = null,
    ) {
        parent::__construct($message, $errorCode, $status, $requestId, $retryAfter, $idempotencyKey, $previous);
    }
}
