<?php

/**
 * Which class an error is of.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use PHPUnit\Framework\TestCase;
use Postroad\AuthenticationException;
use Postroad\Client;
use Postroad\ConnectionFailedException;
use Postroad\Http\Response;
use Postroad\Http\TransportException;
use Postroad\IdempotencyException;
use Postroad\InsufficientCreditsException;
use Postroad\InvalidRequestException;
use Postroad\NotFoundException;
use Postroad\PermissionDeniedException;
use Postroad\PostroadException;
use Postroad\RateLimitException;
use Postroad\ServerException;
use Postroad\Tests\Support\FakeClock;
use Postroad\Tests\Support\FakeTransport;
use Postroad\Tests\Support\Json;
use Postroad\TimedOutException;
use Postroad\UnexpectedResponseException;

final class ErrorKindsTest extends TestCase
{
    /** @return iterable<string, array{Response|TransportException, class-string<PostroadException>}> */
    public function outcomes(): iterable
    {
        foreach ([
            [400, 'invalid_request', InvalidRequestException::class],
            [408, '', InvalidRequestException::class],
            [413, 'payload_too_large', InvalidRequestException::class],
            [415, 'invalid_request', InvalidRequestException::class],
            [422, 'invalid_request', InvalidRequestException::class],
            [401, 'unauthorized', AuthenticationException::class],
            [402, 'insufficient_credits', InsufficientCreditsException::class],
            [402, '', InsufficientCreditsException::class],
            [403, 'insufficient_credits', InsufficientCreditsException::class],
            [403, 'account_suspended', PermissionDeniedException::class],
            [404, 'not_found', NotFoundException::class],
            [409, 'idempotency_conflict', IdempotencyException::class],
            [409, 'idempotency_in_progress', IdempotencyException::class],
            [429, 'warmup_limited', RateLimitException::class],
            [500, 'internal_error', ServerException::class],
            [502, '', ServerException::class],
            [503, 'timed_out', ServerException::class],
            [599, '', ServerException::class],
            [200, '', UnexpectedResponseException::class],
            [302, '', UnexpectedResponseException::class],
        ] as [$status, $code, $class]) {
            $body = $code === '' ? '<html>' : Json::error($code);
            yield "$status $code" => [new Response($status, [], $body), $class];
        }
        yield 'no connection' => [TransportException::connectionFailed('refused'), ConnectionFailedException::class];
        yield 'no response' => [TransportException::timedOut('nothing'), TimedOutException::class];
        yield 'no HTTP' => [TransportException::unexpectedResponse('SMTP'), UnexpectedResponseException::class];
    }

    /**
     * @dataProvider outcomes
     *
     * @param class-string<PostroadException> $class
     */
    public function testKind(Response|TransportException $outcome, string $class): void
    {
        $transport = new FakeTransport(new FakeClock(), $outcome);
        try {
            (new Client('http://127.0.0.1', token: 't', maxElapsed: 0.0, transport: $transport))->get('em_1');
            self::fail('there was no error');
        } catch (PostroadException $error) {
            self::assertSame($class, $error::class);
        }
    }
}
