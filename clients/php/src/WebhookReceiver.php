<?php

/**
 * Receives webhooks in an application of any framework: gives the event of a request to a function, and tells the
 * status to respond with.
 */

declare(strict_types=1);

namespace Postroad;

use Closure;
use InvalidArgumentException;
use SensitiveParameter;
use SensitiveParameterValue;

final readonly class WebhookReceiver
{
    private SensitiveParameterValue $secret;

    /**
     * @param string|list<string> $secret one, or several of which one has to match
     * @param Closure(Event): void $receive an exception of it is yours, and Postroad sends the event again
     */
    public function __construct(#[SensitiveParameter] string|array $secret, private Closure $receive)
    {
        if ((array) $secret === [] || in_array('', (array) $secret, true)) {
            throw new InvalidArgumentException('a webhook needs a secret that is not empty');
        }
        $this->secret = new SensitiveParameterValue($secret);
    }

    /**
     * @param string $rawBody the bytes as they came: `$request->getContent()` in Symfony and Laravel
     * @param ?string $header `Service-Signature`: `$request->headers->get('Service-Signature')`
     *
     * @return int 204; or 400 for a request that Postroad has not made
     */
    public function handle(string $rawBody, ?string $header): int
    {
        try {
            $event = Webhook::parseEvent($rawBody, $header, $this->secret->getValue());
        } catch (SignatureVerificationException | InvalidArgumentException) {
            return 400;
        }
        ($this->receive)($event);

        return 204;
    }
}
