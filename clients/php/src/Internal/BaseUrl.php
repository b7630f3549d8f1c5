<?php

/**
 * Where the service is: the parts of the base URL.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use InvalidArgumentException;

/** @internal */
final readonly class BaseUrl
{
    // No user, query or fragment can match. Printable ASCII only, so that nothing can break out of the request line.
    private const PATTERN = '~\A(https?)://(\[[0-9a-f:.]+]|[a-z0-9._-]+)(?::([0-9]{1,5}))?(/[!-"$->@-\~]*)?\z~i';

    /**
     * @param string $host a name or an address; an IPv6 address is in brackets
     * @param string $path without a slash at its end
     */
    private function __construct(
        public bool $isSecure,
        public string $host,
        public int $port,
        public string $path,
    ) {
    }

    public static function parse(string $url): self
    {
        $isUrl = preg_match(self::PATTERN, $url, $parts, PREG_UNMATCHED_AS_NULL) === 1;
        $isSecure = $isUrl && strtolower($parts[1]) === 'https';
        $port = $isUrl ? (int) ($parts[3] ?? ($isSecure ? 443 : 80)) : 0;
        if ($port < 1 || $port > 65535) {
            // The URL itself is not repeated: it may have a password in it.
            throw new InvalidArgumentException(
                'the base URL is http:// or https://, a host, and perhaps a port and a path; nothing else'
            );
        }

        return new self($isSecure, $parts[2], $port, rtrim($parts[4] ?? '', '/'));
    }

    /** The URL without a slash at its end. */
    public function __toString(): string
    {
        return ($this->isSecure ? 'https' : 'http') . "://{$this->authority()}$this->path";
    }

    /** For people, and for connecting. */
    public function hostAndPort(): string
    {
        return "$this->host:$this->port";
    }

    /** For the header Host, which leaves out the usual port. */
    public function authority(): string
    {
        return $this->port === ($this->isSecure ? 443 : 80) ? $this->host : $this->hostAndPort();
    }
}
