<?php

/**
 * One recipient of a message, and what became of it.
 */

declare(strict_types=1);

namespace Postroad;

use DateTimeImmutable;
use Postroad\Internal\Members;

final readonly class Recipient
{
    /**
     * @param ?int $lastSmtpCode the last code of the destination's mail server, if it has given one
     * @param array<string, mixed>|null $queue when it is tried next, and why not earlier, where it was asked for
     */
    public function __construct(
        public ?string $id = null,
        public ?string $email = null,
        public ?string $status = null,
        public ?string $billingStatus = null,
        public ?int $attemptCount = null,
        public ?int $lastSmtpCode = null,
        public ?string $lastSmtpResponse = null,
        public ?DateTimeImmutable $deliveredAt = null,
        public ?DateTimeImmutable $bouncedAt = null,
        public ?array $queue = null,
    ) {
    }

    /** @internal */
    public static function fromMembers(Members $members): self
    {
        return new self(
            id: $members->string('id'),
            email: $members->string('email'),
            status: $members->string('status'),
            billingStatus: $members->string('billing_status'),
            attemptCount: $members->integer('attempt_count'),
            lastSmtpCode: $members->integer('last_smtp_code'),
            lastSmtpResponse: $members->string('last_smtp_response'),
            deliveredAt: $members->time('delivered_at'),
            bouncedAt: $members->time('bounced_at'),
            queue: $members->array('queue'),
        );
    }
}
