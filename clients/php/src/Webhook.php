<?php

/**
 * Tells whether a request to your webhook comes from Postroad, and reads it.
 */

declare(strict_types=1);

namespace Postroad;

use InvalidArgumentException;
use Postroad\Internal\Members;
use SensitiveParameter;
use UnexpectedValueException;

final class Webhook
{
    /**
     * True when the request was signed with the secret, at most so many seconds from now.
     *
     * @param string $rawBody the bytes as they came: `file_get_contents('php://input')`
     * @param ?string $header `Service-Signature`: `$_SERVER['HTTP_SERVICE_SIGNATURE'] ?? null`
     * @param string $secret all of it, `whsec_` included
     * @param ?int $now seconds since 1970, in the place of the clock, for tests
     */
    public static function verify(
        string $rawBody,
        ?string $header,
        #[SensitiveParameter]
        string $secret,
        int $tolerance = 300,
        ?int $now = null,
    ): bool {
        $times = $signatures = [];
        foreach (explode(',', $header ?? '') as $part) {
            [$name, $value] = explode('=', $part, 2) + [1 => ''];
            if ($name === 't') {
                $times[] = $value;
            } elseif ($name === 'v1') {
                $signatures[] = $value;
            }
        }
        if ($secret === '' || count($times) !== 1 || preg_match('/\A[0-9]{1,15}\z/', $times[0]) !== 1) {
            return false;
        }
        if (abs(($now ?? time()) - (int) $times[0]) > $tolerance) {
            return false;
        }
        $expected = hash_hmac('sha256', "$times[0].$rawBody", $secret);
        foreach ($signatures as $signature) {
            if (hash_equals($expected, $signature)) {
                return true;
            }
        }

        return false;
    }

    /**
     * The event of a request that verify() trusts.
     *
     * @param string $rawBody the bytes as they came: `file_get_contents('php://input')`
     * @param ?string $header `Service-Signature`: `$_SERVER['HTTP_SERVICE_SIGNATURE'] ?? null`
     * @param string|list<string> $secret one, or several of which one has to match
     * @param ?int $now seconds since 1970, in the place of the clock, for tests
     *
     * @throws SignatureVerificationException when the request is not to be trusted
     * @throws InvalidArgumentException when it was signed, but is no event
     */
    public static function parseEvent(
        string $rawBody,
        ?string $header,
        #[SensitiveParameter]
        string|array $secret,
        int $tolerance = 300,
        ?int $now = null,
    ): Event {
        foreach ((array) $secret as $each) {
            if (self::verify($rawBody, $header, $each, $tolerance, $now)) {
                return self::readEvent($rawBody);
            }
        }
        $reason = 'the webhook request was not signed with this secret, or not recently';
        throw new SignatureVerificationException("invalid_signature: $reason", 'invalid_signature');
    }

    private static function readEvent(string $rawBody): Event
    {
        try {
            return Event::fromMembers(Members::of(json_decode($rawBody), 'the body'));
        } catch (UnexpectedValueException $exception) {
            $reason = 'the body is signed, but is not an event: ' . $exception->getMessage();
            throw new InvalidArgumentException($reason, 0, $exception);
        }
    }
}
