<?php

/**
 * Templates of mail.
 */

declare(strict_types=1);

namespace Postroad\Resources;

use Generator;
use Postroad\Internal\Api;

final readonly class Templates
{
    /** @internal */
    public function __construct(private Api $api)
    {
    }

    /**
     * All templates, without their bodies.
     *
     * @param mixed ...$filters as the API names them: limit
     *
     * @return Generator<int, array<string, mixed>>
     */
    public function list(mixed ...$filters): Generator
    {
        return $this->api->each('/v1/templates', [], 'templates', $filters);
    }

    /**
     * One template.
     *
     * @return array<string, mixed>
     */
    public function get(string $alias): array
    {
        return $this->api->call('GET', '/v1/templates/{}', [$alias], member: 'template');
    }

    /**
     * Creates the template, or changes it.
     *
     * @return array<string, mixed>
     */
    public function save(string $alias, string $subject, ?string $text = null, ?string $html = null): array
    {
        $body = array_filter(
            ['subject' => $subject, 'text' => $text, 'html' => $html],
            static fn (?string $value): bool => $value !== null,
        );

        return $this->api->call('PUT', '/v1/templates/{}', [$alias], body: $body, member: 'template');
    }

    /** Removes it. */
    public function delete(string $alias): void
    {
        $this->api->call('DELETE', '/v1/templates/{}', [$alias]);
    }

    /**
     * What a mail with these values would say: subject, text and html.
     *
     * @param array<string, mixed> $variables
     *
     * @return array<string, mixed>
     */
    public function preview(string $alias, array $variables = []): array
    {
        $body = ['variables' => (object) $variables];

        return $this->api->call('POST', '/v1/templates/{}/preview', [$alias], body: $body, isRepeatable: true);
    }
}
