<?php

/**
 * One of the two requests that the client makes.
 */

declare(strict_types=1);

namespace Postroad\Internal;

/** @internal */
final readonly class Request
{
    public function __construct(
        public string $method,
        public string $path,
        public ?string $idempotencyKey = null,
        public ?string $body = null,
    ) {
    }
}
