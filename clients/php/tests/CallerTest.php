<?php

/**
 * Retries: what, how often, after how long, and when no more.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use InvalidArgumentException;
use PHPUnit\Framework\TestCase;
use Postroad\Http\Request;
use Postroad\Http\Response;
use Postroad\Http\TransportException;
use Postroad\Internal\Caller;
use Postroad\PostroadException;
use Postroad\Receipt;
use Postroad\Tests\Support\FakeClock;
use Postroad\Tests\Support\FakeTransport;
use Postroad\Tests\Support\Json;
use RuntimeException;
use SensitiveParameterValue;

final class CallerTest extends TestCase
{
    private FakeClock $clock;
    private FakeTransport $transport;

    public function testTheSameRequestIsSentAgain(): void
    {
        $receipt = $this->call([self::error(429, 'rate_limited'), new Response(202, [], Json::RECEIPT)]);

        self::assertSame('em_1', $receipt->id);
        self::assertCount(2, $this->transport->requests);
        self::assertSame($this->transport->requests[0], $this->transport->requests[1]);
    }

    /** @return array<string, array{Response|TransportException, bool}> */
    public function outcomes(): array
    {
        return [
            '429' => [self::error(429, 'warmup_limited'), true],
            '503' => [self::error(503, 'temporary_failure'), true],
            'a page with 503' => [new Response(503, [], '<html>'), true],
            'in progress' => [self::error(409, 'idempotency_in_progress'), true],
            'no connection' => [TransportException::connectionFailed('refused'), true],
            'no answer' => [TransportException::timedOut('nothing'), true],
            'another 409' => [self::error(409, 'idempotency_conflict'), false],
            '402' => [self::error(402, 'insufficient_credits'), false],
            '500' => [self::error(500, 'internal_error'), true],
            'a page with 500' => [new Response(500, [], '<html>'), true],
            'a page with 502' => [new Response(502, [], '<html>'), true],
            'a page with 504' => [new Response(504, [], '<html>'), true],
            'a page with 408' => [new Response(408, [], '<html>'), true],
            'a page with 404' => [new Response(404, [], '<html>'), false],
            '501' => [self::error(501, 'internal_error'), false],
            'a redirect' => [new Response(307, ['location' => 'http://elsewhere.example'], ''), false],
            'no receipt' => [new Response(200, [], '{}'), false],
            'no HTTP' => [TransportException::unexpectedResponse('not HTTP'), false],
        ];
    }

    /** @dataProvider outcomes */
    public function testWhatIsRetried(Response|TransportException $outcome, bool $isRetried): void
    {
        // Time for pauses of 0.5 and 1 s, and for attempts that take all of their time.
        $error = $this->failingCall([$outcome], timeout: 0.1, maxElapsed: 3.0);

        self::assertSame($isRetried, $error->isRetryable());
        self::assertCount($isRetried ? 3 : 1, $this->transport->requests);
        self::assertSame($isRetried, str_ends_with($error->getMessage(), '3 attempts)'));
        self::assertSame('order-1', $error->idempotencyKey);
    }

    public function testPausesDoubleUpTo8Seconds(): void
    {
        $this->failingCall([self::error(503, 'service_unavailable')], maxElapsed: 32.0);
        self::assertSame([0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0], $this->clock->pauses);

        $this->failingCall([self::error(503, 'service_unavailable')], maxElapsed: 16.0, random: 0.0);
        self::assertSame([0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0], $this->clock->pauses);
    }

    public function testRetryAfterIsAddedToThePause(): void
    {
        $error = $this->failingCall([self::error(429, 'rate_limited', ['retry-after' => '7'])], maxElapsed: 20.0);

        self::assertSame([7.5, 8.0], $this->clock->pauses);
        self::assertSame(7.0, $error->retryAfter);
    }

    public function testAWaitBeyondMaxElapsedIsNotBegun(): void
    {
        $this->failingCall([self::error(503, 'service_unavailable')], maxElapsed: 0.5);
        self::assertSame([], $this->clock->pauses);

        foreach (['60', str_repeat('9', 400)] as $seconds) {
            $this->failingCall([self::error(429, 'warmup_limited', ['retry-after' => $seconds])]);
            self::assertSame([], $this->clock->pauses);
        }
    }

    public function testAnAttemptGetsWhatIsLeft(): void
    {
        $error = $this->failingCall([TransportException::timedOut('nothing')]);

        self::assertSame([30.0, 29.5], $this->transport->timeouts);
        self::assertSame('timed_out: nothing (2 attempts)', $error->getMessage());
    }

    public function testRetriesCanBeTurnedOff(): void
    {
        $error = $this->failingCall([self::error(503, 'service_unavailable')], maxElapsed: 0.0);

        self::assertCount(1, $this->transport->requests);
        self::assertSame('503 service_unavailable: no (req_1)', $error->getMessage());
        self::assertSame(503, $error->getCode());
    }

    /** @return array<string, array{float, float}> */
    public function badBounds(): array
    {
        return [
            'timeout 0' => [0.0, 60.0],
            'timeout NAN' => [NAN, 60.0],
            'maxElapsed -1' => [30.0, -1.0],
            'maxElapsed INF' => [30.0, INF],
        ];
    }

    /** @dataProvider badBounds */
    public function testBadBoundsAreRefused(float $timeout, float $maxElapsed): void
    {
        $this->expectException(InvalidArgumentException::class);
        new Caller(new FakeTransport(new FakeClock()), $timeout, $maxElapsed);
    }

    public function testWhatATransportSaysOfItsReasonIsKept(): void
    {
        $reason = new RuntimeException('cURL error 7');
        $error = $this->failingCall([TransportException::connectionFailed('refused', $reason)]);

        self::assertSame($reason, $error->getPrevious());
    }

    /** @param list<Response|TransportException> $outcomes */
    private function call(
        array $outcomes,
        float $timeout = 30.0,
        float $maxElapsed = 60.0,
        float $random = 1.0,
    ): Receipt {
        $this->clock = new FakeClock($random);
        $this->transport = new FakeTransport($this->clock, ...$outcomes);
        $caller = new Caller($this->transport, $timeout, $maxElapsed, $this->clock);

        $request = new Request('POST', 'http://127.0.0.1/emails', new SensitiveParameterValue('Bearer t'), 'order-1', '{}');

        return $caller->call($request, Receipt::fromMembers(...));
    }

    /** @param list<Response|TransportException> $outcomes */
    private function failingCall(array $outcomes, mixed ...$bounds): PostroadException
    {
        try {
            $this->call($outcomes, ...$bounds);
        } catch (PostroadException $error) {
            return $error;
        }
        self::fail('there was no error');
    }

    /** @param array<string, string> $headers */
    private static function error(int $status, string $code, array $headers = []): Response
    {
        return new Response($status, $headers, Json::error($code));
    }
}
