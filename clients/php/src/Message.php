<?php

/**
 * A message as it stands now.
 */

declare(strict_types=1);

namespace Postroad;

use DateTimeImmutable;
use Postroad\Internal\Members;

final readonly class Message
{
    /**
     * @param string $status `queued` until every recipient is final; then `delivered`, `partial` or `failed`
     * @param list<Recipient> $recipients
     * @param array<string, string> $metadata
     * @param bool $test whether it was sent with a test key
     */
    public function __construct(
        public string $id,
        public string $status,
        public ?string $source = null,
        public ?string $from = null,
        public ?string $subject = null,
        public ?string $billingStatus = null,
        public ?int $recipientCount = null,
        public ?int $creditsReserved = null,
        public ?DateTimeImmutable $createdAt = null,
        public array $recipients = [],
        public ?string $requestId = null,
        public ?DateTimeImmutable $sendAt = null,
        public ?DateTimeImmutable $expiresAt = null,
        public array $metadata = [],
        public bool $test = false,
    ) {
    }

    /** Whether every recipient has a final status: `delivered`, `bounced`, `failed`, `canceled` or `expired`. */
    public function isFinal(): bool
    {
        foreach ($this->recipients as $recipient) {
            if (!in_array($recipient->status, ['delivered', 'bounced', 'failed', 'canceled', 'expired'], true)) {
                return false;
            }
        }

        return $this->recipients !== [];
    }

    /** @internal */
    public static function fromMembers(Members $members): self
    {
        return new self(
            id: $members->requiredString('id'),
            status: $members->requiredString('status'),
            source: $members->string('source'),
            from: $members->string('from'),
            subject: $members->string('subject'),
            billingStatus: $members->string('billing_status'),
            recipientCount: $members->integer('recipient_count'),
            creditsReserved: $members->integer('credits_reserved'),
            createdAt: $members->time('created_at'),
            recipients: $members->objects('recipients', Recipient::fromMembers(...)),
            requestId: $members->string('request_id'),
            sendAt: $members->time('send_at'),
            expiresAt: $members->time('expires_at'),
            metadata: $members->stringMap('metadata'),
            test: $members->flag('test'),
        );
    }
}
