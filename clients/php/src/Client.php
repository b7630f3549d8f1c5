<?php

/**
 * The client: sends messages and reads their delivery status.
 */

declare(strict_types=1);

namespace Postroad;

use InvalidArgumentException;
use Postroad\Http\Request;
use Postroad\Http\SocketTransport;
use Postroad\Http\Transport;
use Postroad\Internal\BaseUrl;
use Postroad\Internal\Caller;
use Postroad\Internal\Credential;
use Postroad\Internal\Poller;
use SensitiveParameter;
use SensitiveParameterValue;

final readonly class Client implements ClientInterface
{
    public const VERSION = '0.1.0';

    private string $baseUrl;
    private SensitiveParameterValue $authorization;
    private Caller $caller;

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
        $this->authorization = Credential::authorization($token, $username, $password);
        $this->baseUrl = (string) BaseUrl::parse($baseUrl);
        $this->caller = new Caller($transport ?? new SocketTransport($caFile), $timeout, $maxElapsed);
    }

    public function send(Email $email, ?string $idempotencyKey = null): Receipt
    {
        $idempotencyKey ??= self::uuid();
        Credential::checkHeader('the idempotency key', $idempotencyKey);
        $url = "$this->baseUrl/emails";
        $request = new Request('POST', $url, $this->authorization, $idempotencyKey, $email->toJson());

        return $this->caller->call($request, Receipt::fromMembers(...));
    }

    public function get(string $id): Message
    {
        if (preg_match('/\A[A-Za-z0-9_-]+\z/', $id) !== 1) {
            throw new InvalidArgumentException('a message id is letters, digits, "_" and "-"');
        }
        $request = new Request('GET', "$this->baseUrl/emails/$id", $this->authorization);

        return $this->caller->call($request, Message::fromMembers(...));
    }

    public function wait(string $id, float $timeout = 300.0): Message
    {
        return (new Poller())->wait(fn (): Message => $this->get($id), $timeout);
    }

    /** A random UUID (version 4). */
    private static function uuid(): string
    {
        $bytes = random_bytes(16);
        $bytes[6] = chr(ord($bytes[6]) & 0x0f | 0x40);
        $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);

        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
    }
}
