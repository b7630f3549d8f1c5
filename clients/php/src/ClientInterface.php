<?php

/**
 * What an application uses of the client: declare this type, and put a mock in its place in tests.
 */

declare(strict_types=1);

namespace Postroad;

use InvalidArgumentException;

interface ClientInterface
{
    /**
     * Hands a message to Postroad. The receipt means that it is stored, not that it has reached an inbox.
     *
     * The key makes repeating safe: within 24 hours, the same key and email are sent once. Without one, a random key
     * covers the retries of this call.
     *
     * @throws PostroadException when the message was not accepted, or nobody knows whether it was
     * @throws InvalidArgumentException when the key or the email cannot be sent at all
     */
    public function send(Email $email, ?string $idempotencyKey = null): Receipt;

    /**
     * Reads a message and the results of its recipients; if asked, also when each is tried next.
     *
     * @throws PostroadException when it could not be read
     * @throws InvalidArgumentException when this cannot be an id
     */
    public function get(string $id, bool $includeQueue = false): Message;

    /**
     * Waits until every recipient of a message has a final status. It is read after 1 second, then in pauses that grow
     * to 10.
     *
     * @param float $timeout seconds; 0 reads it once
     *
     * @throws TimedOutException when it is not final then; its $lastMessage is the message as it was
     * @throws PostroadException when it could not be read
     * @throws InvalidArgumentException when this cannot be an id
     */
    public function wait(string $id, float $timeout = 300.0): Message;
}
