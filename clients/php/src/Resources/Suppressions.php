<?php

/**
 * Addresses that get no mail from the account.
 */

declare(strict_types=1);

namespace Postroad\Resources;

use Generator;
use Postroad\Internal\Api;

final readonly class Suppressions
{
    /** @internal */
    public function __construct(private Api $api)
    {
    }

    /**
     * The suppressed addresses in alphabetical order.
     *
     * @param mixed ...$filters as the API names them: email, source, limit
     *
     * @return Generator<int, array<string, mixed>>
     */
    public function list(mixed ...$filters): Generator
    {
        return $this->api->each('/v1/suppressions', [], 'suppressions', $filters);
    }

    /**
     * Suppresses an address.
     *
     * @return array<string, mixed>
     */
    public function create(string $email, ?string $reason = null): array
    {
        $body = ['email' => $email] + ($reason === null ? [] : ['reason' => $reason]);

        return $this->api->call('POST', '/v1/suppressions', body: $body, member: 'suppression');
    }

    /**
     * Why an address is suppressed.
     *
     * @return array<string, mixed>
     */
    public function get(string $email): array
    {
        return $this->api->call('GET', '/v1/suppressions/{}', [$email], member: 'suppression');
    }

    /** Takes an address off the list. */
    public function delete(string $email): void
    {
        $this->api->call('DELETE', '/v1/suppressions/{}', [$email]);
    }
}
