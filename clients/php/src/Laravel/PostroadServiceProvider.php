<?php

/**
 * Registers the transport `postroad` of Laravel 9 and later. Laravel finds it by itself, through composer.json.
 */

declare(strict_types=1);

namespace Postroad\Laravel;

use Illuminate\Support\ServiceProvider;
use Postroad\Client;
use Postroad\Symfony\PostroadTransport;

final class PostroadServiceProvider extends ServiceProvider
{
    public function boot(): void
    {
        $this->callAfterResolving('mail.manager', static function (object $mail): void {
            $mail->extend('postroad', self::transport(...));
        });
    }

    /**
     * @param array<string, mixed> $settings of the mailer in config/mail.php: `url`, and `token` or `username` and
     *     `password`; perhaps `timeout`, `max_elapsed` and `ca_file`
     */
    public static function transport(array $settings): PostroadTransport
    {
        return new PostroadTransport(new Client(
            $settings['url'] ?? '',
            token: $settings['token'] ?? null,
            username: $settings['username'] ?? null,
            password: $settings['password'] ?? null,
            timeout: (float) ($settings['timeout'] ?? 30),
            maxElapsed: (float) ($settings['max_elapsed'] ?? 60),
            caFile: $settings['ca_file'] ?? null,
        ));
    }
}
