<?php

/**
 * Keys for programs, with scopes.
 */

declare(strict_types=1);

namespace Postroad\Resources;

use Generator;
use Postroad\Internal\Api;

final readonly class ApiKeys
{
    /** @internal */
    public function __construct(private Api $api)
    {
    }

    /**
     * All keys, oldest first, without the keys themselves.
     *
     * @param mixed ...$filters as the API names them: limit
     *
     * @return Generator<int, array<string, mixed>>
     */
    public function list(mixed ...$filters): Generator
    {
        return $this->api->each('/v1/api-keys', [], 'api_keys', $filters);
    }

    /**
     * Creates one: its `api_key`, and the `secret`, which is never shown again.
     *
     * @return array<string, mixed>
     */
    public function create(string $name, mixed ...$settings): array
    {
        return $this->api->call('POST', '/v1/api-keys', body: ['name' => $name] + $settings);
    }

    /**
     * Changes its name, scopes or limits.
     *
     * @return array<string, mixed>
     */
    public function update(string $id, mixed ...$settings): array
    {
        return $this->api->call('PATCH', '/v1/api-keys/{}', [$id], body: $settings, member: 'api_key');
    }

    /** Revokes it. */
    public function revoke(string $id): void
    {
        $this->api->call('DELETE', '/v1/api-keys/{}', [$id]);
    }
}
