<?php

/**
 * What an event is about: the recipient and the result. What is not known is null.
 */

declare(strict_types=1);

namespace Postroad;

use Postroad\Internal\Members;

final readonly class EventData
{
    /**
     * @param ?string $from the envelope sender
     * @param ?int $smtpCode the code of the destination's mail server, if it has given one
     * @param bool $test true in `webhook.test` only
     */
    public function __construct(
        public ?string $emailId = null,
        public ?string $recipientId = null,
        public ?string $to = null,
        public ?string $from = null,
        public ?string $subject = null,
        public ?int $smtpCode = null,
        public ?string $smtpResponse = null,
        public bool $test = false,
    ) {
    }

    /** @internal */
    public static function fromMembers(Members $members): self
    {
        return new self(
            emailId: $members->string('email_id'),
            recipientId: $members->string('recipient_id'),
            to: $members->string('to'),
            from: $members->string('from'),
            subject: $members->string('subject'),
            smtpCode: $members->integer('smtp_code'),
            smtpResponse: $members->string('smtp_response'),
            test: $members->flag('test'),
        );
    }
}
