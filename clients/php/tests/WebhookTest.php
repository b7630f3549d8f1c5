<?php

/**
 * Signatures of webhooks, by the vectors that all clients share.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use PHPUnit\Framework\TestCase;
use Postroad\Webhook;

final class WebhookTest extends TestCase
{
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
}
