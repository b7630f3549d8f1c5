<?php

/**
 * What the client makes of answers: receipts, messages, errors, and what Postroad does not say.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use PHPUnit\Framework\TestCase;
use Postroad\Internal\Answer;
use Postroad\Internal\Failure;
use Postroad\Http\Response;
use Postroad\Message;
use Postroad\PostroadException;
use Postroad\Receipt;
use Postroad\Tests\Support\Json;

final class AnswerTest extends TestCase
{
    public function testAReceiptWithEverything(): void
    {
        $receipt = Answer::read(new Response(202, [], json_encode([
            'id' => 'em_1', 'status' => 'queued', 'source' => 'api', 'request_id' => 'req_1', 'from' => 'a@example.com',
            'to' => ['b@example.com', 'c@example.com'], 'cc' => [], 'bcc' => ['d@example.com'], 'reply_to' => null,
            'subject' => 'Grüße', 'billing_status' => 'reserved', 'recipient_count' => 3, 'credits_reserved' => 3,
            'headers' => ['X-A' => '1'], 'tags' => ['t'], 'new' => ['unknown'],
            'attachments' => [
                ['filename' => 'a.txt', 'content_type' => 'text/plain', 'size' => 3, 'content_id' => 'x'],
            ],
        ])), Receipt::fromMembers(...), 0.0);

        self::assertSame(['b@example.com', 'c@example.com'], $receipt->to);
        self::assertSame([], $receipt->cc);
        self::assertNull($receipt->replyTo);
        self::assertSame('Grüße', $receipt->subject);
        self::assertSame(3, $receipt->recipientCount);
        self::assertSame(['X-A' => '1'], $receipt->headers);
        self::assertSame(['a.txt', 'text/plain', 3, 'x'], array_values(get_object_vars($receipt->attachments[0])));
    }

    public function testRepliesThatGoToSeveralAddresses(): void
    {
        $replies = ['c@example.com', 'd@example.com'];
        $read = static fn (mixed $replyTo): Receipt => Answer::read(
            new Response(202, [], json_encode(['id' => 'em_1', 'reply_to' => $replyTo])),
            Receipt::fromMembers(...),
            0.0,
        );

        self::assertSame($replies, $read($replies)->replyTo);
        self::assertSame('c@example.com', $read('c@example.com')->replyTo);
    }

    public function testAMessageWithTimes(): void
    {
        $message = Answer::read(new Response(200, [], json_encode([
            'id' => 'em_1', 'status' => 'brand_new', 'created_at' => '2026-01-31T12:00:00.123Z', 'recipients' => [
                ['email' => 'a@example.com', 'last_smtp_code' => 250, 'delivered_at' => '2026-01-31T13:00:01+01:00'],
            ],
        ])), Message::fromMembers(...), 0.0);

        self::assertSame('brand_new', $message->status);
        self::assertSame('2026-01-31T12:00:00.123+00:00', $message->createdAt?->format(DATE_RFC3339_EXTENDED));
        self::assertSame(1769860801, $message->recipients[0]->deliveredAt?->getTimestamp());
        self::assertNull($message->recipients[0]->bouncedAt);
    }

    /** @return array<string, array{string}> */
    public function wrongMessages(): array
    {
        return [
            'nothing' => [''],
            'no JSON' => ['<html>'],
            'half of it' => ['{"id":"em_1","status":"quе'],
            'a list' => ['[]'],
            'a string' => ['"id"'],
            'null' => ['null'],
            'no id' => ['{"status":"queued"}'],
            'an empty id' => ['{"id":"","status":"queued"}'],
            'an id that is a number' => ['{"id":1,"status":"queued"}'],
            'no status' => ['{"id":"em_1"}'],
            'a count that is a string' => ['{"id":"em_1","status":"queued","recipient_count":"1"}'],
            'a time that is a word' => ['{"id":"em_1","status":"queued","created_at":"tomorrow"}'],
            'a time of no month' => ['{"id":"em_1","status":"queued","created_at":"2026-13-01T00:00:00Z"}'],
            'recipients that are an object' => ['{"id":"em_1","status":"queued","recipients":{}}'],
            'a recipient that is a string' => ['{"id":"em_1","status":"queued","recipients":["a@example.com"]}'],
            'a name that PHP cannot have' => ['{"id":"em_1","status":"queued","\u0000x":1}'],
            'deep nesting' => [str_repeat('[', 100_000)],
            'gzip' => [gzencode('{"id":"em_1","status":"queued"}')],
        ];
    }

    /** @dataProvider wrongMessages */
    public function testA200ThatIsNoMessage(string $body): void
    {
        $failure = self::failure(new Response(200, ['x-request-id' => 'req_2'], $body));

        self::assertSame('unexpected_response', $failure->errorCode);
        self::assertSame(200, $failure->status);
        self::assertSame('req_2', $failure->requestId);
        self::assertMatchesRegularExpression('/\A[^\p{C}]{1,300}\z/u', $failure->getMessage());
    }

    public function testListsAndMapsOfAReceiptAreOfStrings(): void
    {
        foreach (['"to":[1]', '"to":"a@example.com"', '"reply_to":[1]', '"headers":{"a":1}', '"headers":["a"]'] as $member) {
            try {
                Answer::read(new Response(202, [], "{\"id\":\"em_1\",$member}"), Receipt::fromMembers(...), 0.0);
                self::fail($member);
            } catch (Failure $failure) {
                self::assertSame('unexpected_response', $failure->errorCode);
            }
        }
    }

    public function testTheErrorObject(): void
    {
        $body = Json::error('insufficient_credits', 'the account has 3 credits', 'req_7');
        $failure = self::failure(new Response(402, ['x-request-id' => 'req_x', 'retry-after' => '5'], $body));

        self::assertSame('insufficient_credits', $failure->errorCode);
        self::assertSame('the account has 3 credits', $failure->getMessage());
        self::assertSame('req_7', $failure->requestId);
        self::assertSame(5.0, $failure->retryAfter);
    }

    public function testAnErrorNeedsNoMoreThanACode(): void
    {
        $failure = self::failure(new Response(400, [], '{"code":"invalid_request","error":5,"request_id":[]}'));

        self::assertSame('invalid_request', $failure->errorCode);
        self::assertNull($failure->requestId);
    }

    public function testAnEmptyCodeIsNone(): void
    {
        $failure = self::failure(new Response(400, [], '{"code":"","error":"no"}'));

        self::assertSame('unexpected_response', $failure->errorCode);
    }

    public function testAPageOfAProxyIsQuoted(): void
    {
        $page = "<html>\r\n\0<b>Bad\xff gateway</b>" . str_repeat('ä', 5000);
        $failure = self::failure(new Response(502, ['retry-after' => '3'], $page));

        self::assertSame('unexpected_response', $failure->errorCode);
        self::assertStringContainsString("<html> <b>Bad\u{fffd} gateway</b>ää", $failure->getMessage());
        self::assertLessThanOrEqual(200, substr_count($failure->getMessage(), 'ä'));
        self::assertSame(3.0, $failure->retryAfter);
    }

    public function testARedirectSaysWhereTo(): void
    {
        $location = 'https://elsewhere.example/' . str_repeat('a', 1000);
        $failure = self::failure(new Response(307, ['location' => $location], Json::MESSAGE));

        self::assertSame('unexpected_response', $failure->errorCode);
        self::assertStringContainsString('redirects are not followed', $failure->getMessage());
        self::assertStringEndsWith(substr($location, 0, 200), $failure->getMessage());
    }

    public function testAnAnswerThatIsTooLong(): void
    {
        $failure = self::failure(new Response(200, [], Json::MESSAGE, isCutOff: true));

        self::assertSame('unexpected_response', $failure->errorCode);
        self::assertStringContainsString('too long', $failure->getMessage());
    }

    public function testTheHelpersOfAnError(): void
    {
        self::assertTrue((new PostroadException('', 'insufficient_credits', 402))->isInsufficientCredits());
        self::assertTrue((new PostroadException('', 'idempotency_conflict', 409))->isIdempotencyConflict());
        self::assertFalse((new PostroadException('', 'conflict', 409))->isIdempotencyConflict());
    }

    private static function failure(Response $response): Failure
    {
        try {
            Answer::read($response, Message::fromMembers(...), 0.0);
        } catch (Failure $failure) {
            return $failure;
        }
        self::fail('there was no failure');
    }
}
