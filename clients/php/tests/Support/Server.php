<?php

/**
 * A little server in a process of its own. It plays one step for each request, and keeps the requests.
 */

declare(strict_types=1);

namespace Postroad\Tests\Support;

use RuntimeException;

final class Server
{
    public readonly string $address;
    /** The number of the connection over which the last request came, from 1. */
    public int $connection = 0;

    /** @var resource|null */
    private mixed $process;
    /** @var array<int, resource> */
    private array $pipes = [];

    /** @param list<array<string, mixed>> $steps made by step() and json() */
    public function __construct(array $steps, string $host = '127.0.0.1', ?string $certificate = null)
    {
        $this->process = proc_open(
            [PHP_BINARY, __DIR__ . '/serve.php'],
            [['pipe', 'r'], ['pipe', 'w'], STDERR],
            $this->pipes,
        ) ?: throw new RuntimeException('the server did not start');
        $script = ['host' => $host, 'certificate' => $certificate, 'steps' => $steps];
        fwrite($this->pipes[0], json_encode($script, JSON_THROW_ON_ERROR) . "\n");
        $this->address = trim((string) fgets($this->pipes[1]));
    }

    public function __destruct()
    {
        $this->stop();
    }

    /**
     * @param string $answer the bytes of the answer
     * @param string $end `keep` (for the next request), `close`, `reset`, `hang` (reads until the client has gone), `sleep` (reads nothing until the
     *     server is stopped), or `trickle` (bytes without end)
     *
     * @return array<string, mixed>
     */
    public static function step(string $answer, string $end = 'close', bool $isRequestRead = true): array
    {
        return ['answer' => base64_encode($answer), 'end' => $end, 'read' => $isRequestRead];
    }

    /** @return array<string, mixed> */
    public static function json(int $status, string $json, string $headers = '', string $end = 'keep'): array
    {
        $length = strlen($json);

        return self::step("HTTP/1.1 $status Whatever\r\nContent-Length: $length\r\n$headers\r\n$json", $end);
    }

    public function url(string $path = '', string $scheme = 'http'): string
    {
        return "$scheme://$this->address$path";
    }

    /**
     * The next request as it came.
     *
     * @return array{line: string, headers: array<string, string>, body: string}
     */
    public function request(): array
    {
        [$connection, $bytes] = explode(' ', (string) fgets($this->pipes[1]), 2);
        $this->connection = (int) $connection;
        [$head, $body] = explode("\r\n\r\n", base64_decode($bytes), 2) + [1 => ''];
        $lines = explode("\r\n", $head);
        $headers = [];
        foreach (array_slice($lines, 1) as $line) {
            [$name, $value] = explode(': ', $line, 2);
            $headers[$name] = $value;
        }

        return ['line' => $lines[0], 'headers' => $headers, 'body' => $body];
    }

    public function stop(): void
    {
        if ($this->process !== null) {
            array_map(fclose(...), $this->pipes);
            proc_terminate($this->process);
            proc_close($this->process);
            $this->process = null;
        }
    }
}
