<?php

/**
 * Makes the requests of all operations: paths, queries, bodies, the credential, and the retries that each may have.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Closure;
use DateTimeInterface;
use Generator;
use InvalidArgumentException;
use Postroad\Http\Request;
use Postroad\PostroadException;
use SensitiveParameterValue;

/** @internal */
final readonly class Api
{
    public function __construct(
        private string $baseUrl,
        private SensitiveParameterValue $authorization,
        private Caller $caller,
    ) {
    }

    /**
     * A request, and its response as the array that JSON makes of it.
     *
     * @param string $path with a `{}` for each of the segments
     * @param list<string> $segments
     * @param array<string, mixed> $query what is null is left out
     * @param array<string, mixed>|null $body members that are null are sent as null
     * @param bool $isRepeatable a POST that does no harm the second time
     * @param ?string $member gives this member of the response, without which it is none of Postroad
     *
     * @return array<string, mixed>|string
     *
     * @throws PostroadException
     */
    public function call(
        string $method,
        string $path,
        array $segments = [],
        array $query = [],
        ?array $body = null,
        bool $isRepeatable = false,
        ?string $member = null,
    ): array|string {
        $path = self::path($path, $segments) . self::query($query);
        $request = $this->request($method, $path, $body, isRepeatable: $isRepeatable);

        $read = static fn (Members $members): Members => $members->having($member);
        $array = $this->caller->call($request, $read)->toArray();

        return $member === null ? $array : $array[$member];
    }

    /**
     * The items of a list, page after page; the next page is read when it is needed.
     *
     * @param list<string> $segments
     * @param string $name what the response calls the items
     * @param array<string, mixed> $query
     *
     * @return Generator<int, array<string, mixed>>
     */
    public function each(string $path, array $segments, string $name, array $query): Generator
    {
        do {
            $page = $this->call('GET', $path, $segments, $query);
            foreach ($page[$name] ?? [] as $item) {
                yield $item;
            }
            $following = array_filter([
                'cursor' => $page['next_cursor'] ?? null,
                'before' => $page['next_before'] ?? null,
            ], is_string(...));
            $query = [...$query, ...$following];
        } while ($following !== []);
    }

    /**
     * A POST with a key: the caller's, or a new UUID.
     *
     * @template T of object
     *
     * @param array<string, mixed> $body
     * @param Closure(Members): T $make
     *
     * @return T
     *
     * @throws PostroadException
     * @throws InvalidArgumentException when the key cannot be a header
     */
    public function send(string $path, array $body, Closure $make, ?string $key): object
    {
        $key ??= self::uuid();
        Credential::checkHeader('the idempotency key', $key);

        return $this->read('POST', $path, $body, $make, $key);
    }

    /**
     * A request whose response is read by the closure.
     *
     * @template T of object
     *
     * @param array<string, mixed>|null $body
     * @param Closure(Members): T $make
     *
     * @return T
     *
     * @throws PostroadException
     */
    public function read(string $method, string $path, ?array $body, Closure $make, ?string $key = null): object
    {
        return $this->caller->call($this->request($method, $path, $body, $key), $make);
    }

    /** An id as a part of a path: nothing in it can lead to another path. */
    public static function id(string $id): string
    {
        if (preg_match('/\A[A-Za-z0-9_-]+\z/', $id) !== 1) {
            throw new InvalidArgumentException('an id is letters, digits, "_" and "-"');
        }

        return $id;
    }

    /** @param array<string, mixed>|null $body */
    private function request(
        string $method,
        string $path,
        ?array $body,
        ?string $key = null,
        bool $isRepeatable = false,
    ): Request {
        $json = $body === null ? null : Json::object($body);

        return new Request($method, $this->baseUrl . $path, $this->authorization, $key, $json, $isRepeatable || $method !== 'POST');
    }

    /** @param list<string> $segments */
    private static function path(string $path, array $segments): string
    {
        foreach ($segments as $segment) {
            // A path with "." or ".." is another one to whoever normalizes it, encoded or not.
            if (in_array($segment, ['', '.', '..'], true)) {
                throw new InvalidArgumentException('a name in a path is not empty, and not "." or ".."');
            }
            $path = substr_replace($path, rawurlencode($segment), (int) strpos($path, '{}'), 2);
        }

        return $path;
    }

    /** @param array<string, mixed> $query */
    private static function query(array $query): string
    {
        $text = http_build_query(array_map(static fn (mixed $value): mixed => match (true) {
            $value instanceof DateTimeInterface => Json::time($value),
            is_bool($value) => $value ? 'true' : 'false',
            default => $value,
        }, $query), '', '&', PHP_QUERY_RFC3986);

        return $text === '' ? '' : "?$text";
    }

    /** A random UUID (version 4). */
    private static function uuid(): string
    {
        $bytes = random_bytes(16);
        $bytes[6] = chr(ord($bytes[6]) & 0x0f | 0x40);
        $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);

        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
    }
}
