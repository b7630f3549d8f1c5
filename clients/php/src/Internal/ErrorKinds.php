<?php

/**
 * Which class an error is of: it follows from the status and the code.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Postroad\AuthenticationException;
use Postroad\ConnectionFailedException;
use Postroad\IdempotencyException;
use Postroad\InsufficientCreditsException;
use Postroad\InvalidRequestException;
use Postroad\NotFoundException;
use Postroad\PermissionDeniedException;
use Postroad\PostroadException;
use Postroad\RateLimitException;
use Postroad\ServerException;
use Postroad\TimedOutException;
use Postroad\UnexpectedResponseException;

/** @internal */
final class ErrorKinds
{
    /** @return class-string<PostroadException> */
    public static function classOf(?int $status, string $code): string
    {
        return match (true) {
            $code === 'insufficient_credits', $status === 402 => InsufficientCreditsException::class,
            $status === 401 => AuthenticationException::class,
            $status === 403 => PermissionDeniedException::class,
            $status === 404 => NotFoundException::class,
            $status === 409 => IdempotencyException::class,
            $status === 429 => RateLimitException::class,
            $status >= 400 && $status < 500 => InvalidRequestException::class,
            $status >= 500 && $status < 600 => ServerException::class,
            $status === null && $code === 'connection_failed' => ConnectionFailedException::class,
            $status === null && $code === 'timed_out' => TimedOutException::class,
            default => UnexpectedResponseException::class,
        };
    }
}
