<?php

/**
 * The header Retry-After.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use DateTimeImmutable;
use DateTimeZone;

/** @internal */
final class RetryAfter
{
    // The three forms of a date in HTTP; only the first is written today.
    private const DATES = ['D, d M Y H:i:s \G\M\T', 'l, d-M-y H:i:s \G\M\T', 'D M j H:i:s Y'];

    /**
     * @param float $time seconds since 1970, now
     *
     * @return ?float seconds to wait; null for a date that has passed, and for what is neither number nor date
     */
    public static function parse(?string $value, float $time): ?float
    {
        // PHP throws when a date has a NUL in it.
        if ($value === null || str_contains($value, "\0")) {
            return null;
        }
        if (preg_match('/\A[0-9]+\z/', $value) === 1) {
            return min((float) $value, PHP_INT_MAX);
        }
        $value = preg_replace('/ +/', ' ', $value);
        foreach (self::DATES as $format) {
            $date = DateTimeImmutable::createFromFormat("!$format", $value, new DateTimeZone('UTC'));
            // PHP makes 2 March of 30 February: a date that is written in another way than it came is none.
            if ($date !== false && $date->format($format) === $value) {
                return $date->getTimestamp() > $time ? $date->getTimestamp() - $time : null;
            }
        }

        return null;
    }
}
