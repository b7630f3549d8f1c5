<?php

/**
 * A message to send.
 */

declare(strict_types=1);

namespace Postroad;

use DateTimeInterface;
use Postroad\Internal\Json;

final readonly class Email
{
    /**
     * Addresses are `ada@example.net` or `Ada <ada@example.net>`. What is null is not sent.
     *
     * @param string|list<string> $to
     * @param string|list<string>|null $cc
     * @param string|list<string>|null $bcc
     * @param ?string $template the alias of a template, in the place of text and html
     * @param array<string, mixed>|null $variables values for the placeholders of the template
     * @param array<string, string>|null $headers
     * @param string|list<string>|null $replyTo one address, or up to 10
     * @param string|list<string>|null $tags
     * @param list<Attachment>|null $attachments
     * @param DateTimeInterface|string|null $sendAt when to send; a string is RFC 3339
     * @param ?int $expiresIn seconds after which delivery is no longer tried
     * @param array<string, string>|null $metadata your own data, which is not part of the mail
     * @param array<string, string>|null $simulate with a test key: which provider to imitate, and how it behaves
     */
    public function __construct(
        public string $from,
        public string|array $to,
        public ?string $subject = null,
        public ?string $text = null,
        public ?string $html = null,
        public string|array|null $cc = null,
        public string|array|null $bcc = null,
        public string|array|null $replyTo = null,
        public ?string $template = null,
        public ?array $variables = null,
        public ?array $headers = null,
        public string|array|null $tags = null,
        public ?array $attachments = null,
        public DateTimeInterface|string|null $sendAt = null,
        public ?int $expiresIn = null,
        public ?array $metadata = null,
        public ?array $simulate = null,
    ) {
    }

    /**
     * The body of a send request.
     *
     * @internal
     */
    public function toJson(): string
    {
        return Json::object($this->toMembers());
    }

    /**
     * The same before it is JSON.
     *
     * @internal
     *
     * @return array<string, mixed>
     */
    public function toMembers(): array
    {
        $members = [
            'from' => $this->from,
            'to' => self::oneOrList($this->to),
            'cc' => self::oneOrList($this->cc),
            'bcc' => self::oneOrList($this->bcc),
            'reply_to' => self::oneOrList($this->replyTo),
            'subject' => $this->subject,
            'text' => $this->text,
            'html' => $this->html,
            'template' => $this->template,
            'variables' => self::object($this->variables),
            'headers' => self::object($this->headers),
            'tags' => self::oneOrList($this->tags),
            'attachments' => $this->attachments === null ? null : array_map(
                static fn (Attachment $attachment): array => $attachment->toMembers(),
                array_values($this->attachments),
            ),
            'send_at' => $this->sendAt instanceof DateTimeInterface ? Json::time($this->sendAt) : $this->sendAt,
            'expires_in' => $this->expiresIn,
            'metadata' => self::object($this->metadata),
            'simulate' => self::object($this->simulate),
        ];

        return array_filter($members, static fn (mixed $value): bool => $value !== null);
    }

    /**
     * Arrays with holes in their numbering, as array_filter() leaves them, would become JSON objects.
     *
     * @param string|array<string>|null $value
     *
     * @return string|list<string>|null
     */
    private static function oneOrList(string|array|null $value): string|array|null
    {
        return is_array($value) ? array_values($value) : $value;
    }

    /**
     * An empty array would become a JSON list.
     *
     * @param array<mixed>|null $value
     */
    private static function object(?array $value): ?object
    {
        return $value === null ? null : (object) $value;
    }
}
