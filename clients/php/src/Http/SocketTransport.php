<?php

/**
 * Carries requests in HTTP/1.1 over a connection that is kept for the next one. Redirects are not followed and proxies
 * of the environment are not used: the credential goes to the host that it was given for.
 */

declare(strict_types=1);

namespace Postroad\Http;

use InvalidArgumentException;
use Postroad\Internal\BaseUrl;
use Postroad\Internal\Connection;
use Postroad\Internal\Deadline;
use Postroad\Internal\ResponseParser;
use SensitiveParameter;

final class SocketTransport implements Transport
{
    private ?Connection $idle = null;

    /** @param ?string $caFile certificates (PEM) to trust in the place of the system's */
    public function __construct(private readonly ?string $caFile = null)
    {
        if ($caFile !== null && !is_readable($caFile)) {
            throw new InvalidArgumentException("caFile cannot be read: $caFile");
        }
    }

    public function exchange(
        #[SensitiveParameter]
        Request $request,
        float $timeout,
    ): Response {
        $deadline = new Deadline($timeout);
        $url = BaseUrl::parse(strtok($request->url, '?'));
        $connection = $this->takeIdle($url) ?? Connection::open($url, $this->caFile, $deadline);
        $parser = new ResponseParser();
        $isReusable = false;
        try {
            $isWritten = self::converse($connection, self::head($request, $url) . $request->body, $parser, $deadline);
            $isReusable = $isWritten && $parser->isConnectionReusable();
        } finally {
            // What did not end well is never used again: something of its response may still come.
            $isReusable ? $this->idle = $connection->rest() : $connection->close();
        }

        return $parser->response();
    }

    /** The connection of the last request, if it is still good. What is not costs no attempt. */
    private function takeIdle(BaseUrl $url): ?Connection
    {
        [$idle, $this->idle] = [$this->idle, null];
        if ($idle === null || $idle->isUsableFor($url)) {
            return $idle;
        }
        $idle->close();

        return null;
    }

    /** @return bool whether all of the request was written */
    private static function converse(
        Connection $connection,
        #[SensitiveParameter]
        string $bytes,
        ResponseParser $parser,
        Deadline $deadline,
    ): bool {
        $aim = "no complete response from $connection->peer";
        $written = 0;
        // Reads while it writes: a server may refuse a large message before it has read all of it.
        while ($parser->response() === null) {
            $deadline->left($aim);
            if ($written < strlen($bytes)) {
                $count = $connection->write($bytes, $written);
                $written = $count === null ? PHP_INT_MAX : $written + $count;
            }
            $received = $connection->read();
            if ($received === null && !$parser->end()) {
                $reason = "$connection->peer closed the connection before the end of its response";
                throw TransportException::connectionFailed($reason);
            }
            $parser->feed($received ?? '');
            if ($received === '') {
                $connection->wait($written < strlen($bytes), $deadline, $aim);
            }
        }

        return $written === strlen($bytes);
    }

    private static function head(#[SensitiveParameter] Request $request, BaseUrl $url): string
    {
        $target = $url->path . strstr($request->url, '?');
        $head = "$request->method $target HTTP/1.1\r\nHost: {$url->authority()}\r\n";
        foreach ($request->headers() as $name => $value) {
            $head .= "$name: $value\r\n";
        }

        $hasLength = $request->body !== null || $request->method === 'POST';

        return $head . ($hasLength ? 'Content-Length: ' . strlen((string) $request->body) . "\r\n" : '') . "\r\n";
    }
}
