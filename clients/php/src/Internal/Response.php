<?php

/**
 * An HTTP response.
 */

declare(strict_types=1);

namespace Postroad\Internal;

/** @internal */
final readonly class Response
{
    /**
     * @param array<string, string> $headers by their names in small letters
     * @param bool $isCutOff there was more of the body than a client reads
     */
    public function __construct(
        public int $status,
        public array $headers,
        public string $body,
        public bool $isCutOff = false,
    ) {
    }
}
