<?php

/**
 * Makes the Authorization header, and checks what goes into headers.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use InvalidArgumentException;
use SensitiveParameter;
use SensitiveParameterValue;

/** @internal */
final class Credential
{
    /** The value is wrapped so that var_dump(), var_export() and stack traces do not show it. */
    public static function authorization(
        #[SensitiveParameter]
        ?string $token,
        #[SensitiveParameter]
        ?string $username,
        #[SensitiveParameter]
        ?string $password,
    ): SensitiveParameterValue {
        if ($token !== null && $username === null && $password === null) {
            self::checkHeader('the token', $token);

            return new SensitiveParameterValue("Bearer $token");
        }
        if ($token !== null || $username === null || $password === null) {
            throw new InvalidArgumentException('a client needs a token, or a username and a password');
        }
        if ($username === '' || $password === '' || str_contains($username, ':')) {
            throw new InvalidArgumentException('a username and a password are not empty, and a username has no colon');
        }

        return new SensitiveParameterValue('Basic ' . base64_encode("$username:$password"));
    }

    public static function checkHeader(
        string $name,
        #[SensitiveParameter]
        string $value,
    ): void {
        if (preg_match('/^[\x20-\x7e]+$/D', $value) !== 1) {
            throw new InvalidArgumentException("$name must be printable ASCII, and not empty");
        }
    }
}
