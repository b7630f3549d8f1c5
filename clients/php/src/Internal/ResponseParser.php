<?php

/**
 * Reads an HTTP/1.1 response from bytes as they come. It does no input or output itself.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Postroad\Http\Response;
use Postroad\Http\TransportException;

/** @internal */
final class ResponseParser
{
    private const MAX_HEAD = 64 * 1024;
    private const MAX_BODY = 4 * 1024 * 1024;
    private const MAX_LINE = 4096;

    private ResponsePart $expected = ResponsePart::Head;
    private string $buffer = '';
    private int $status = 0;
    /** @var array<string, string> */
    private array $headers = [];
    private string $body = '';
    /** How much is missing of a body or chunk whose length is known. */
    private int $missing = 0;
    /** The response says how long it is, and that the connection stays open. */
    private bool $isKeptAlive = false;

    /** @throws TransportException when this is no HTTP */
    public function feed(string $bytes): void
    {
        $this->buffer .= $bytes;
        do {
            $hasMoved = match ($this->expected) {
                ResponsePart::Head => $this->readHead(),
                ResponsePart::Body, ResponsePart::Chunk => $this->readKnownLength(),
                ResponsePart::BodyUntilClose => $this->readUntilClose(),
                ResponsePart::ChunkSize => $this->readChunkSize(),
                ResponsePart::ChunkEnd => $this->readChunkEnd(),
                ResponsePart::Trailer => $this->readTrailer(),
                ResponsePart::Nothing => false,
            };
            if (strlen($this->body) > self::MAX_BODY) {
                $this->expected = ResponsePart::Nothing;
            }
        } while ($hasMoved);
    }

    /** The other end has closed the connection in good order: for some responses, that is the end. */
    public function end(): bool
    {
        if ($this->expected === ResponsePart::BodyUntilClose) {
            $this->expected = ResponsePart::Nothing;
        }

        return $this->expected === ResponsePart::Nothing;
    }

    /** Null until all of it is here. */
    public function response(): ?Response
    {
        if ($this->expected !== ResponsePart::Nothing) {
            return null;
        }
        $isCutOff = strlen($this->body) > self::MAX_BODY;

        return new Response($this->status, $this->headers, substr($this->body, 0, self::MAX_BODY), $isCutOff);
    }

    /** Whether the next response on this connection can only be that of the next request. */
    public function isConnectionReusable(): bool
    {
        return $this->isKeptAlive && $this->expected === ResponsePart::Nothing && $this->missing === 0
            && $this->buffer === '' && strlen($this->body) <= self::MAX_BODY;
    }

    private function readHead(): bool
    {
        // What is no HTTP may never have an end: so its beginning is looked at as soon as it is here.
        if (strncmp($this->buffer, 'HTTP/1.', min(7, strlen($this->buffer))) !== 0) {
            throw $this->noHttp();
        }
        $length = strpos($this->buffer, "\r\n\r\n");
        if ($length === false) {
            return strlen($this->buffer) <= self::MAX_HEAD ? false : throw $this->noHttp();
        }
        $lines = explode("\r\n", substr($this->take($length + 4), 0, -4));
        if (preg_match('~\AHTTP/1\.([0-9]) ([1-5][0-9]{2})( |\z)~', $lines[0], $match) !== 1) {
            throw $this->noHttp();
        }
        $this->status = (int) $match[2];
        $this->headers = self::headers(array_slice($lines, 1));
        $this->expected = $this->partAfterHead();
        $options = preg_split('/[\s,]+/', strtolower($this->headers['connection'] ?? '')) ?: [];
        $this->isKeptAlive = $match[1] !== '0' && !in_array('close', $options, true)
            && $this->expected !== ResponsePart::BodyUntilClose;

        return true;
    }

    private function partAfterHead(): ResponsePart
    {
        if ($this->status < 200) {
            return ResponsePart::Head;
        }
        if (in_array($this->status, [204, 304], true)) {
            return ResponsePart::Nothing;
        }
        $encoding = $this->headers['transfer-encoding'] ?? null;
        if ($encoding !== null) {
            return strtolower($encoding) === 'chunked' ? ResponsePart::ChunkSize : throw $this->noHttp();
        }
        $length = $this->headers['content-length'] ?? null;
        if ($length === null) {
            return ResponsePart::BodyUntilClose;
        }
        $this->missing = preg_match('/\A[0-9]{1,15}\z/', $length) === 1 ? (int) $length : throw $this->noHttp();

        return ResponsePart::Body;
    }

    private function readKnownLength(): bool
    {
        $bytes = $this->take(min($this->missing, strlen($this->buffer)));
        $this->body .= $bytes;
        $this->missing -= strlen($bytes);
        if ($this->missing > 0) {
            return false;
        }
        $this->expected = $this->expected === ResponsePart::Chunk ? ResponsePart::ChunkEnd : ResponsePart::Nothing;

        return true;
    }

    private function readUntilClose(): bool
    {
        $this->body .= $this->take(strlen($this->buffer));

        return false;
    }

    private function readChunkSize(): bool
    {
        $line = $this->takeLine();
        if ($line === null) {
            return false;
        }
        if (preg_match('/\A([0-9A-Fa-f]{1,12})[ \t]*(;|\z)/', $line, $match) !== 1) {
            throw $this->noHttp();
        }
        $this->missing = (int) hexdec($match[1]);
        $this->expected = $this->missing === 0 ? ResponsePart::Trailer : ResponsePart::Chunk;

        return true;
    }

    private function readChunkEnd(): bool
    {
        $line = $this->takeLine();
        if ($line === null) {
            return false;
        }
        $this->expected = $line === '' ? ResponsePart::ChunkSize : throw $this->noHttp();

        return true;
    }

    private function readTrailer(): bool
    {
        $line = $this->takeLine();
        if ($line === '') {
            $this->expected = ResponsePart::Nothing;
        }

        return $line !== null && $line !== '';
    }

    /** The next line without its end; null when it is not all here. */
    private function takeLine(): ?string
    {
        $length = strpos($this->buffer, "\r\n");
        if ($length === false) {
            return strlen($this->buffer) <= self::MAX_LINE ? null : throw $this->noHttp();
        }

        return substr($this->take($length + 2), 0, -2);
    }

    private function take(int $length): string
    {
        $bytes = substr($this->buffer, 0, $length);
        $this->buffer = substr($this->buffer, $length);

        return $bytes;
    }

    /**
     * @param list<string> $lines
     *
     * @return array<string, string>
     */
    private static function headers(array $lines): array
    {
        $headers = [];
        foreach ($lines as $line) {
            [$name, $value] = explode(':', $line, 2) + [1 => ''];
            $name = strtolower($name);
            $value = trim($value, " \t");
            $headers[$name] = isset($headers[$name]) ? "$headers[$name], $value" : $value;
        }

        return $headers;
    }

    private function noHttp(): TransportException
    {
        return TransportException::unexpectedResponse('what came back is not HTTP');
    }
}
