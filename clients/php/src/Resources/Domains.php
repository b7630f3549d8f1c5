<?php

/**
 * Sender domains.
 */

declare(strict_types=1);

namespace Postroad\Resources;

use Generator;
use Postroad\Internal\Api;

final readonly class Domains
{
    /** @internal */
    public function __construct(private Api $api)
    {
    }

    /**
     * All domains, without their DNS records.
     *
     * @param mixed ...$filters as the API names them: limit
     *
     * @return Generator<int, array<string, mixed>>
     */
    public function list(mixed ...$filters): Generator
    {
        return $this->api->each('/v1/domains', [], 'domains', $filters);
    }

    /**
     * Registers a domain; its `records` say what to put into DNS.
     *
     * @return array<string, mixed>
     */
    public function create(string $name): array
    {
        return $this->api->call('POST', '/v1/domains', body: ['name' => $name], member: 'domain');
    }

    /**
     * One domain with its DNS records.
     *
     * @return array<string, mixed>
     */
    public function get(string $id): array
    {
        return $this->api->call('GET', '/v1/domains/{}', [$id], member: 'domain');
    }

    /**
     * Checks its DNS records now.
     *
     * @return array<string, mixed>
     */
    public function check(string $id): array
    {
        return $this->api->call('POST', '/v1/domains/{}/check', [$id], isRepeatable: true, member: 'domain');
    }

    /**
     * Makes a new DKIM key, which signs as soon as its record is found.
     *
     * @return array<string, mixed>
     */
    public function rotateKey(string $id): array
    {
        return $this->api->call('POST', '/v1/domains/{}/rotate-key', [$id], member: 'domain');
    }

    /** Removes it. */
    public function delete(string $id): void
    {
        $this->api->call('DELETE', '/v1/domains/{}', [$id]);
    }
}
