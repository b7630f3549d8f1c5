<?php

/**
 * An HTTP response.
 */

declare(strict_types=1);

namespace Postroad\Http;

final readonly class Response
{
    /** @var array<string, string> by their names in small letters */
    public array $headers;

    /**
     * @param array<string, string> $headers
     * @param bool $isCutOff there was more of the body than the 4 MiB that a client reads
     */
    public function __construct(
        public int $status,
        array $headers,
        public string $body,
        public bool $isCutOff = false,
    ) {
        $this->headers = array_change_key_case($headers);
    }
}
