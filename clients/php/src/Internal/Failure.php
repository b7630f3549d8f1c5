<?php

/**
 * Why one attempt has failed. The caller retries, or makes a PostroadException of it.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Exception;
use Throwable;

/** @internal */
final class Failure extends Exception
{
    public function __construct(
        public readonly string $errorCode,
        string $message,
        public readonly ?int $status = null,
        public readonly ?string $requestId = null,
        public readonly ?float $retryAfter = null,
        ?Throwable $previous = null,
    ) {
        parent::__construct($message, 0, $previous);
    }
}
