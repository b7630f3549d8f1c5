<?php

/**
 * What an email and its attachments look like in a request.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use InvalidArgumentException;
use PHPUnit\Framework\TestCase;
use Postroad\Attachment;
use Postroad\Email;

final class EmailTest extends TestCase
{
    public function testWhatIsNotGivenIsNotSent(): void
    {
        self::assertSame(
            '{"from":"a@example.com","to":"b@example.com"}',
            (new Email('a@example.com', 'b@example.com'))->toJson(),
        );
    }

    public function testEverything(): void
    {
        $email = new Email(
            from: 'a@example.com',
            to: ['b@example.com', 'c@example.com'],
            subject: 'Grüße 🎉',
            text: "a/b\n",
            html: '<p>',
            cc: 'd@example.com',
            bcc: ['e@example.com'],
            replyTo: 'f@example.com',
            template: 'welcome',
            variables: ['reply_to' => 'Ada', 'price' => 42.0, 'tax' => 0.1, 'n' => 3, 'none' => null],
            headers: ['X-order_Id' => '1'],
            tags: 't',
            attachments: [new Attachment('a.txt', "\xff\0", contentType: 'text/plain', contentId: 'c')],
        );

        self::assertSame(
            '{"from":"a@example.com","to":["b@example.com","c@example.com"],"cc":"d@example.com",'
            . '"bcc":["e@example.com"],"reply_to":"f@example.com","subject":"Grüße 🎉","text":"a/b\n","html":"<p>",'
            . '"template":"welcome","variables":{"reply_to":"Ada","price":42.0,"tax":0.1,"n":3,"none":null},'
            . '"headers":{"X-order_Id":"1"},"tags":"t","attachments":[{"filename":"a.txt","content":"/wA=",'
            . '"content_type":"text/plain","content_id":"c"}]}',
            $email->toJson(),
        );
    }

    public function testEmptyMapsAreObjectsAndListsStayLists(): void
    {
        $email = new Email(
            'a@example.com',
            array_filter(['', 'b@example.com']),
            variables: [],
            headers: [],
            tags: [],
            attachments: [3 => new Attachment('empty', '')],
        );

        self::assertSame(
            '{"from":"a@example.com","to":["b@example.com"],"variables":{},"headers":{},"tags":[],'
            . '"attachments":[{"filename":"empty","content":""}]}',
            $email->toJson(),
        );
    }

    /** @return array<string, array{Email, string}> */
    public function unwritable(): array
    {
        return [
            'text' => [new Email('a', 'b', text: "\xff"), 'text'],
            'a recipient' => [new Email('a', ["\xff"]), 'to'],
            'a header' => [new Email('a', 'b', headers: ["\xff" => 'x']), 'headers'],
            'a number' => [new Email('a', 'b', variables: ['x' => NAN]), 'variables'],
            'a file name' => [new Email('a', 'b', attachments: [new Attachment("\xff", '')]), 'attachments'],
        ];
    }

    /** @dataProvider unwritable */
    public function testWhatIsNoJsonIsRefusedByName(Email $email, string $member): void
    {
        $this->expectException(InvalidArgumentException::class);
        $this->expectExceptionMessage("$member cannot be written as JSON");
        $email->toJson();
    }

    public function testAnAttachmentFromAFile(): void
    {
        $path = sys_get_temp_dir() . '/Grüße ' . getmypid() . '.bin';
        $bytes = random_bytes(300);
        file_put_contents($path, $bytes);
        try {
            $attachment = Attachment::fromFile($path, contentType: 'image/png');
            $renamed = Attachment::fromFile($path, filename: 'b.bin');
        } finally {
            unlink($path);
        }

        self::assertSame(basename($path), $attachment->filename);
        self::assertSame($bytes, $attachment->bytes);
        self::assertSame('image/png', $attachment->contentType);
        self::assertSame('b.bin', $renamed->filename);
        self::assertSame(base64_encode($bytes), $renamed->toMembers()['content']);
    }

    public function testAFileThatCannotBeRead(): void
    {
        foreach (['/nowhere/a.txt' => 'No such file', __DIR__ => 'Is a directory'] as $path => $reason) {
            try {
                Attachment::fromFile($path);
                self::fail($path);
            } catch (InvalidArgumentException $exception) {
                self::assertStringContainsString($path, $exception->getMessage());
                self::assertStringContainsStringIgnoringCase($reason, $exception->getMessage());
            }
        }
    }
}
