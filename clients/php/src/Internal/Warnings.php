<?php

/**
 * PHP's functions for files and sockets tell their reasons in warnings. This keeps them from the application, and gives
 * them to the caller.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Closure;

/** @internal */
final class Warnings
{
    /**
     * @template T
     *
     * @param Closure(): T $work
     *
     * @return array{T, string} what came of it, and what PHP warned of
     */
    public static function of(Closure $work): array
    {
        $warnings = [];
        set_error_handler(static function (int $level, string $warning) use (&$warnings): bool {
            // "fopen(path): Failed to …" begins with what the caller knows already.
            $warnings[] = trim(preg_replace(['/\A\w+\(.*?\): /', '/\s+/'], ['', ' '], $warning) ?? $warning);

            return true;
        });
        try {
            $result = $work();
        } finally {
            restore_error_handler();
        }

        return [$result, implode('; ', $warnings)];
    }
}
