<?php

/**
 * TLS: certificates are verified, and an authority of one's own can be given.
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

final class TlsTest extends TestCase
{
    private static string $folder;

    public static function setUpBeforeClass(): void
    {
        self::$folder = sys_get_temp_dir() . '/postroad-tls-' . bin2hex(random_bytes(6));
        mkdir(self::$folder, 0700);
        self::makeCertificate('good', 'DNS:localhost,IP:127.0.0.1');
        self::makeCertificate('other', 'DNS:other.example');
    }

    public static function tearDownAfterClass(): void
    {
        array_map(unlink(...), glob(self::$folder . '/*') ?: []);
        rmdir(self::$folder);
    }

    public function testByNameAndByAddress(): void
    {
        $server = new Server(
            [Server::json(202, Json::RECEIPT), Server::json(202, Json::RECEIPT)],
            certificate: self::file('good'),
        );
        $email = new Email('a', 'b', attachments: [new Attachment('a', random_bytes(3_000_000))]);
        $url = $server->url(scheme: 'https');
        foreach ([$url, str_replace('127.0.0.1', 'localhost', $url)] as $baseUrl) {
            $client = new Client($baseUrl, token: 't', maxElapsed: 0.0, caFile: self::file('good'));
            self::assertSame('em_1', $client->send($email)->id);
            self::assertTrue($server->request()['body'] === $email->toJson());
        }
    }

    public function testTheConnectionIsKept(): void
    {
        $server = new Server(array_fill(0, 5, Server::json(202, Json::RECEIPT)), certificate: self::file('good'));
        $client = new Client($server->url(scheme: 'https'), token: 't', maxElapsed: 0.0, caFile: self::file('good'));
        for ($i = 0; $i < 5; $i++) {
            $client->send(new Email('a', 'b'));
            $server->request();
        }

        self::assertSame(1, $server->connection);
    }

    public function testALargeAnswerAndOneThatIsCutShort(): void
    {
        $text = str_repeat('x', 1_000_000);
        $server = new Server([
            Server::json(200, '{"id":"em_1","status":"queued","subject":"' . $text . '"}'),
            Server::step("HTTP/1.1 200 OK\r\nContent-Length: 34\r\n\r\n{"),
        ], certificate: self::file('good'));
        $client = new Client($server->url(scheme: 'https'), token: 't', maxElapsed: 0.0, caFile: self::file('good'));

        self::assertTrue($client->get('em_1')->subject === $text);
        self::assertSame('connection_failed', self::failingGet($client)->errorCode);
    }

    public function testACertificateThatNobodyTrusts(): void
    {
        $server = new Server([Server::json(200, Json::MESSAGE)], certificate: self::file('good'));
        $error = self::failingGet(new Client($server->url(scheme: 'https'), token: 't', maxElapsed: 0.0));

        self::assertSame('connection_failed', $error->errorCode);
        self::assertStringContainsString('certificate verify failed', $error->getMessage());
    }

    public function testACertificateForAnotherName(): void
    {
        $server = new Server([Server::json(200, Json::MESSAGE)], certificate: self::file('other'));
        $client = new Client($server->url(scheme: 'https'), token: 't', maxElapsed: 0.0, caFile: self::file('other'));
        $error = self::failingGet($client);

        self::assertSame('connection_failed', $error->errorCode);
        self::assertStringContainsString('could not set up TLS with 127.0.0.1:', $error->getMessage());
    }

    public function testAServerWithoutTls(): void
    {
        $silent = new Server([Server::step('', 'hang')]);
        $plain = new Server([Server::step("HTTP/1.1 400 Bad Request\r\n\r\n", isRequestRead: false)]);
        $client = static fn (Server $server, float $timeout): Client =>
            new Client($server->url(scheme: 'https'), token: 't', timeout: $timeout, maxElapsed: 0.0);

        self::assertSame('timed_out', self::failingGet($client($silent, 0.1))->errorCode);
        self::assertSame('connection_failed', self::failingGet($client($plain, 30.0))->errorCode);
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

    private static function file(string $name): string
    {
        return self::$folder . "/$name.pem";
    }

    /** Writes a key and a certificate that vouches for itself. */
    private static function makeCertificate(string $name, string $subjects): void
    {
        $config = self::$folder . "/$name.cnf";
        file_put_contents($config, "[req]\ndistinguished_name=name\n[name]\n[own]\nsubjectAltName=$subjects\n");
        $options = [
            'config' => $config,
            'x509_extensions' => 'own',
            'digest_alg' => 'sha256',
            'private_key_type' => OPENSSL_KEYTYPE_EC,
            'curve_name' => 'prime256v1',
            // Not for this kind of key, but PHP wants it.
            'private_key_bits' => 2048,
        ];
        $key = openssl_pkey_new($options);
        $request = openssl_csr_new(['commonName' => $name], $key, $options);
        $certificate = openssl_csr_sign($request, null, $key, 1, $options);
        openssl_pkey_export($key, $keyText, null, $options);
        openssl_x509_export($certificate, $certificateText);
        file_put_contents(self::file($name), $certificateText . $keyText);
    }
}
