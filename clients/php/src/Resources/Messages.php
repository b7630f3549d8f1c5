<?php

/**
 * The message log. Reading it needs the scope `read`.
 */

declare(strict_types=1);

namespace Postroad\Resources;

use Generator;
use Postroad\Internal\Api;

final readonly class Messages
{
    /** @internal */
    public function __construct(private Api $api)
    {
    }

    /**
     * The messages that match, newest first, page after page.
     *
     * @param mixed ...$filters as the API names them: status, source, from, to, tag, metadata, after, before,
     *     mode, limit
     *
     * @return Generator<int, array<string, mixed>>
     */
    public function list(mixed ...$filters): Generator
    {
        return $this->api->each('/v1/messages', [], 'messages', $filters);
    }

    /**
     * One message with all its attempts.
     *
     * @return array<string, mixed>
     */
    public function get(string $id): array
    {
        return $this->api->call('GET', '/v1/messages/{}', [$id]);
    }

    /**
     * Retries the waiting recipients now, or one of them.
     *
     * @return array<string, mixed>
     */
    public function retry(string $id, ?string $recipientId = null): array
    {
        $body = $recipientId === null ? [] : ['recipient_id' => $recipientId];

        return $this->api->call('POST', '/v1/messages/{}/retry', [$id], body: $body);
    }
}
