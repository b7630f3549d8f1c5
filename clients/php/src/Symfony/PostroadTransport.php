<?php

/**
 * Sends the mail of Symfony Mailer, and so of Laravel. It needs the package symfony/mailer.
 */

declare(strict_types=1);

namespace Postroad\Symfony;

use InvalidArgumentException;
use JsonException;
use Postroad\Attachment;
use Postroad\ClientInterface;
use Postroad\Email;
use Postroad\PostroadException;
use Psr\EventDispatcher\EventDispatcherInterface;
use Psr\Log\LoggerInterface;
use Symfony\Component\Mailer\Exception\TransportException;
use Symfony\Component\Mailer\Header\MetadataHeader;
use Symfony\Component\Mailer\Header\TagHeader;
use Symfony\Component\Mailer\SentMessage;
use Symfony\Component\Mailer\Transport\AbstractTransport;
use Symfony\Component\Mime\Address;
use Symfony\Component\Mime\Email as SymfonyEmail;
use Symfony\Component\Mime\Header\Headers;
use Symfony\Component\Mime\Message;
use Symfony\Component\Mime\MessageConverter;
use Symfony\Component\Mime\Part\DataPart;

final class PostroadTransport extends AbstractTransport
{
    // Postroad writes these itself, or reads them from members of the request.
    private const OWN = [
        'from', 'to', 'cc', 'bcc', 'reply-to', 'subject', 'date', 'message-id', 'mime-version', 'return-path', 'sender',
        'idempotency-key',
    ];
    private const METADATA = 'x-service-metadata-';

    public function __construct(
        private readonly ClientInterface $client,
        ?EventDispatcherInterface $dispatcher = null,
        ?LoggerInterface $logger = null,
    ) {
        parent::__construct($dispatcher, $logger);
    }

    public function __toString(): string
    {
        return 'postroad';
    }

    protected function doSend(SentMessage $message): void
    {
        $original = $message->getOriginalMessage();
        if (!$original instanceof Message) {
            throw new TransportException('Postroad sends messages of Symfony Mime, not raw ones; use SMTP for these.');
        }
        $email = MessageConverter::toEmail($original);
        $key = $email->getHeaders()->get('Idempotency-Key')?->getBodyAsString();
        try {
            $receipt = $this->client->send($this->converted($email, $message), $key);
        } catch (PostroadException | InvalidArgumentException | JsonException $exception) {
            throw new TransportException($exception->getMessage(), 0, $exception);
        }
        $message->setMessageId($receipt->id);
    }

    private function converted(SymfonyEmail $email, SentMessage $message): Email
    {
        $headers = $email->getHeaders();
        [$tags, $metadata, $others] = self::sorted($headers);
        $template = $headers->get('X-Service-Template')?->getBodyAsString();
        $variables = $headers->get('X-Service-Variables')?->getBodyAsString();
        $html = self::content($email->getHtmlBody());
        $replies = array_map(self::text(...), $email->getReplyTo());
        $shown = [...$email->getTo(), ...$email->getCc()];
        // Of the envelope those that no header names: bcc, and whoever was added on the way.
        $hidden = array_udiff($message->getEnvelope()->getRecipients(), $shown, self::compare(...));

        return new Email(
            from: self::text($email->getFrom()[0] ?? $message->getEnvelope()->getSender()),
            to: array_map(self::text(...), $email->getTo()),
            subject: $email->getSubject(),
            text: $template === null ? self::content($email->getTextBody()) : null,
            html: $template === null ? $html : null,
            cc: array_map(self::text(...), $email->getCc()) ?: null,
            bcc: array_map(self::text(...), array_values($hidden)) ?: null,
            replyTo: count($replies) === 1 ? $replies[0] : ($replies ?: null),
            template: $template,
            variables: $variables === null ? null : json_decode($variables, true, flags: JSON_THROW_ON_ERROR),
            headers: $others ?: null,
            tags: $tags ?: null,
            attachments: array_map(
                static fn (DataPart $part): Attachment => self::attachment($part, $html ?? ''),
                $email->getAttachments(),
            ) ?: null,
            metadata: $metadata ?: null,
        );
    }

    /** @return array{list<string>, array<string, string>, array<string, string>} tags, metadata, and other headers */
    private static function sorted(Headers $headers): array
    {
        $tags = $metadata = $others = [];
        foreach ($headers->all() as $header) {
            $name = strtolower($header->getName());
            if ($header instanceof TagHeader || $name === 'x-service-tag') {
                $tags[] = $header->getValue();
            } elseif ($header instanceof MetadataHeader) {
                $metadata[$header->getKey()] = $header->getValue();
            } elseif (str_starts_with($name, self::METADATA)) {
                $metadata[substr($header->getName(), strlen(self::METADATA))] = $header->getValue();
            } elseif (!in_array($name, self::OWN, true) && preg_match('/\A(content-|x-service-)/', $name) !== 1) {
                $others[$header->getName()] = $header->getBodyAsString();
            }
        }

        return [$tags, $metadata, $others];
    }

    /** The HTML names a file that it shows by its id, or by its name, which Symfony replaces when it writes MIME. */
    private static function attachment(DataPart $part, string $html): Attachment
    {
        $headers = $part->getPreparedHeaders();
        $isInline = strtolower((string) $headers->getHeaderBody('Content-Disposition')) === 'inline';

        $filename = $headers->getHeaderParameter('Content-Disposition', 'filename') ?? 'attachment';
        $id = str_contains($html, 'cid:' . $part->getContentId()) ? $part->getContentId() : $filename;

        return new Attachment(
            $filename,
            $part->getBody(),
            $part->getMediaType() . '/' . $part->getMediaSubtype(),
            $isInline ? $id : null,
        );
    }

    private static function compare(Address $one, Address $other): int
    {
        return strcasecmp($one->getAddress(), $other->getAddress());
    }

    /** With the name as it is: headers would have it encoded. */
    private static function text(Address $address): string
    {
        $name = addcslashes($address->getName(), '"\\');

        return $name === '' ? $address->getAddress() : "\"$name\" <{$address->getAddress()}>";
    }

    /** @param resource|string|null $body */
    private static function content(mixed $body): ?string
    {
        return is_resource($body) ? (string) stream_get_contents($body, offset: 0) : $body;
    }
}
