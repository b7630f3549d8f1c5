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
use Postroad\Http\SocketTransport;
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
            'no answer' => [Server::step('', 'hang'), 'timed_out', 'no complete response from 127.0.0.1:'],
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
        $error = self::failingGet(new Client($server->url(), token: 't', timeout: $timeout, maxElapsed: 0.0));

        self::assertSame($code, $error->errorCode);
        self::assertNull($error->status);
        self::assertStringContainsString($reason, $error->getMessage());
    }

    public function testNobodyListens(): void
    {
        $server = new Server([]);
        $server->stop();
        $error = self::failingGet(new Client($server->url(), token: 't', maxElapsed: 0.0));

        self::assertSame(
            "connection_failed: could not connect to $server->address: Connection refused",
            $error->getMessage(),
        );
    }

    public function testAnAnswerIsWholeBeforeTheConnectionCloses(): void
    {
        $server = new Server([
            Server::step(self::HEAD . Json::MESSAGE, 'keep'),
            Server::step("HTTP/1.1 200 OK\r\n\r\n" . Json::MESSAGE),
        ]);
        $client = new Client($server->url(), token: 't', maxElapsed: 0.0);

        self::assertSame('delivered', $client->get('em_1')->status);
        self::assertSame('delivered', $client->get('em_1')->status);
    }

    public function testALargeMessageArrivesWhole(): void
    {
        $server = new Server([Server::json(202, Json::RECEIPT)]);
        $email = new Email('a', 'b', attachments: [new Attachment('a', random_bytes(7_000_000))]);
        (new Client($server->url(), token: 't', maxElapsed: 0.0))->send($email);

        self::assertTrue($server->request()['body'] === $email->toJson());
    }

    public function testARefusalBeforeTheRequestWasReadIsHeard(): void
    {
        $body = Json::error('payload_too_large');
        $answer = "HTTP/1.1 413 Too Large\r\nContent-Length: " . strlen($body) . "\r\n\r\n$body";
        $server = new Server([Server::step($answer, 'hang', isRequestRead: false)]);
        $email = new Email('a', 'b', attachments: [new Attachment('a', str_repeat('x', 30_000_000))]);
        try {
            (new Client($server->url(), token: 't', maxElapsed: 0.0))->send($email);
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
            (new Client($server->url(), token: 't', timeout: 0.2, maxElapsed: 0.0))->send($email);
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
        (new Client($server->url(), token: 't', maxElapsed: 0.0))->get('em_1');

        self::assertStringStartsWith('[::1]:', $server->address);
        self::assertSame($server->address, $server->request()['headers']['Host']);
    }

    /** @return array<string, array{array<string, mixed>}> */
    public function lastResponses(): array
    {
        $json = Json::MESSAGE;
        $length = strlen($json);

        return [
            'closed in silence' => [Server::json(200, $json, end: 'close')],
            'announced' => [Server::json(200, $json, "Connection: Close\r\n")],
            'among others' => [Server::json(200, $json, "Connection: x-y, close\r\n")],
            'HTTP/1.0' => [Server::step("HTTP/1.0 200 OK\r\nContent-Length: $length\r\n\r\n$json", 'keep')],
            'until it ends' => [Server::step("HTTP/1.1 200 OK\r\n\r\n$json")],
            'and a late word' => [
                Server::step("HTTP/1.1 200 OK\r\nContent-Length: $length\r\n\r\n{$json}HTTP/1.1 408 Late\r\n\r\n", 'keep'),
            ],
        ];
    }

    /**
     * @dataProvider lastResponses
     *
     * @param array<string, mixed> $step
     */
    public function testAConnectionThatTheServerHasClosedIsNotUsed(array $step): void
    {
        $server = new Server([$step, Server::json(200, Json::MESSAGE)]);
        // An attempt that fails would be seen.
        $client = new Client($server->url(), token: 't', maxElapsed: 0.0);
        $client->get('em_1');
        $server->request();
        usleep(20_000); // Until the end of the connection is here.

        self::assertSame('delivered', $client->get('em_1')->status);
        $server->request();
        self::assertSame(2, $server->connection);
    }

    public function testAChunkedResponseKeepsTheConnection(): void
    {
        $json = Json::MESSAGE;
        $chunks = sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", strlen($json), $json);
        $server = new Server([Server::step($chunks, 'keep'), Server::step("HTTP/1.1 204 No\r\n\r\n", 'keep'), Server::json(200, $json)]);
        $client = new Client($server->url(), token: 't', maxElapsed: 0.0);
        $client->get('em_1');
        self::failingGet($client);
        $client->get('em_1');
        array_map(static fn () => $server->request(), [1, 2, 3]);

        self::assertSame(1, $server->connection);
    }

    public function testAConnectionThatBreaksIsRepeatedWithTheSameKey(): void
    {
        $server = new Server([Server::json(202, Json::RECEIPT), Server::step(''), Server::json(202, Json::RECEIPT)]);
        $client = new Client($server->url(), token: 't');
        $client->send(new Email('a', 'b'));
        $client->send(new Email('a', 'b'));
        $requests = array_map(static fn () => $server->request(), [1, 2, 3]);

        self::assertSame(2, $server->connection);
        self::assertNotSame($requests[0], $requests[1]);
        self::assertSame($requests[1], $requests[2]);
    }

    public function testAConnectionInTheMiddleOfAResponseIsNotUsedAgain(): void
    {
        $large = str_repeat(' ', 5_000_000);
        $server = new Server([
            Server::json(200, $large, end: 'close'),
            Server::step(self::HEAD . '{', 'hang'),
            Server::json(200, Json::MESSAGE),
        ]);
        $client = new Client($server->url(), token: 't', timeout: 0.5, maxElapsed: 0.0);

        self::assertSame('unexpected_response', self::failingGet($client)->errorCode);
        self::assertSame('timed_out', self::failingGet($client)->errorCode);
        self::assertSame('delivered', $client->get('em_1')->status);
        array_map(static fn () => $server->request(), [1, 2, 3]);
        self::assertSame(3, $server->connection);
    }

    public function testOneTransportServesSeveralHosts(): void
    {
        $servers = [new Server([Server::json(200, Json::MESSAGE)]), new Server([Server::json(200, Json::MESSAGE)])];
        $transport = new SocketTransport();
        foreach ($servers as $server) {
            $client = new Client($server->url(), token: 't', maxElapsed: 0.0, transport: $transport);
            self::assertSame('delivered', $client->get('em_1')->status);
            self::assertSame($server->address, $server->request()['headers']['Host']);
        }
    }

    public function testTheErrorHandlerOfTheApplicationHearsNothing(): void
    {
        $heard = [];
        set_error_handler(static function (int $level, string $message) use (&$heard): bool {
            $heard[] = $message;

            return true;
        });
        $server = new Server([Server::step('', 'reset', isRequestRead: false)]);
        self::failingGet(new Client($server->url(), token: 't', maxElapsed: 0.0));
        // Too long for a name: nobody is asked for it.
        self::failingGet(new Client('http://' . str_repeat('a', 64) . '.invalid', token: 't', maxElapsed: 0.0));
        self::failingGet(new Client('http://127.0.0.1:9', token: 't', maxElapsed: 0.0));
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
