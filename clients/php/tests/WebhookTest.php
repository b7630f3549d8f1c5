<?php

/**
 * Signatures of webhooks, by the vectors that all clients share.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use InvalidArgumentException;
use PHPUnit\Framework\TestCase;
use Postroad\Event;
use Postroad\SignatureVerificationException;
use Postroad\Webhook;
use Postroad\WebhookReceiver;
use RuntimeException;

final class WebhookTest extends TestCase
{
    public function testTheReceiverGivesEventsAndRefusesOthers(): void
    {
        $ids = [];
        $receiver = new WebhookReceiver(['whsec_old', 'whsec_1'], static function (Event $event) use (&$ids): void {
            $ids[] = $event->id === 'evt_bad' ? throw new RuntimeException('the database is away') : $event->id;
        });
        $time = time();
        $sign = static fn (string $body): string => "t=$time,v1=" . hash_hmac('sha256', "$time.$body", 'whsec_1');
        $body = '{"id":"evt_1","type":"email.delivered"}';
        self::assertSame(204, $receiver->handle($body, $sign($body)));
        self::assertSame(400, $receiver->handle("$body ", $sign($body)));
        self::assertSame(400, $receiver->handle($body, null));
        self::assertSame(400, $receiver->handle('[]', $sign('[]')));
        self::assertSame(['evt_1'], $ids);
        self::assertStringNotContainsString('whsec_1', print_r($receiver, true));
        $this->expectExceptionMessage('the database is away');
        $body = str_replace('evt_1', 'evt_bad', $body);
        $receiver->handle($body, $sign($body));
    }

    public function testTheReceiverNeedsASecret(): void
    {
        $this->expectException(InvalidArgumentException::class);
        new WebhookReceiver('', static fn (): null => null);
    }

    /** @return iterable<string, array{array<string, mixed>}> */
    public function vectors(): iterable
    {
        $text = (string) file_get_contents(__DIR__ . '/../../conformance/webhook-signatures.json');
        foreach (json_decode($text, true, flags: JSON_THROW_ON_ERROR)['vectors'] as $vector) {
            yield $vector['name'] => [$vector];
        }
    }

    /**
     * @dataProvider vectors
     *
     * @param array<string, mixed> $vector
     */
    public function testVector(array $vector): void
    {
        self::assertSame($vector['valid'], Webhook::verify(
            base64_decode($vector['body_base64']),
            $vector['header'],
            $vector['secret'],
            tolerance: $vector['tolerance'],
            now: $vector['now'],
        ));
    }

    public function testTheClockAndTheToleranceByThemselves(): void
    {
        $header = static fn (int $time): string => "t=$time,v1=" . hash_hmac('sha256', "$time.{}", 'whsec_1');

        self::assertTrue(Webhook::verify('{}', $header(time()), 'whsec_1'));
        self::assertFalse(Webhook::verify('{}', $header(time() - 1000), 'whsec_1'));
        self::assertTrue(Webhook::verify('{}', $header(time() - 1000), 'whsec_1', tolerance: 2000));
    }

    private const BOUNCED = '{"id":"evt_1","type":"email.bounced","created_at":"2026-01-31T12:00:03.811Z","new":[],'
        . '"data":{"email_id":"em_1","recipient_id":"rcp_1","to":"bounce@example.net","from":"bounces@example.com",'
        . '"subject":"Hello","smtp_code":550,"smtp_response":"5.1.1 user unknown"}}';

    public function testAnEvent(): void
    {
        $event = Webhook::parseEvent(self::BOUNCED, self::signature(self::BOUNCED), ['', 'whsec_0', 'whsec_1']);

        self::assertSame(['evt_1', 'email.bounced'], [$event->id, $event->type]);
        self::assertSame('2026-01-31T12:00:03.811+00:00', $event->createdAt?->format(DATE_RFC3339_EXTENDED));
        self::assertSame([
            'emailId' => 'em_1',
            'recipientId' => 'rcp_1',
            'to' => 'bounce@example.net',
            'from' => 'bounces@example.com',
            'subject' => 'Hello',
            'smtpCode' => 550,
            'smtpResponse' => '5.1.1 user unknown',
            'test' => false,
        ], get_object_vars($event->data));
        self::assertEquals($event, Webhook::parseEvent(self::BOUNCED, self::signature(self::BOUNCED), 'whsec_1'));
    }

    /** @return array<string, array{string, ?string, string|list<string>}> */
    public function forgeries(): array
    {
        $signature = self::signature(self::BOUNCED);

        return [
            'another secret' => [self::BOUNCED, $signature, 'whsec_2'],
            'no secret' => [self::BOUNCED, self::signature(self::BOUNCED, ''), ''],
            'no secrets' => [self::BOUNCED, $signature, []],
            'no header' => [self::BOUNCED, null, 'whsec_1'],
            'another body' => [self::BOUNCED . ' ', $signature, 'whsec_1'],
            'an old one' => [self::BOUNCED, self::signature(self::BOUNCED, time: time() - 1000), 'whsec_1'],
        ];
    }

    /**
     * @dataProvider forgeries
     *
     * @param string|list<string> $secret
     */
    public function testAForgedEvent(string $body, ?string $header, string|array $secret): void
    {
        $this->expectException(SignatureVerificationException::class);
        Webhook::parseEvent($body, $header, $secret);
    }

    public function testWhatIsSignedAndNoEvent(): void
    {
        foreach (['<html>', '[]', '{}', '{"id":"evt_1"}', '{"id":7,"type":"x"}', "{\"id\":\"\xff\",\"type\":\"x\"}",
            '{"id":"evt_1","type":"x","data":[]}', '{"id":"evt_1","type":"x","data":{"test":1}}',
            '{"id":"evt_1","type":"x","created_at":"soon"}'] as $body) {
            try {
                Webhook::parseEvent($body, self::signature($body), 'whsec_1');
                self::fail("not refused: $body");
            } catch (InvalidArgumentException $exception) {
                self::assertStringStartsWith('the body is signed, but is not an event: ', $exception->getMessage());
            }
        }
    }

    private static function signature(string $body, string $secret = 'whsec_1', ?int $time = null): string
    {
        $time ??= time();

        return "t=$time,v1=" . hash_hmac('sha256', "$time.$body", $secret);
    }
}
