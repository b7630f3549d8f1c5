<?php

/**
 * Waiting for a final status, on a clock that moves only when somebody sleeps.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use InvalidArgumentException;
use PHPUnit\Framework\TestCase;
use Postroad\Client;
use Postroad\Http\Response;
use Postroad\Internal\Poller;
use Postroad\Message;
use Postroad\NotFoundException;
use Postroad\Recipient;
use Postroad\Tests\Support\FakeClock;
use Postroad\Tests\Support\FakeTransport;
use Postroad\Tests\Support\Json;
use Postroad\TimedOutException;

final class PollerTest extends TestCase
{
    public function testItReadsUntilEveryRecipientIsFinal(): void
    {
        $clock = new FakeClock();
        $messages = [...array_fill(0, 8, self::message('delivered', 'deferred')), self::message('delivered', 'bounced')];
        $message = (new Poller($clock))->wait(static function () use (&$messages): Message {
            return array_shift($messages);
        }, 300.0);

        self::assertSame('bounced', $message->recipients[1]->status);
        self::assertSame([], $messages);
        self::assertSame([1.0, 1.5, 2.25, 3.375, 5.0625, 7.59375, 10.0, 10.0], $clock->pauses);
    }

    /** @return array<string, array{float, list<float>}> */
    public function timeouts(): array
    {
        return ['none' => [0.0, []], 'short' => [0.5, [0.5]], 'longer' => [3.5, [1.0, 1.5, 1.0]]];
    }

    /**
     * @dataProvider timeouts
     *
     * @param list<float> $pauses
     */
    public function testItEndsWithTheTimeAndTheLastMessage(float $timeout, array $pauses): void
    {
        $clock = new FakeClock();
        $reads = 0;
        try {
            (new Poller($clock))->wait(static function () use (&$reads): Message {
                $reads++;

                return self::message('queued');
            }, $timeout);
            self::fail('it is not final');
        } catch (TimedOutException $error) {
            self::assertSame("timed_out: em_1 is not final after $timeout s", $error->getMessage());
            self::assertSame(['timed_out', null, null], [$error->errorCode, $error->status, $error->idempotencyKey]);
            self::assertTrue($error->isRetryable());
            self::assertSame('queued', $error->lastMessage?->recipients[0]->status);
        }
        self::assertSame($pauses, $clock->pauses);
        self::assertSame(count($pauses) + 1, $reads);
    }

    public function testTheErrorOfGetEndsIt(): void
    {
        $transport = new FakeTransport(new FakeClock(), new Response(404, [], Json::error('not_found')));
        $this->expectException(NotFoundException::class);
        (new Client('http://127.0.0.1', token: 't', transport: $transport))->wait('em_1');
    }

    public function testATimeoutThatIsNoneIsRefused(): void
    {
        foreach ([-1.0, INF, NAN] as $timeout) {
            try {
                (new Poller())->wait(static fn (): Message => self::message('delivered'), $timeout);
                self::fail('it was not refused');
            } catch (InvalidArgumentException) {
                $this->addToAssertionCount(1);
            }
        }
    }

    public function testWhatIsFinal(): void
    {
        self::assertTrue(self::message('delivered')->isFinal());
        self::assertTrue(self::message('bounced', 'failed', 'delivered')->isFinal());
        self::assertTrue(self::message('canceled', 'expired')->isFinal());
        self::assertFalse(self::message()->isFinal());
        self::assertFalse(self::message('delivered', 'snoozed')->isFinal());
        self::assertFalse(self::message(null)->isFinal());
    }

    private static function message(?string ...$statuses): Message
    {
        $recipient = static fn (?string $status): Recipient => new Recipient(status: $status);

        return new Message('em_1', 'partial', recipients: array_map($recipient, $statuses));
    }
}
