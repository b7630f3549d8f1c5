<?php

/**
 * The client as an application uses it, against a little server: what it sends, what it refuses, what it hides.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use Closure;
use InvalidArgumentException;
use PHPUnit\Framework\TestCase;
use Postroad\Client;
use Postroad\ClientInterface;
use Postroad\Email;
use Postroad\Http\Response;
use Postroad\PostroadException;
use Postroad\Receipt;
use Postroad\Tests\Support\FakeClock;
use Postroad\Tests\Support\FakeTransport;
use Postroad\Tests\Support\Json;
use Postroad\Tests\Support\Server;
use Postroad\TimedOutException;

final class ClientTest extends TestCase
{
    public function testSend(): void
    {
        $server = new Server([Server::json(202, Json::RECEIPT)]);
        $email = new Email('a@example.com', 'b@example.com', text: 'Grüße');
        $receipt = (new Client($server->url(), token: 'pr_live_1'))->send($email, idempotencyKey: 'order-1');

        self::assertSame('em_1', $receipt->id);
        self::assertSame([
            'line' => 'POST /emails HTTP/1.1',
            'headers' => [
                'Host' => $server->address,
                'Authorization' => 'Bearer pr_live_1',
                'User-Agent' => 'postroad-php/0.1.0',
                'Accept' => 'application/json',
                'Idempotency-Key' => 'order-1',
                'Content-Type' => 'application/json',
                'Content-Length' => (string) strlen($email->toJson()),
            ],
            'body' => $email->toJson(),
        ], $server->request());
    }

    public function testGet(): void
    {
        $server = new Server([Server::json(200, Json::MESSAGE)]);
        $client = new Client($server->url('/mail//'), username: 'smtp_1', password: 'pä:ss');

        self::assertSame('delivered', $client->get('em_1')->status);
        $request = $server->request();
        self::assertSame('GET /mail/emails/em_1 HTTP/1.1', $request['line']);
        self::assertSame('Basic ' . base64_encode('smtp_1:pä:ss'), $request['headers']['Authorization']);
        self::assertArrayNotHasKey('Idempotency-Key', $request['headers']);
        self::assertSame('', $request['body']);
    }

    public function testAKeyIsMadeForEachSend(): void
    {
        $server = new Server([Server::json(202, Json::RECEIPT), Server::json(202, Json::RECEIPT)]);
        $client = new Client($server->url(), token: 'pr_live_1');
        $keys = [];
        foreach ([1, 2] as $ignored) {
            $client->send(new Email('a@example.com', 'b@example.com'));
            $keys[] = $server->request()['headers']['Idempotency-Key'];
        }

        self::assertNotSame($keys[0], $keys[1]);
        $uuid = '/\A[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\z/';
        self::assertMatchesRegularExpression($uuid, $keys[0]);
    }

    public function testTenSendsUseOneConnection(): void
    {
        $server = new Server(array_fill(0, 10, Server::json(202, Json::RECEIPT)));
        $client = new Client($server->url(), token: 'pr_live_1', maxElapsed: 0.0);
        $keys = [];
        for ($i = 0; $i < 10; $i++) {
            $client->send(new Email('a@example.com', 'b@example.com'));
            $keys[] = $server->request()['headers']['Idempotency-Key'];
        }

        self::assertSame(1, $server->connection);
        self::assertCount(10, array_unique($keys));
    }

    public function testAnApplicationCanMockTheInterface(): void
    {
        $client = $this->createMock(ClientInterface::class);
        $client->expects(self::once())->method('send')->willReturn(new Receipt('em_1'));
        $client->method('wait')->willThrowException(new TimedOutException('not yet'));

        self::assertSame('em_1', $client->send(new Email('a@example.com', 'b@example.com'))->id);
        $this->expectException(TimedOutException::class);
        $client->wait('em_1');
    }

    public function testATransportOfTheApplication(): void
    {
        $response = new Response(202, ['X-Request-ID' => 'req_1'], Json::RECEIPT);
        $transport = new FakeTransport(new FakeClock(), $response);
        $client = new Client('http://127.0.0.1:80/mail/', token: 'pr_live_1', timeout: 5.0, transport: $transport);
        $client->send(new Email('a@example.com', 'b@example.com'), 'order-1');

        $request = $transport->requests[0];
        self::assertSame(['POST', 'http://127.0.0.1/mail/emails'], [$request->method, $request->url]);
        self::assertSame([
            'Authorization' => 'Bearer pr_live_1',
            'User-Agent' => 'postroad-php/0.1.0',
            'Accept' => 'application/json',
            'Idempotency-Key' => 'order-1',
            'Content-Type' => 'application/json',
        ], $request->headers());
        self::assertSame([5.0], $transport->timeouts);
        self::assertStringNotContainsString('pr_live_1', print_r($request, true));
    }

    /** @return array<string, array{array<string, mixed>}> */
    public function badArguments(): array
    {
        $url = 'http://127.0.0.1:9';

        return [
            'no credential' => [[$url]],
            'both credentials' => [[$url, 'token' => 't', 'username' => 'u', 'password' => 'p']],
            'a token and a password' => [[$url, 'token' => 't', 'password' => 'p']],
            'no password' => [[$url, 'username' => 'u']],
            'no username' => [[$url, 'password' => 'p']],
            'a colon in a username' => [[$url, 'username' => 'u:v', 'password' => 'p']],
            'a line break in a token' => [[$url, 'token' => "t\r\nX-Evil: 1"]],
            'a line feed at the end of a token' => [[$url, 'token' => "t\n"]],
            'a NUL in a token' => [[$url, 'token' => "t\0"]],
            'a token beyond ASCII' => [[$url, 'token' => 'tä']],
            'a CA file that is not there' => [[$url, 'token' => 't', 'caFile' => '/nowhere/ca.pem']],
            'a CA file for another transport' => [
                [$url, 'token' => 't', 'caFile' => __FILE__, 'transport' => new FakeTransport(new FakeClock())],
            ],
            'no timeout' => [[$url, 'token' => 't', 'timeout' => 0.0]],
            'no URL' => [['', 'token' => 't']],
            'another scheme' => [['ftp://127.0.0.1', 'token' => 't']],
            'no scheme' => [['127.0.0.1', 'token' => 't']],
            'no host' => [['http:///emails', 'token' => 't']],
            'a user' => [['http://u:s3cret@127.0.0.1', 'token' => 't']],
            'a query' => [['http://127.0.0.1/?', 'token' => 't']],
            'a fragment' => [['http://127.0.0.1/#', 'token' => 't']],
            'a port that is none' => [['http://127.0.0.1:65536', 'token' => 't']],
            'port 0' => [['http://127.0.0.1:0', 'token' => 't']],
            'a line break in the URL' => [["http://127.0.0.1/\r\nX-Evil: 1", 'token' => 't']],
            'a line feed at the end of the URL' => [["http://127.0.0.1\n", 'token' => 't']],
            'a space in the URL' => [['http://127.0.0.1/a b', 'token' => 't']],
        ];
    }

    /**
     * @dataProvider badArguments
     *
     * @param array<string, mixed> $arguments
     */
    public function testBadArgumentsAreRefused(array $arguments): void
    {
        try {
            new Client(...$arguments);
            self::fail('it was not refused');
        } catch (InvalidArgumentException $exception) {
            self::assertStringNotContainsString('s3cret', $exception->getMessage());
        }
    }

    public function testBadIdsAndKeysAreRefusedBeforeARequest(): void
    {
        $client = new Client('http://127.0.0.1:9', token: 't', maxElapsed: 0.0);
        $email = new Email('a@example.com', 'b@example.com');
        $calls = [];
        foreach (['', '..', '../v1', 'a/b', 'a?b', 'a%2e', "a\n", "a\0", 'ä'] as $id) {
            $calls[$id] = static fn () => $client->get($id);
            $calls["wait for $id"] = static fn () => $client->wait($id);
        }
        foreach (["k\r\nX-Evil: 1", "k\n", "k\0", 'kä'] as $key) {
            $calls[$key] = static fn () => $client->send($email, idempotencyKey: $key);
        }
        foreach ($calls as $name => $call) {
            try {
                $call();
                self::fail("not refused: $name");
            } catch (InvalidArgumentException) {
                $this->addToAssertionCount(1);
            }
        }
    }

    public function testNothingThatIsPrintedShowsASecret(): void
    {
        $ignored = ini_set('zend.exception_ignore_args', '0');
        $email = new Email('a@example.com', 'b@example.com');
        $token = ['token' => 'hush-hush'];
        $password = ['username' => 'smtp_1', 'password' => 'hush-hush'];
        $printed = '';
        foreach ([$token, $password] as $credential) {
            $client = new Client('http://127.0.0.1:9', ...$credential, maxElapsed: 0.0);
            $printed .= self::printed($client);
            $printed .= self::printedError(static fn () => $client->send($email));
            $printed .= self::printedError(static fn () => new Client('nonsense', ...$credential));
        }
        $printed .= self::printedError(static fn () => new Client('http://127.0.0.1', ...$token, ...$password));
        $printed .= self::printedError(static fn () => new Client('http://127.0.0.1', token: "hush-hush\n"));
        ini_set('zend.exception_ignore_args', (string) $ignored);

        self::assertStringContainsString('SensitiveParameterValue', $printed);
        self::assertStringNotContainsString('hush-hush', $printed);
        self::assertStringNotContainsString(base64_encode('smtp_1:hush-hush'), $printed);
    }

    private static function printedError(Closure $call): string
    {
        try {
            $call();
        } catch (PostroadException | InvalidArgumentException $error) {
            // Only the frames of the client: those of this test and of PHPUnit are none of its business.
            $frames = array_filter(
                $error->getTrace(),
                static fn (array $frame): bool => preg_match('/\APostroad\\\\(?!Tests)/', $frame['class'] ?? '') === 1,
            );
            self::assertNotEmpty($frames);

            return print_r($frames, true) . $error->getMessage();
        }
        self::fail('there was no error');
    }

    private static function printed(Client $client): string
    {
        ob_start();
        var_dump($client);

        return ob_get_clean() . print_r($client, true) . var_export($client, true) . json_encode($client)
            . print_r((array) $client, true);
    }
}
