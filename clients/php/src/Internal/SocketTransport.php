<?php

/**
 * Carries requests over a connection of their own, in HTTP/1.1. Redirects are not followed and proxies of the
 * environment are not used: the credential goes to the host that it was given for.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Postroad\Client;
use SensitiveParameterValue;

/** @internal */
final readonly class SocketTransport implements Transport
{
    public function __construct(
        private BaseUrl $baseUrl,
        private SensitiveParameterValue $authorization,
        private ?string $caFile,
    ) {
    }

    public function exchange(Request $request, float $timeout): Response
    {
        $deadline = new Deadline($timeout);
        $connection = Connection::open($this->baseUrl, $this->caFile, $deadline);
        try {
            return $this->exchangeOver($connection, $request, $deadline);
        } finally {
            $connection->close();
        }
    }

    private function exchangeOver(Connection $connection, Request $request, Deadline $deadline): Response
    {
        $peer = $this->baseUrl->hostAndPort();
        $aim = "no whole answer from $peer";
        $bytes = $this->head($request) . $request->body;
        $written = 0;
        $parser = new ResponseParser();
        // Reads while it writes: a server may refuse a large message before it has read all of it.
        while (($response = $parser->response()) === null) {
            $deadline->left($aim);
            if ($written < strlen($bytes)) {
                $count = $connection->write($bytes, $written);
                $written = $count === null ? strlen($bytes) : $written + $count;
            }
            $received = $connection->read();
            if ($received === null && !$parser->end()) {
                throw new Failure('connection_failed', "$peer closed the connection before the end of its answer");
            }
            $parser->feed($received ?? '');
            if ($received === '') {
                $connection->wait($written < strlen($bytes), $aim);
            }
        }

        return $response;
    }

    private function head(Request $request): string
    {
        $lines = [
            "$request->method {$this->baseUrl->path}$request->path HTTP/1.1",
            "Host: {$this->baseUrl->authority()}",
            "Authorization: {$this->authorization->getValue()}",
            'User-Agent: postroad-php/' . Client::VERSION,
            'Accept: application/json',
            'Connection: close',
        ];
        if ($request->idempotencyKey !== null) {
            $lines[] = "Idempotency-Key: $request->idempotencyKey";
        }
        if ($request->body !== null) {
            $lines[] = 'Content-Type: application/json';
            $lines[] = 'Content-Length: ' . strlen($request->body);
        }

        return implode("\r\n", $lines) . "\r\n\r\n";
    }
}
