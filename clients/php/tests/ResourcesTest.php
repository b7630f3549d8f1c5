<?php

/**
 * Every operation beside sending and reading: the request that it makes, and what it gives.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use Closure;
use DateTimeImmutable;
use InvalidArgumentException;
use PHPUnit\Framework\TestCase;
use Postroad\Client;
use Postroad\Email;
use Postroad\Http\Response;
use Postroad\Http\TransportException;
use Postroad\PostroadException;
use Postroad\Tests\Support\FakeClock;
use Postroad\Tests\Support\FakeTransport;

final class ResourcesTest extends TestCase
{
    private const RESPONSE = [
        'id' => 'em_1', 'status' => 'queued', 'results' => [['id' => 'em_1']], 'statistics' => ['queued' => 3],
        'template' => ['alias' => 'welcome'], 'suppression' => ['email' => 'ada@example.net'],
        'domain' => ['name' => 'example.com'], 'webhook' => ['id' => 'whk_1'], 'webhooks' => [['id' => 'whk_1']],
        'delivery' => ['id' => 'whd_1'], 'secret' => 'whsec_1', 'next_cursor' => null,
        'messages' => [['id' => 'em_1']], 'templates' => [['alias' => 'welcome']],
        'suppressions' => [['email' => 'ada@example.net']], 'domains' => [['id' => 'dom_1']],
        'deliveries' => [['id' => 'whd_1']], 'api_keys' => [['id' => 'key_1']], 'api_key' => ['id' => 'key_1'],
        'account' => ['balance' => 3],
    ];

    /** @return iterable<string, array{Closure(Client): mixed, string, ?string, mixed}> */
    public static function operations(): iterable
    {
        $all = self::RESPONSE;
        $email = new Email('a@example.com', 'b@example.net', 'Hi', metadata: ['order' => '1'], expiresIn: 120);
        $written = '{"from":"a@example.com","to":"b@example.net","subject":"Hi","expires_in":120,"metadata":{"order":"1"}}';
        $time = new DateTimeImmutable('2026-01-31T12:00:00Z');
        $table = [
            [fn ($c) => $c->sendBatch([$email]), 'POST /emails/batch', "{\"emails\":[$written]}", $all['results']],
            [fn ($c) => $c->sendBatch([$email], allOrNothing: true), 'POST /emails/batch',
                "{\"emails\":[$written],\"all_or_nothing\":true}", $all['results']],
            [fn ($c) => $c->sendTemplateBatch(['template' => 'welcome']), 'POST /emails/batch',
                '{"template":"welcome"}', $all['results']],
            [fn ($c) => $c->reschedule('em_1', $time), 'PATCH /emails/em_1',
                '{"send_at":"2026-01-31T12:00:00.000+00:00"}', $all],
            [fn ($c) => $c->reschedule('em_1', null), 'PATCH /emails/em_1', '{"send_at":null}', $all],
            [fn ($c) => $c->cancel('em_1'), 'POST /emails/em_1/cancel', null, $all],
            [fn ($c) => $c->get('em_1', includeQueue: true)->id, 'GET /emails/em_1?include=queue', null, 'em_1'],
            [fn ($c) => $c->statistics('7d'), 'GET /v1/statistics?period=7d', null, $all['statistics']],
            [fn ($c) => iterator_to_array($c->messages->list(metadata: 'order:1 2', after: $time)),
                'GET /v1/messages?metadata=order%3A1%202&after=2026-01-31T12%3A00%3A00.000%2B00%3A00', null, $all['messages']],
            [fn ($c) => $c->messages->get('em_1'), 'GET /v1/messages/em_1', null, $all],
            [fn ($c) => $c->messages->retry('em_1'), 'POST /v1/messages/em_1/retry', '{}', $all],
            [fn ($c) => $c->messages->retry('em_1', 'rcp_1'), 'POST /v1/messages/em_1/retry', '{"recipient_id":"rcp_1"}', $all],
            [fn ($c) => iterator_to_array($c->templates->list()), 'GET /v1/templates', null, $all['templates']],
            [fn ($c) => $c->templates->get('a/b?'), 'GET /v1/templates/a%2Fb%3F', null, $all['template']],
            [fn ($c) => $c->templates->save('welcome', 'Hi', text: 'Ho'), 'PUT /v1/templates/welcome',
                '{"subject":"Hi","text":"Ho"}', $all['template']],
            [fn ($c) => $c->templates->delete('welcome'), 'DELETE /v1/templates/welcome', null, null],
            [fn ($c) => $c->templates->preview('welcome'), 'POST /v1/templates/welcome/preview', '{"variables":{}}', $all],
            [fn ($c) => iterator_to_array($c->suppressions->list(source: 'account')),
                'GET /v1/suppressions?source=account', null, $all['suppressions']],
            [fn ($c) => $c->suppressions->create('ada@example.net', 'asked'), 'POST /v1/suppressions',
                '{"email":"ada@example.net","reason":"asked"}', $all['suppression']],
            [fn ($c) => $c->suppressions->get('a+b@example.net'), 'GET /v1/suppressions/a%2Bb%40example.net', null, $all['suppression']],
            [fn ($c) => $c->suppressions->delete('ada@example.net'), 'DELETE /v1/suppressions/ada%40example.net', null, null],
            [fn ($c) => iterator_to_array($c->domains->list(limit: 100)), 'GET /v1/domains?limit=100', null, $all['domains']],
            [fn ($c) => $c->domains->create('example.com'), 'POST /v1/domains', '{"name":"example.com"}', $all['domain']],
            [fn ($c) => $c->domains->get('dom_1'), 'GET /v1/domains/dom_1', null, $all['domain']],
            [fn ($c) => $c->domains->check('dom_1'), 'POST /v1/domains/dom_1/check', null, $all['domain']],
            [fn ($c) => $c->domains->rotateKey('dom_1'), 'POST /v1/domains/dom_1/rotate-key', null, $all['domain']],
            [fn ($c) => $c->domains->delete('dom_1'), 'DELETE /v1/domains/dom_1', null, null],
            [fn ($c) => iterator_to_array($c->webhooks->list()), 'GET /v1/webhooks', null, $all['webhooks']],
            [fn ($c) => $c->webhooks->create('https://example.com/hook', events: ['email.bounced'])['secret'],
                'POST /v1/webhooks', '{"url":"https://example.com/hook","events":["email.bounced"]}', 'whsec_1'],
            [fn ($c) => $c->webhooks->get('whk_1'), 'GET /v1/webhooks/whk_1', null, $all['webhook']],
            [fn ($c) => $c->webhooks->update('whk_1', enabled: false), 'PATCH /v1/webhooks/whk_1', '{"enabled":false}', $all['webhook']],
            [fn ($c) => $c->webhooks->delete('whk_1'), 'DELETE /v1/webhooks/whk_1', null, null],
            [fn ($c) => $c->webhooks->rotateSecret('whk_1', overlapHours: 24), 'POST /v1/webhooks/whk_1/rotate-secret',
                '{"overlap_hours":24}', 'whsec_1'],
            [fn ($c) => $c->webhooks->ping('whk_1'), 'POST /v1/webhooks/whk_1/ping', null, $all['delivery']],
            [fn ($c) => iterator_to_array($c->webhooks->deliveries('whk_1', status: 'failed')),
                'GET /v1/webhooks/whk_1/deliveries?status=failed', null, $all['deliveries']],
            [fn ($c) => $c->webhooks->getDelivery('whk_1', 'whd_1'), 'GET /v1/webhooks/whk_1/deliveries/whd_1', null, $all['delivery']],
            [fn ($c) => $c->webhooks->replayFailed('whk_1', after: $time, before: '2026-02-01T12:00:00Z'),
                'POST /v1/webhooks/whk_1/deliveries/replay',
                '{"after":"2026-01-31T12:00:00.000+00:00","before":"2026-02-01T12:00:00Z"}', $all],
            [fn ($c) => iterator_to_array($c->apiKeys->list()), 'GET /v1/api-keys', null, $all['api_keys']],
            [fn ($c) => $c->apiKeys->create('shop', scopes: ['send']), 'POST /v1/api-keys', '{"name":"shop","scopes":["send"]}', $all],
            [fn ($c) => $c->apiKeys->update('key_1', scopes: ['read']), 'PATCH /v1/api-keys/key_1', '{"scopes":["read"]}', $all['api_key']],
            [fn ($c) => $c->apiKeys->revoke('key_1'), 'DELETE /v1/api-keys/key_1', null, null],
            [fn ($c) => $c->account(), 'GET /v1/account', null, $all['account']],
            [fn ($c) => $c->webhooks->replay('whk_1', 'whd_1'), 'POST /v1/webhooks/whk_1/deliveries/whd_1/replay', null, $all['delivery']],
        ];
        foreach ($table as $row) {
            yield "$row[1] $row[2]" => $row;
        }
    }

    /**
     * @dataProvider operations
     *
     * @param Closure(Client): mixed $operation
     */
    public function testOperation(Closure $operation, string $line, ?string $body, mixed $expected): void
    {
        $status = str_starts_with($line, 'DELETE') ? 204 : 200;
        $transport = self::transport(new Response($status, [], $status === 204 ? '' : json_encode(self::RESPONSE)));

        self::assertSame($expected, $operation(self::client($transport)));
        [$request] = $transport->requests;
        self::assertSame($line, $request->method . ' ' . substr($request->url, strlen('http://127.0.0.1:1')));
        self::assertSame($body, $request->body);
        self::assertSame(str_contains($line, '/batch'), $request->idempotencyKey !== null);
    }

    public function testAListReadsThePagesThatAreNeeded(): void
    {
        $transport = self::transport(
            new Response(200, [], '{"domains":[{"id":"dom_1"},{"id":"dom_2"}],"next_cursor":"dom_2"}'),
            new Response(200, [], '{"domains":[{"id":"dom_3"}],"next_cursor":null}'),
        );
        $domains = self::client($transport)->domains->list(limit: 2);
        $domains->current();
        self::assertCount(1, $transport->requests);
        self::assertSame(['dom_1', 'dom_2', 'dom_3'], array_column(iterator_to_array($domains), 'id'));
        self::assertStringEndsWith('/v1/domains?limit=2&cursor=dom_2', $transport->requests[1]->url);
    }

    public function testOnlyWhatDoesNoHarmTwiceIsRepeatedAfterALostConnection(): void
    {
        $operations = [
            [fn ($c) => $c->templates->delete('welcome'), 2],
            [fn ($c) => $c->cancel('em_1'), 2],
            [fn ($c) => $c->sendBatch([]), 2],
            [fn ($c) => $c->webhooks->create('https://example.com'), 1],
            [fn ($c) => $c->messages->retry('em_1'), 1],
        ];
        foreach ($operations as [$operation, $requests]) {
            $transport = self::transport(TransportException::connectionFailed('reset'), new Response(200, [], '{"results":[]}'));
            try {
                $operation(self::client($transport));
            } catch (PostroadException $exception) {
                self::assertSame('connection_failed', $exception->errorCode);
            }
            self::assertCount($requests, $transport->requests);
        }
    }

    public function testWhatWasNotDoneIsRepeated(): void
    {
        $busy = new Response(503, [], '{"error":"stopping","code":"service_unavailable"}');
        $transport = self::transport($busy, new Response(201, [], '{"domain":{"id":"dom_1"}}'));
        self::assertSame(['id' => 'dom_1'], self::client($transport)->domains->create('example.com'));
        self::assertCount(2, $transport->requests);
    }

    public function testAResponseOfAnotherServerIsUnexpected(): void
    {
        $operations = [fn ($c) => $c->domains->get('dom_1'), fn ($c) => $c->webhooks->rotateSecret('whk_1'), fn ($c) => $c->sendBatch([]), fn ($c) => $c->statistics()];
        foreach ($operations as $operation) {
            try {
                $operation(self::client(self::transport(new Response(200, [], '{"domain":"world","secret":{}}'))));
                self::fail('it was taken for a response of Postroad');
            } catch (PostroadException $exception) {
                self::assertSame('unexpected_response', $exception->errorCode);
            }
        }
    }

    public function testNothingLeadsToAnotherPath(): void
    {
        $transport = self::transport(new Response(200, [], '{}'));
        foreach (['', '.', '..'] as $alias) {
            try {
                self::client($transport)->templates->get($alias);
                self::fail('it was not refused');
            } catch (InvalidArgumentException $exception) {
                self::assertSame('a name in a path is not empty, and not "." or ".."', $exception->getMessage());
            }
        }
        $this->expectException(InvalidArgumentException::class);
        self::client($transport)->cancel('em_1/../em_2');
    }

    private static function transport(Response|TransportException ...$outcomes): FakeTransport
    {
        return new FakeTransport(new FakeClock(), ...$outcomes);
    }

    private static function client(FakeTransport $transport): Client
    {
        return new Client('http://127.0.0.1:1', token: 'pr_live_1', transport: $transport);
    }
}
