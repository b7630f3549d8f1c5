<?php

/**
 * A request of the client, for a transport to carry.
 */

declare(strict_types=1);

namespace Postroad\Http;

use Postroad\Client;
use SensitiveParameterValue;

final readonly class Request
{
    /** @internal */
    public function __construct(
        public string $method,
        public string $url,
        private SensitiveParameterValue $authorization,
        public ?string $idempotencyKey = null,
        public ?string $body = null,
        private bool $isHarmless = true,
    ) {
    }

    /**
     * Whether a second one like it does no harm when nobody knows what became of the first. What creates something is
     * repeatable only with a key.
     */
    public function isRepeatable(): bool
    {
        return $this->isHarmless || $this->idempotencyKey !== null;
    }

    /**
     * All headers, except Host and Content-Length, which belong to the transport. It is a method so that printing a
     * request does not show the credential.
     *
     * @return array<string, string>
     */
    public function headers(): array
    {
        $headers = [
            'Authorization' => $this->authorization->getValue(),
            'User-Agent' => 'postroad-php/' . Client::VERSION,
            'Accept' => 'application/json',
        ];
        if ($this->idempotencyKey !== null) {
            $headers['Idempotency-Key'] = $this->idempotencyKey;
        }
        if ($this->body !== null) {
            $headers['Content-Type'] = 'application/json';
        }

        return $headers;
    }
}
