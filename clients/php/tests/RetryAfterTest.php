<?php

/**
 * The header Retry-After: seconds, dates, and nonsense.
 */

declare(strict_types=1);

namespace Postroad\Tests;

use PHPUnit\Framework\TestCase;
use Postroad\Internal\RetryAfter;

final class RetryAfterTest extends TestCase
{
    // Fri, 06 Nov 2026 08:49:37 GMT
    private const NOW = 1793954977.0;

    /** @return array<string, array{?string, ?float}> */
    public function values(): array
    {
        return [
            'none' => [null, null],
            'seconds' => ['120', 120.0],
            'zero' => ['0', 0.0],
            'very many' => [str_repeat('9', 400), (float) PHP_INT_MAX],
            'negative' => ['-1', null],
            'a sign' => ['+1', null],
            'a fraction' => ['1.5', null],
            'an exponent' => ['1e3', null],
            'empty' => ['', null],
            'a word' => ['tomorrow', null],
            'two' => ['1, 2', null],
            'a date' => ['Fri, 06 Nov 2026 08:49:47 GMT', 10.0],
            'a date of RFC 850' => ['Friday, 06-Nov-26 08:49:47 GMT', 10.0],
            'a date of asctime' => ['Fri Nov  6 08:49:47 2026', 10.0],
            'a date that has passed' => ['Fri, 06 Nov 2026 08:49:36 GMT', null],
            'the wrong weekday' => ['Mon, 06 Nov 2026 08:49:47 GMT', null],
            'no such day' => ['Tue, 31 Nov 2026 08:49:47 GMT', null],
            'another zone' => ['Fri, 06 Nov 2026 08:49:47 CET', null],
            'a NUL' => ["Fri, 06 Nov 2026\0", null],
        ];
    }

    /** @dataProvider values */
    public function testParse(?string $value, ?float $seconds): void
    {
        self::assertSame($seconds, RetryAfter::parse($value, self::NOW));
    }
}
