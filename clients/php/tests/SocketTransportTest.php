<?php

/**
 * Connections that break, hang or say something odd. Every attempt ends, with the reason in its error.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use PHPUnit\Framework\TestCase;
use Postroad\Attachment;
use Postroad\Client;
use Postroad\Email;
use Postroad\PostroadException;
use Postroad\Tests\Support\Json;
use Postroad\Tests\Support\Server;

final class SocketTransportTest extends TestCase
{
    private const HEAD = "HTTP/1.1 200 OK\r\nContent-Length: 34\r\n\r\n";

    /** @return array<string, array{array<string, mixed>, string, string}> */
    public function brokenSteps(): array
    {
        $chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n22\r\n";
        $json = Json::MESSAGE;

        return [
            'closed before the answer' => [Server::step(''), 'connection_failed', 'closed the connection'],
            'closed in the head' => [Server::step('HTTP/1.1 20'), 'connection_failed', 'closed the connection'],
            'closed in the body' => [Server::step(self::HEAD . '{'), 'connection_failed', 'closed the connection'],
            'closed before the last chunk' => [Server::step("$chunked$json\r\n"), 'connection_failed', 'closed'],
            'reset before the answer' => [Server::step('', 'reset'), 'connection_failed', 'it was reset'],
            'reset in the body' => [Server::step(self::HEAD . '{', 'reset'), 'connection_failed', 'it was reset'],
            'reset in a body without length' => [
                Server::step("HTTP/1.1 200 OK\r\n\r\n$json", 'reset'),
                'connection_failed',
                'it was reset',
            ],
            'no answer' => [Server::step('', 'hang'), 'timed_out', 'no whole answer from 127.0.0.1:'],
            'half an answer' => [Server::step(self::HEAD . '{', 'hang'), 'timed_out', 'within 0.1 s'],
            'a head that trickles' => [Server::step("HTTP/1.1 200 OK\r\nX: ", 'trickle'), 'timed_out', 'within 0.1 s'],
            'a body that trickles' => [Server::step("HTTP/1.1 200 OK\r\n\r\n", 'trickle'), 'timed_out', 'within 0.1 s'],
            'another protocol' => [Server::step("220 mail\r\n", 'hang'), 'unexpected_response', 'not HTTP'],
        ];
    }

    /**
     * @dataProvider brokenSteps
     *
     * @param array<string, mixed> $step
     */
    public function testABrokenAnswer(array $step, string $code, string $reason): void
    {
        $server = new Server([$step]);
        $timeout = $code === 'timed_out' ? 0.1 : 30.0;
        $error = self::failingGet(new Client($server->url(), token: 't', timeout: $timeout, maxRetries: 0));

        self::assertSame($code, $error->errorCode);
        self::assertNull($error->status);
        self::assertStringContainsString($reason, $error->getMessage());
    }

    public function testNobodyListens(): void
    {
        $server = new Server([]);
        $server->stop();
        $error = self::failingGet(new Client($server->url(), token: 't', maxRetries: 0));

        self::assertSame(
            "connection_failed: could not connect to $server->address: Connection refused",
            $error->getMessage(),
        );
    }

    public function testAnAnswerIsWholeBeforeTheConnectionCloses(): void
    {
        $server = new Server([
            Server::step(self::HEAD . Json::MESSAGE, 'hang'),
            Server::step("HTTP/1.1 200 OK\r\n\r\n" . Json::MESSAGE),
        ]);
        $client = new Client($server->url(), token: 't', maxRetries: 0);

        self::assertSame('delivered', $client->get('em_1')->status);
        self::assertSame('delivered', $client->get('em_1')->status);
    }

    public function testALargeMessageArrivesWhole(): void
    {
        $server = new Server([Server::json(202, Json::RECEIPT)]);
        $email = new Email('a', 'b', attachments: [new Attachment('a', random_bytes(7_000_000))]);
        (new Client($server->url(), token: 't', maxRetries: 0))->send($email);

        self::assertTrue($server->request()['body'] === $email->toJson());
    }

    public function testARefusalBeforeTheRequestWasReadIsHeard(): void
    {
        $body = Json::error('payload_too_large');
        $answer = "HTTP/1.1 413 Too Large\r\nContent-Length: " . strlen($body) . "\r\n\r\n$body";
        $server = new Server([Server::step($answer, 'hang', isRequestRead: false)]);
        $email = new Email('a', 'b', attachments: [new Attachment('a', str_repeat('x', 30_000_000))]);
        try {
            (new Client($server->url(), token: 't', maxRetries: 0))->send($email);
            self::fail('it was refused');
        } catch (PostroadException $error) {
            self::assertSame('payload_too_large', $error->errorCode);
        }
    }

    public function testAServerThatDoesNotReadCannotHoldTheClient(): void
    {
        $server = new Server([Server::step('', 'sleep', isRequestRead: false)]);
        $email = new Email('a', 'b', attachments: [new Attachment('a', str_repeat('x', 30_000_000))]);
        try {
            (new Client($server->url(), token: 't', timeout: 0.2, maxRetries: 0))->send($email);
            self::fail('nobody has read it');
        } catch (PostroadException $error) {
            self::assertSame('timed_out', $error->errorCode);
        }
    }

    public function testTimeThatIsUpBeforeAnAttemptIsNotNegative(): void
    {
        $error = self::failingGet(new Client('http://127.0.0.1:9', token: 't', maxElapsed: 1e-9));

        self::assertSame('timed_out: could not connect to 127.0.0.1:9 within 0 s', $error->getMessage());
    }

    public function testIpv6(): void
    {
        if (@stream_socket_server('tcp://[::1]:0') === false) {
            self::markTestSkipped('this machine has no IPv6');
        }
        $server = new Server([Server::json(200, Json::MESSAGE)], host: '[::1]');
        (new Client($server->url(), token: 't', maxRetries: 0))->get('em_1');

        self::assertStringStartsWith('[::1]:', $server->address);
        self::assertSame($server->address, $server->request()['headers']['Host']);
    }

    public function testTheErrorHandlerOfTheApplicationHearsNothing(): void
    {
        $heard = [];
        set_error_handler(static function (int $level, string $message) use (&$heard): bool {
            $heard[] = $message;

            return true;
        });
        $server = new Server([Server::step('', 'reset', isRequestRead: false)]);
        self::failingGet(new Client($server->url(), token: 't', maxRetries: 0));
        // Too long for a name: nobody is asked for it.
        self::failingGet(new Client('http://' . str_repeat('a', 64) . '.invalid', token: 't', maxRetries: 0));
        self::failingGet(new Client('http://127.0.0.1:9', token: 't', maxRetries: 0));
        restore_error_handler();

        self::assertSame([], $heard);
    }

    private static function failingGet(Client $client): PostroadException
    {
        try {
            $client->get('em_1');
        } catch (PostroadException $error) {
            return $error;
        }
        self::fail('there was no error');
    }
}
