<?php

/**
 * Runs the code of the README, so that it stays true.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use PHPUnit\Framework\TestCase;
use Postroad\Tests\Support\Json;
use Postroad\Tests\Support\Server;

final class ReadmeTest extends TestCase
{
    private const SECRET = 'whsec_readme';

    private string $folder;

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/postroad-readme-' . bin2hex(random_bytes(6));
        mkdir("$this->folder/vendor", 0700, recursive: true);
        $autoload = var_export(dirname(__DIR__) . '/src/autoload.php', true);
        file_put_contents("$this->folder/vendor/autoload.php", "<?php require $autoload;");
        file_put_contents("$this->folder/receipt.pdf", '%PDF');
    }

    protected function tearDown(): void
    {
        array_map(unlink(...), [...glob("$this->folder/*.*") ?: [], "$this->folder/vendor/autoload.php"]);
        rmdir("$this->folder/vendor");
        rmdir($this->folder);
    }

    public function testSendWaitAndErrors(): void
    {
        $server = new Server([
            Server::json(202, Json::RECEIPT),
            Server::json(200, '{"id":"em_1","status":"delivered","recipients":[{"email":"ada","status":"delivered"}]}'),
            Server::json(200, '{"template":{"alias":"reminder"}}'),
            Server::json(202, '{"results":[{"id":"em_2"}]}'),
            Server::json(200, '{"id":"em_2","recipients":[]}'),
            Server::json(200, '{"messages":[{"id":"em_3","status":"queued"}],"next_cursor":null}'),
            Server::json(402, Json::error('insufficient_credits', 'the account has 0 credits')),
        ]);
        [$send, $wait, $manage, $errors] = self::blocks();
        $code = str_replace('https://mail.example.com', $server->url(), $send . $wait . $manage . $errors);
        [$process, $output] = $this->start($code, []);

        self::assertSame(
            "Accepted as em_1\nada: delivered\nem_3: queued\n"
            . "Add credits: 402 insufficient_credits: the account has 0 credits (req_1)\n",
            stream_get_contents($output),
        );
        self::assertSame(0, proc_close($process));
        $request = $server->request();
        self::assertSame('Bearer pr_live_readme', $request['headers']['Authorization']);
        self::assertSame('order-1042-receipt', $request['headers']['Idempotency-Key']);
        self::assertSame('receipt.pdf', json_decode($request['body'])->attachments[0]->filename);
    }

    public function testWebhook(): void
    {
        [$process, $output] = $this->start(self::blocks()[4], ['-S', '127.0.0.1:0']);
        try {
            preg_match('~http://[0-9.:]+~', (string) fgets($output), $match);
            $body = '{"id": "evt_1", "type": "email.delivered"}';
            $time = time();
            $signature = hash_hmac('sha256', "$time.$body", self::SECRET);

            self::assertSame(204, self::post($match[0], $body, "t=$time,v1=$signature"));
            self::assertSame(400, self::post($match[0], "$body ", "t=$time,v1=$signature"));
            self::assertSame(400, self::post($match[0], $body, ''));
        } finally {
            proc_terminate($process);
            $log = (string) stream_get_contents($output);
            proc_close($process);
        }
        self::assertStringContainsString('email.delivered evt_1', $log);
    }

    public function testTheReadmeFitsOnAPage(): void
    {
        self::assertLessThanOrEqual(150, count(file(__DIR__ . '/../README.md') ?: []));
    }

    /** @return list<string> */
    private static function blocks(): array
    {
        preg_match_all('/^```php\n(.*?)^```$/ms', (string) file_get_contents(__DIR__ . '/../README.md'), $matches);
        self::assertCount(5, $matches[1]);

        return $matches[1];
    }

    /**
     * Runs code in a PHP of its own.
     *
     * @param list<string> $options
     *
     * @return array{resource, resource} the process, and what it writes
     */
    private function start(string $code, array $options): array
    {
        file_put_contents("$this->folder/example.php", "<?php\n$code");
        $process = proc_open(
            [PHP_BINARY, ...$options, 'example.php'],
            [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]],
            $pipes,
            $this->folder,
            ['POSTROAD_API_KEY' => 'pr_live_readme', 'POSTROAD_WEBHOOK_SECRET' => self::SECRET] + getenv(),
        );
        self::assertIsResource($process);

        return [$process, $pipes[1]];
    }

    private static function post(string $url, string $body, string $signature): int
    {
        $context = stream_context_create(['http' => [
            'method' => 'POST',
            'header' => "Content-Type: application/json\r\nService-Signature: $signature",
            'content' => $body,
            'ignore_errors' => true,
        ]]);
        file_get_contents($url, context: $context);

        return (int) explode(' ', $http_response_header[0])[1];
    }
}
