<?php

/**
 * Tells whether a request to your webhook comes from Postroad.
 */

declare(strict_types=1);

namespace Postroad;

use SensitiveParameter;

final class Webhook
{
    /**
     * True when the request was signed with the secret, at most so many seconds from now.
     *
     * @param string $rawBody the bytes as they came: `file_get_contents('php://input')`
     * @param ?string $header `Service-Signature`: `$_SERVER['HTTP_SERVICE_SIGNATURE'] ?? null`
     * @param string $secret all of it, `whsec_` included
     * @param ?int $now seconds since 1970, in the place of the clock, for tests
     */
    public static function verify(
        string $rawBody,
        ?string $header,
        #[SensitiveParameter]
        string $secret,
        int $tolerance = 300,
        ?int $now = null,
    ): bool {
        $times = $signatures = [];
        foreach (explode(',', $header ?? '') as $part) {
            [$name, $value] = explode('=', $part, 2) + [1 => ''];
            if ($name === 't') {
                $times[] = $value;
            } elseif ($name === 'v1') {
                $signatures[] = $value;
            }
        }
        if ($secret === '' || count($times) !== 1 || preg_match('/\A[0-9]{1,15}\z/', $times[0]) !== 1) {
            return false;
        }
        if (abs(($now ?? time()) - (int) $times[0]) > $tolerance) {
            return false;
        }
        $expected = hash_hmac('sha256', "$times[0].$rawBody", $secret);
        foreach ($signatures as $signature) {
            if (hash_equals($expected, $signature)) {
                return true;
            }
        }

        return false;
    }
}
