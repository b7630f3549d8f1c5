<?php

/**
 * The webhooks of the account. Those of this class are settings; `Postroad\Webhook` verifies what they send.
 */

declare(strict_types=1);

namespace Postroad\Resources;

use Generator;
use Postroad\Internal\Api;

final readonly class Webhooks
{
    /** @internal */
    public function __construct(private Api $api)
    {
    }

    /**
     * All webhooks, the first one first.
     *
     * @return Generator<int, array<string, mixed>>
     */
    public function list(): Generator
    {
        return $this->api->each('/v1/webhooks', [], 'webhooks', []);
    }

    /**
     * Creates one: `webhook`, and its `secret`, which is never shown again.
     *
     * @return array<string, mixed>
     */
    public function create(string $url, mixed ...$settings): array
    {
        return $this->api->call('POST', '/v1/webhooks', body: ['url' => $url] + $settings);
    }

    /**
     * One webhook.
     *
     * @return array<string, mixed>
     */
    public function get(string $id): array
    {
        return $this->api->call('GET', '/v1/webhooks/{}', [$id], member: 'webhook');
    }

    /**
     * Changes what is given, as the API names it: url, events, enabled, tags and so on.
     *
     * @return array<string, mixed>
     */
    public function update(string $id, mixed ...$settings): array
    {
        return $this->api->call('PATCH', '/v1/webhooks/{}', [$id], body: $settings, member: 'webhook');
    }

    /** Removes it, and what it has not sent yet. */
    public function delete(string $id): void
    {
        $this->api->call('DELETE', '/v1/webhooks/{}', [$id]);
    }

    /** A new secret. With an overlap, the old one signs as well for so many hours. */
    public function rotateSecret(string $id, ?int $overlapHours = null): string
    {
        $body = $overlapHours === null ? [] : ['overlap_hours' => $overlapHours];

        return $this->api->call('POST', '/v1/webhooks/{}/rotate-secret', [$id], body: $body, member: 'secret');
    }

    /**
     * Sends a test event now, and gives its delivery.
     *
     * @return array<string, mixed>
     */
    public function ping(string $id): array
    {
        return $this->api->call('POST', '/v1/webhooks/{}/ping', [$id], member: 'delivery');
    }

    /**
     * Its deliveries of the last 7 days, newest first, page after page.
     *
     * @param mixed ...$filters as the API names them: message_id, status, limit
     *
     * @return Generator<int, array<string, mixed>>
     */
    public function deliveries(string $id, mixed ...$filters): Generator
    {
        return $this->api->each('/v1/webhooks/{}/deliveries', [$id], 'deliveries', $filters);
    }

    /**
     * One delivery with every attempt.
     *
     * @return array<string, mixed>
     */
    public function getDelivery(string $id, string $deliveryId): array
    {
        return $this->api->call('GET', '/v1/webhooks/{}/deliveries/{}', [$id, $deliveryId], member: 'delivery');
    }

    /**
     * Sends the failed events of a period again.
     *
     * @param mixed ...$period `after` and `before`
     *
     * @return array<string, mixed>
     */
    public function replayFailed(string $id, mixed ...$period): array
    {
        return $this->api->call('POST', '/v1/webhooks/{}/deliveries/replay', [$id], body: $period);
    }

    /**
     * Sends the event of a delivery again.
     *
     * @return array<string, mixed>
     */
    public function replay(string $id, string $deliveryId): array
    {
        return $this->api->call('POST', '/v1/webhooks/{}/deliveries/{}/replay', [$id, $deliveryId], member: 'delivery');
    }
}
