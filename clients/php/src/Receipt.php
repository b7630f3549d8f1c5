<?php

/**
 * The response to a send: the message is stored and waits for delivery.
 */

declare(strict_types=1);

namespace Postroad;

use DateTimeImmutable;
use Postroad\Internal\Members;

final readonly class Receipt
{
    /**
     * @param list<string> $to
     * @param list<string> $cc
     * @param list<string> $bcc
     * @param string|list<string>|null $replyTo a list where several were given
     * @param array<string, string> $headers
     * @param list<string> $tags
     * @param list<AttachmentInfo> $attachments
     * @param array<string, string> $metadata
     */
    public function __construct(
        public string $id,
        public ?string $status = null,
        public ?string $source = null,
        public ?string $requestId = null,
        public ?string $from = null,
        public array $to = [],
        public array $cc = [],
        public array $bcc = [],
        public string|array|null $replyTo = null,
        public ?string $subject = null,
        public ?string $billingStatus = null,
        public ?int $recipientCount = null,
        public ?int $creditsReserved = null,
        public array $headers = [],
        public array $tags = [],
        public array $attachments = [],
        public ?DateTimeImmutable $sendAt = null,
        public ?DateTimeImmutable $expiresAt = null,
        public array $metadata = [],
    ) {
    }

    /** @internal */
    public static function fromMembers(Members $members): self
    {
        return new self(
            id: $members->requiredString('id'),
            status: $members->string('status'),
            source: $members->string('source'),
            requestId: $members->string('request_id'),
            from: $members->string('from'),
            to: $members->strings('to'),
            cc: $members->strings('cc'),
            bcc: $members->strings('bcc'),
            replyTo: $members->stringOrStrings('reply_to'),
            subject: $members->string('subject'),
            billingStatus: $members->string('billing_status'),
            recipientCount: $members->integer('recipient_count'),
            creditsReserved: $members->integer('credits_reserved'),
            headers: $members->stringMap('headers'),
            tags: $members->strings('tags'),
            attachments: $members->objects('attachments', AttachmentInfo::fromMembers(...)),
            sendAt: $members->time('send_at'),
            expiresAt: $members->time('expires_at'),
            metadata: $members->stringMap('metadata'),
        );
    }
}
