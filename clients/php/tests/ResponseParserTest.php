<?php

/**
 * The reader of HTTP responses: whole, byte by byte, cut short, and what is no HTTP.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use PHPUnit\Framework\TestCase;
use Postroad\Http\TransportException;
use Postroad\Internal\ResponseParser;

final class ResponseParserTest extends TestCase
{
    /** @return array<string, array{string, int, string}> */
    public function responses(): array
    {
        return [
            'length' => ["HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nhello", 202, 'hello'],
            'length in small letters' => ["HTTP/1.1 200 OK\r\ncontent-length:5\r\n\r\nhello", 200, 'hello'],
            'length 0' => ["HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", 500, ''],
            'no reason' => ["HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", 200, 'hi'],
            'chunks' => [
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\n\r\n",
                200,
                'hello',
            ],
            'chunks and a trailer' => [
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 1\r\n\r\n"
                . "A\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
                200,
                '0123456789',
            ],
            'no body' => ["HTTP/1.1 204 No Content\r\n\r\n", 204, ''],
            'interim' => [
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                . "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
                200,
                'hi',
            ],
        ];
    }

    /** @dataProvider responses */
    public function testReadsWholeResponses(string $bytes, int $status, string $body): void
    {
        $parser = new ResponseParser();
        $parser->feed($bytes);

        self::assertSame($status, $parser->response()?->status);
        self::assertSame($body, $parser->response()->body);
        self::assertFalse($parser->response()->isCutOff);
    }

    /** @dataProvider responses */
    public function testEveryBeginningIsIncomplete(string $bytes, int $status, string $body): void
    {
        $parser = new ResponseParser();
        foreach (str_split(substr($bytes, 0, -1)) as $byte) {
            $parser->feed($byte);
            self::assertNull($parser->response());
            self::assertFalse((clone $parser)->end());
        }
        $parser->feed($bytes[-1]);

        self::assertSame($status, $parser->response()?->status);
        self::assertSame($body, $parser->response()->body);
    }

    public function testABodyWithoutLengthEndsWithTheConnection(): void
    {
        $parser = new ResponseParser();
        $parser->feed("HTTP/1.0 502 Bad Gateway\r\nServer: x\r\n\r\n<html>");
        self::assertNull($parser->response());

        self::assertTrue($parser->end());
        self::assertSame('<html>', $parser->response()?->body);
    }

    public function testHeaders(): void
    {
        $parser = new ResponseParser();
        $parser->feed("HTTP/1.1 200 OK\r\nX-Request-ID: \t req_1 \r\n");
        $parser->feed("Via: a\r\nvia: b\r\nodd\r\nContent-Length: 0\r\n\r\n");

        $expected = ['x-request-id' => 'req_1', 'via' => 'a, b', 'odd' => '', 'content-length' => '0'];
        self::assertSame($expected, $parser->response()?->headers);
    }

    /** @return array<string, array{string}> */
    public function heads(): array
    {
        return [
            'length' => ["HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n"],
            'until close' => ["HTTP/1.1 200 OK\r\n\r\n"],
            'one chunk' => ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFF\r\n"],
        ];
    }

    /** @dataProvider heads */
    public function testReadsTo4MiBAndNoFurther(string $head): void
    {
        $parser = new ResponseParser();
        $parser->feed($head);
        $parser->feed(str_repeat('x', 4 << 20));
        self::assertNull($parser->response());
        $parser->feed('x');

        self::assertTrue($parser->response()?->isCutOff);
        self::assertSame(4 << 20, strlen($parser->response()->body));
    }

    /** @return array<string, array{string}> */
    public function nonsense(): array
    {
        return [
            'another protocol' => ["220 mail.example.com ESMTP\r\n"],
            'HTTP/2' => ["HTTP/2 200\r\n"],
            'no status' => ["HTTP/1.1 OK\r\n\r\n"],
            'an endless head' => ['HTTP/1.1 200 OK' . str_repeat("\r\nX: y", 20000)],
            'a length that is none' => ["HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"],
            'two lengths' => ["HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"],
            'an encoding nobody asked for' => ["HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"],
            'a chunk size that is none' => ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"],
            'a huge chunk size' => ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n"],
            'a chunk longer than it says' => ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"],
            'a line without end' => ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" . str_repeat('0', 5000)],
        ];
    }

    /** @dataProvider nonsense */
    public function testRefusesWhatIsNoHttp(string $bytes): void
    {
        $this->expectException(TransportException::class);
        $this->expectExceptionMessage('not HTTP');
        (new ResponseParser())->feed($bytes);
    }
}
