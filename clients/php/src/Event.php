<?php

/**
 * What a webhook tells: the result of one recipient.
 */

declare(strict_types=1);

namespace Postroad;

use DateTimeImmutable;
use Postroad\Internal\Members;

final readonly class Event
{
    /**
     * @param string $id the same event can come twice
     * @param string $type `email.delivered`, `email.bounced`, `email.failed` or `webhook.test`
     * @param ?DateTimeImmutable $createdAt when the result became final
     */
    public function __construct(
        public string $id,
        public string $type,
        public ?DateTimeImmutable $createdAt = null,
        public EventData $data = new EventData(),
    ) {
    }

    /** @internal */
    public static function fromMembers(Members $members): self
    {
        return new self(
            id: $members->requiredString('id'),
            type: $members->requiredString('type'),
            createdAt: $members->time('created_at'),
            data: EventData::fromMembers($members->object('data')),
        );
    }
}
