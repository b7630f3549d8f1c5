<?php

/**
 * The client: sends messages and reads what became of them.
 */

declare(strict_types=1);

namespace Postroad;

use InvalidArgumentException;
use Postroad\Internal\BaseUrl;
use Postroad\Internal\Caller;
use Postroad\Internal\Credential;
use Postroad\Internal\Request;
use Postroad\Internal\SocketTransport;
use SensitiveParameter;

final readonly class Client
{
    public const VERSION = '0.1.0';

    private Caller $caller;

    /**
     * Takes either a token (an API key or a JWT), or the username and password of an SMTP credential.
     *
     * @param float $timeout seconds for one attempt, from connecting to the last byte
     * @param int $maxRetries attempts after the first
     * @param float $maxElapsed seconds for everything: attempts and the pauses between them
     * @param ?string $caFile certificates (PEM) to trust in the place of the system's
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
        int $maxRetries = 4,
        float $maxElapsed = 60.0,
        ?string $caFile = null,
    ) {
        if ($caFile !== null && !is_readable($caFile)) {
            throw new InvalidArgumentException("caFile cannot be read: $caFile");
        }
        $authorization = Credential::authorization($token, $username, $password);
        $transport = new SocketTransport(BaseUrl::parse($baseUrl), $authorization, $caFile);
        $this->caller = new Caller($transport, $timeout, $maxRetries, $maxElapsed);
    }

    /**
     * Hands a message to Postroad. The receipt means that it is stored, not that it has reached an inbox.
     *
     * The key makes repeating safe: within 24 hours, the same key and email are sent once. Without one, a random key
     * covers the retries of this call.
     *
     * @throws PostroadException when the message was not accepted, or nobody knows whether it was
     * @throws InvalidArgumentException when the key or the email cannot be sent at all
     */
    public function send(Email $email, ?string $idempotencyKey = null): Receipt
    {
        $idempotencyKey ??= self::uuid();
        Credential::checkHeader('the idempotency key', $idempotencyKey);
        $request = new Request('POST', '/emails', $idempotencyKey, $email->toJson());

        return $this->caller->call($request, Receipt::fromMembers(...));
    }

    /**
     * Reads a message and the results of its recipients.
     *
     * @throws PostroadException when it could not be read
     * @throws InvalidArgumentException when this cannot be an id
     */
    public function get(string $id): Message
    {
        if (preg_match('/\A[A-Za-z0-9_-]+\z/', $id) !== 1) {
            throw new InvalidArgumentException('a message id is letters, digits, "_" and "-"');
        }

        return $this->caller->call(new Request('GET', "/emails/$id"), Message::fromMembers(...));
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
