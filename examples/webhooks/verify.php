<?php

function is_genuine(string $body, ?string $header, string $secret, ?int $now = null): bool
{
    $sent = ['t' => [], 'v1' => []];
    foreach (explode(',', $header ?? '') as $part) {
        [$name, $value] = explode('=', $part, 2) + [1 => ''];
        $sent[$name][] = $value;
    }
    if ($secret === '' || count($sent['t']) !== 1 || !preg_match('/\A[0-9]{1,15}\z/', $sent['t'][0])) {
        return false;
    }
    if (abs(($now ?? time()) - (int) $sent['t'][0]) > 300) {
        return false;
    }
    $expected = hash_hmac('sha256', $sent['t'][0] . '.' . $body, $secret);
    foreach ($sent['v1'] as $value) {
        if (hash_equals($expected, $value)) {
            return true;
        }
    }
    return false;
}
