<?php

/**
 * The client: sends messages and reads their delivery status.
 */

declare(strict_types=1);

namespace Postroad;

use ArrayObject;
use DateTimeInterface;
use InvalidArgumentException;
use Postroad\Http\SocketTransport;
use Postroad\Http\Transport;
use Postroad\Internal\Api;
use Postroad\Internal\BaseUrl;
use Postroad\Internal\Caller;
use Postroad\Internal\Credential;
use Postroad\Internal\Members;
use Postroad\Internal\Poller;
use Postroad\Resources\ApiKeys;
use Postroad\Resources\Domains;
use Postroad\Resources\Messages;
use Postroad\Resources\Suppressions;
use Postroad\Resources\Templates;
use Postroad\Resources\Webhooks;
use SensitiveParameter;

final readonly class Client implements ClientInterface
{
    public const VERSION = '0.1.0';

    public Messages $messages;
    public Templates $templates;
    public Suppressions $suppressions;
    public Domains $domains;
    public Webhooks $webhooks;
    public ApiKeys $apiKeys;
    private Api $api;

    /**
     * Takes either a token (an API key or a JWT), or the username and password of an SMTP credential.
     *
     * @param float $timeout seconds for one attempt, from connecting to the last byte
     * @param float $maxElapsed seconds for everything: attempts and the pauses between them; 0 turns retries off
     * @param ?string $caFile certificates (PEM) to trust in the place of the system's
     * @param ?Transport $transport carries the requests in the place of a SocketTransport
     *
     * @throws InvalidArgumentException when an argument cannot work
     */
    public function __construct(
        string $baseUrl,
        #[SensitiveParameter]
        ?string $token = null,
        #[SensitiveParameter]
        ?string $username = null,
        #[SensitiveParameter]
        ?string $password = null,
        float $timeout = 30.0,
        float $maxElapsed = 60.0,
        ?string $caFile = null,
        ?Transport $transport = null,
    ) {
        if ($caFile !== null && $transport !== null) {
            throw new InvalidArgumentException('caFile is for the SocketTransport; another transport has its own');
        }
        $authorization = Credential::authorization($token, $username, $password);
        $url = (string) BaseUrl::parse($baseUrl);
        $caller = new Caller($transport ?? new SocketTransport($caFile), $timeout, $maxElapsed);
        $this->api = new Api($url, $authorization, $caller);
        $this->messages = new Messages($this->api);
        $this->templates = new Templates($this->api);
        $this->suppressions = new Suppressions($this->api);
        $this->domains = new Domains($this->api);
        $this->webhooks = new Webhooks($this->api);
        $this->apiKeys = new ApiKeys($this->api);
    }

    public function send(Email $email, ?string $idempotencyKey = null): Receipt
    {
        return $this->api->send('/emails', $email->toMembers(), Receipt::fromMembers(...), $idempotencyKey);
    }

    public function get(string $id, bool $includeQueue = false): Message
    {
        $path = '/emails/' . Api::id($id) . ($includeQueue ? '?include=queue' : '');

        return $this->api->read('GET', $path, null, Message::fromMembers(...));
    }

    /**
     * Sends many messages with one request, and gives the results in order: each has an `id` or an `error`.
     *
     * @param list<Email> $emails
     * @param bool $allOrNothing refuse all of them when one is refused
     *
     * @return list<array<string, mixed>>
     *
     * @throws PostroadException when the batch was not accepted, or nobody knows whether it was
     */
    public function sendBatch(array $emails, ?string $idempotencyKey = null, bool $allOrNothing = false): array
    {
        $members = array_map(static fn (Email $email): array => $email->toMembers(), array_values($emails));
        $body = ['emails' => $members] + ($allOrNothing ? ['all_or_nothing' => true] : []);

        return $this->api->send('/emails/batch', $body, self::results(...), $idempotencyKey)->getArrayCopy();
    }

    /**
     * Sends one template to many recipients, each with a message of their own.
     *
     * @param array<string, mixed> $batch as the API names it: from, template, recipients and so on
     *
     * @return list<array<string, mixed>>
     *
     * @throws PostroadException when the batch was not accepted, or nobody knows whether it was
     */
    public function sendTemplateBatch(array $batch, ?string $idempotencyKey = null): array
    {
        return $this->api->send('/emails/batch', $batch, self::results(...), $idempotencyKey)->getArrayCopy();
    }

    /**
     * Sends a scheduled message at another time, or now.
     *
     * @return array<string, mixed> `id`, `status`, `send_at`
     */
    public function reschedule(string $id, DateTimeInterface|string|null $sendAt): array
    {
        return $this->api->call('PATCH', '/emails/{}', [Api::id($id)], body: ['send_at' => $sendAt]);
    }

    /**
     * Cancels the recipients for which no attempt has begun.
     *
     * @return array<string, mixed> `id`, and `recipients` with `canceled` of each
     */
    public function cancel(string $id): array
    {
        return $this->api->call('POST', '/emails/{}/cancel', [Api::id($id)], isRepeatable: true);
    }

    /**
     * What became of the mail of the last `24h`, which is the default, `7d` or `30d`.
     *
     * @return array<string, mixed>
     */
    public function statistics(?string $period = null): array
    {
        return $this->api->call('GET', '/v1/statistics', query: ['period' => $period], member: 'statistics');
    }

    /**
     * The balance, and whether the account may send.
     *
     * @return array<string, mixed>
     */
    public function account(): array
    {
        return $this->api->call('GET', '/v1/account', member: 'account');
    }

    public function wait(string $id, float $timeout = 300.0): Message
    {
        return (new Poller())->wait(fn (): Message => $this->get($id), $timeout);
    }

    /** @return ArrayObject<int, array<string, mixed>> */
    private static function results(Members $members): ArrayObject
    {
        return new ArrayObject($members->having('results')->toArray()['results']);
    }
}
