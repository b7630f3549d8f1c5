<?php

/**
 * Why there is no response. The client retries, or makes a PostroadException of it.
 */

declare(strict_types=1);

namespace Postroad\Http;

use Exception;
use Throwable;

final class TransportException extends Exception
{
    private function __construct(public readonly string $errorCode, string $message, ?Throwable $previous)
    {
        parent::__construct($message, 0, $previous);
    }

    /** There was no connection, or it was lost before the end of the response. It is retried. */
    public static function connectionFailed(string $message, ?Throwable $previous = null): self
    {
        return new self('connection_failed', $message, $previous);
    }

    /** The time is up. It is retried. */
    public static function timedOut(string $message, ?Throwable $previous = null): self
    {
        return new self('timed_out', $message, $previous);
    }

    /** What came back is not HTTP. It is not retried. */
    public static function unexpectedResponse(string $message, ?Throwable $previous = null): self
    {
        return new self('unexpected_response', $message, $previous);
    }
}
