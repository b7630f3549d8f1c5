<?php

/**
 * Everything that goes wrong with a request; each kind has a subclass. Bad arguments are InvalidArgumentException.
 */

declare(strict_types=1);

namespace Postroad;

use RuntimeException;
use Throwable;

class PostroadException extends RuntimeException
{
    /**
     * @param string $errorCode the `code` of the response; or `connection_failed`, `timed_out`, `unexpected_response`.
     *     ($code and getCode() belong to PHP, which wants a number: they are the HTTP status, or 0.)
     * @param ?int $status the HTTP status; null when there was no response
     * @param ?float $retryAfter seconds that the server asks to wait
     * @param ?string $idempotencyKey the key of the send, so that it can be repeated later; null when nothing was sent
     */
    public function __construct(
        string $message,
        public readonly string $errorCode,
        public readonly ?int $status = null,
        public readonly ?string $requestId = null,
        public readonly ?float $retryAfter = null,
        public readonly ?string $idempotencyKey = null,
        ?Throwable $previous = null,
    ) {
        parent::__construct($message, $status ?? 0, $previous);
    }

    /** The same request may succeed later. The client has tried that already, within its bounds. */
    public function isRetryable(): bool
    {
        return in_array($this->status, [408, 429, 500, 502, 503, 504], true)
            || in_array($this->errorCode, ['idempotency_in_progress', 'connection_failed', 'timed_out'], true);
    }

    /** The account has fewer credits than the message has recipients. */
    public function isInsufficientCredits(): bool
    {
        return $this->errorCode === 'insufficient_credits';
    }

    /** The key was used for another message in the last 24 hours. */
    public function isIdempotencyConflict(): bool
    {
        return $this->errorCode === 'idempotency_conflict';
    }
}
