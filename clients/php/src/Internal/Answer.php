<?php

/**
 * Makes of a response what the service meant by it: a receipt or a message, or a failure.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Closure;
use Postroad\Http\Response;
use stdClass;
use UnexpectedValueException;

/** @internal */
final class Answer
{
    private const MAX_QUOTE = 200;

    /**
     * @template T of object
     *
     * @param Closure(Members): T $make
     * @param float $time seconds since 1970, now
     *
     * @return T
     *
     * @throws Failure
     */
    public static function read(Response $response, Closure $make, float $time): object
    {
        // Null is what is no JSON. Neither is half of something. A 204 is an object without members.
        $json = match (true) {
            $response->status === 204 => new stdClass(),
            $response->isCutOff => null,
            default => json_decode($response->body),
        };
        $code = $json->code ?? null;
        if ($response->status >= 400 && is_string($code) && $code !== '') {
            throw self::failure($response, $json, $time, $code, self::text($json->error ?? null) ?? 'no reason given');
        }
        if ($response->status >= 200 && $response->status < 300) {
            try {
                return $make(Members::of($json, 'the response'));
            } catch (UnexpectedValueException $exception) {
                $reason = $exception->getMessage() . ': ' . self::quoteBody($response);
            }
        } elseif ($response->status < 400 && isset($response->headers['location'])) {
            $reason = 'redirects are not followed; this one leads to ' . self::quote($response->headers['location']);
        } else {
            $reason = 'this is not a response of Postroad: ' . self::quoteBody($response);
        }
        throw self::failure($response, $json, $time, 'unexpected_response', $reason);
    }

    /** Text of strangers for a message: one line, valid UTF-8, not long. */
    public static function quote(string $text): string
    {
        // A character has at most 4 bytes; twice as many, since white space shrinks.
        $text = substr($text, 0, 8 * self::MAX_QUOTE);
        $text = json_decode(json_encode($text, JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR));
        $text = trim(preg_replace('/[\s\p{C}]+/u', ' ', $text));
        preg_match('/\A.{0,' . self::MAX_QUOTE . '}/u', $text, $match);

        return $match[0];
    }

    private static function quoteBody(Response $response): string
    {
        return match (true) {
            $response->body === '' => 'it is empty',
            $response->isCutOff => 'it is too long, and begins with ' . self::quote($response->body),
            default => self::quote($response->body),
        };
    }

    private static function failure(
        Response $response,
        mixed $json,
        float $time,
        string $code,
        string $message,
    ): Failure {
        $requestId = $response->headers['x-request-id'] ?? null;

        return new Failure(
            $code,
            $message,
            $response->status,
            self::text($json->request_id ?? null) ?? ($requestId === null ? null : self::quote($requestId)),
            RetryAfter::parse($response->headers['retry-after'] ?? null, $time),
        );
    }

    private static function text(mixed $value): ?string
    {
        return is_string($value) ? $value : null;
    }
}
