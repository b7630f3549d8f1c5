<?php

/**
 * A small application with Symfony Mailer.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use Illuminate\Container\Container;
use Illuminate\Support\ServiceProvider;
use PHPUnit\Framework\TestCase;
use Postroad\Laravel\PostroadServiceProvider;
use Postroad\Symfony\PostroadTransportFactory;
use Postroad\Tests\Support\Json;
use Postroad\Tests\Support\Server;
use Symfony\Component\Mailer\Exception\TransportException;
use Symfony\Component\Mailer\Header\MetadataHeader;
use Symfony\Component\Mailer\Header\TagHeader;
use Symfony\Component\Mailer\Mailer;
use Symfony\Component\Mailer\Transport;
use Symfony\Component\Mailer\Transport\TransportInterface;
use Symfony\Component\Mime\Address;
use Symfony\Component\Mime\Email;
use Symfony\Component\Mime\RawMessage;

final class SymfonyTransportTest extends TestCase
{
    protected function setUp(): void
    {
        @include_once 'Symfony/Component/Mailer/autoload.php'; // where Debian has it
        if (!class_exists(Mailer::class)) {
            self::markTestSkipped('Symfony Mailer is missing: install the package php-symfony-mailer');
        }
    }

    public function testEverything(): void
    {
        $server = new Server([Server::json(202, Json::RECEIPT)]);
        $email = (new Email())
            ->from(new Address('hello@example.com', 'Jörg "J"'))
            ->to('ada@example.net', 'b@example.net')->cc('c@example.net')->bcc('d@example.net')
            ->replyTo('help@example.com')->subject('Grüße')
            ->text('Danke schön')->html('<img src="cid:logo">')
            ->attach("Total: 42\n", 'total.txt', 'text/plain')
            ->embed("\x00\xff", 'logo', 'image/png');
        $email->getHeaders()->addTextHeader('X-Order', '1042');
        $email->getHeaders()->addTextHeader('Idempotency-Key', 'order-1042');
        $email->getHeaders()->addTextHeader('X-Service-Metadata-order', '1042');
        $email->getHeaders()->add(new TagHeader('receipt'));
        $email->getHeaders()->add(new MetadataHeader('customer', 'ada'));
        $sent = self::transport($server)->send($email);

        self::assertSame('em_1', $sent?->getMessageId());
        $request = $server->request();
        self::assertSame('POST /emails HTTP/1.1', $request['line']);
        self::assertSame('Bearer pr_live_1', $request['headers']['Authorization']);
        self::assertSame('order-1042', $request['headers']['Idempotency-Key']);
        $body = json_decode($request['body'], true);
        self::assertSame([
            'from' => '"Jörg \\"J\\"" <hello@example.com>',
            'to' => ['ada@example.net', 'b@example.net'],
            'cc' => ['c@example.net'],
            'bcc' => ['d@example.net'],
            'reply_to' => 'help@example.com',
            'subject' => 'Grüße',
            'text' => 'Danke schön',
            'html' => '<img src="cid:logo">',
            'headers' => ['X-Order' => '1042'],
            'tags' => ['receipt'],
            'attachments' => [
                ['filename' => 'total.txt', 'content' => base64_encode("Total: 42\n"), 'content_type' => 'text/plain'],
                ['filename' => 'logo', 'content' => 'AP8=', 'content_type' => 'image/png', 'content_id' => 'logo'],
            ],
            'metadata' => ['order' => '1042', 'customer' => 'ada'],
        ], $body);
    }

    public function testALaravelMailer(): void
    {
        @include_once 'Illuminate/Support/autoload.php';
        @include_once 'Illuminate/Container/autoload.php';
        if (!class_exists(ServiceProvider::class) || !class_exists(Container::class)) {
            self::markTestSkipped('Laravel is missing: install the package php-illuminate-mail');
        }
        $server = new Server([Server::json(202, Json::RECEIPT)]);
        $container = new Container();
        // The mail manager of Laravel 9 and later; the one of Debian's Laravel 8 knows no Symfony Mailer.
        $manager = new class () {
            /** @var array<string, \Closure> */
            public array $transports = [];

            public function extend(string $name, \Closure $make): void
            {
                $this->transports[$name] = $make;
            }
        };
        $container->singleton('mail.manager', static fn (): object => $manager);
        (new PostroadServiceProvider($container))->boot();
        $container->make('mail.manager');
        $transport = $manager->transports['postroad'](['transport' => 'postroad', 'url' => $server->url(), 'token' => 'pr_live_1']);
        $transport->send((new Email())->from('a@example.com')->to('b@example.net')->text('Hi'));
        self::assertSame('Bearer pr_live_1', $server->request()['headers']['Authorization']);
    }

    public function testSeveralAddressesForReplies(): void
    {
        $server = new Server([Server::json(202, Json::RECEIPT)]);
        $email = (new Email())->from('a@example.com')->to('b@example.net')->text('Hi');
        self::transport($server)->send($email->replyTo('c@example.com', 'd@example.com'));
        self::assertSame(['c@example.com', 'd@example.com'], json_decode($server->request()['body'], true)['reply_to']);
    }

    public function testTemplate(): void
    {
        $server = new Server([Server::json(202, Json::RECEIPT)]);
        $email = (new Email())->from('hello@example.com')->to('ada@example.net')->text('replaced');
        $email->getHeaders()->addTextHeader('X-Service-Template', 'welcome');
        $email->getHeaders()->addTextHeader('X-Service-Variables', '{"name":"Ada"}');
        (new Mailer(self::transport($server)))->send($email);

        self::assertSame(
            ['from' => 'hello@example.com', 'to' => ['ada@example.net'], 'template' => 'welcome', 'variables' => ['name' => 'Ada']],
            json_decode($server->request()['body'], true),
        );
    }

    public function testErrorsAreThoseOfTheMailer(): void
    {
        $server = new Server([Server::json(402, Json::error('insufficient_credits', 'the account has 0 credits'))]);
        try {
            self::transport($server)->send((new Email())->from('a@example.com')->to('b@example.net')->text('Hi'));
            self::fail('it was sent');
        } catch (TransportException $exception) {
            self::assertStringContainsString('the account has 0 credits', $exception->getMessage());
            self::assertInstanceOf(\Postroad\InsufficientCreditsException::class, $exception->getPrevious());
        }
        $this->expectException(TransportException::class);
        $envelope = new \Symfony\Component\Mailer\Envelope(new Address('a@example.com'), [new Address('b@example.net')]);
        self::transport($server)->send(new RawMessage('From: a@example.com'), $envelope);
    }

    public function testTheSchemeIsHttpsByDefault(): void
    {
        $factory = new PostroadTransportFactory();
        $shown = print_r($factory->create(Transport\Dsn::fromString('postroad://pr_live_1@mail.example.com')), true);
        self::assertStringContainsString('https://mail.example.com', $shown);
        self::assertStringNotContainsString('pr_live_1', $shown);
        $this->expectException(\Symfony\Component\Mailer\Exception\IncompleteDsnException::class);
        $factory->create(Transport\Dsn::fromString('postroad://mail.example.com'));
    }

    private static function transport(Server $server): TransportInterface
    {
        $transport = new Transport([new PostroadTransportFactory()]);

        return $transport->fromString("postroad+http://pr_live_1@$server->address?max_elapsed=0");
    }
}
