<?php

/**
 * Writes the body of a request.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use DateTimeInterface;
use InvalidArgumentException;
use JsonException;

/** @internal */
final class Json
{
    private const FLAGS = JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE
        | JSON_PRESERVE_ZERO_FRACTION;

    /** @param array<string, mixed> $members of an object; a time is written as RFC 3339 */
    public static function object(array $members): string
    {
        $encoded = [];
        foreach ($members as $name => $value) {
            try {
                // One by one, so that the error can say which of them is wrong.
                $encoded[] = json_encode((string) $name, self::FLAGS) . ':'
                    . json_encode(self::plain($value), self::FLAGS);
            } catch (JsonException $exception) {
                throw new InvalidArgumentException("$name cannot be written as JSON: " . $exception->getMessage());
            }
        }

        return '{' . implode(',', $encoded) . '}';
    }

    /** RFC 3339 with milliseconds. */
    public static function time(DateTimeInterface $time): string
    {
        return $time->format(DateTimeInterface::RFC3339_EXTENDED);
    }

    private static function plain(mixed $value): mixed
    {
        return $value instanceof DateTimeInterface ? self::time($value) : $value;
    }
}
