<?php

/**
 * Answers of the service for tests.
 */

declare(strict_types=1);

namespace Postroad\Tests\Support;

final class Json
{
    public const RECEIPT = '{"id":"em_1","status":"queued","source":"api","request_id":"req_1"}';
    public const MESSAGE = '{"id":"em_1","status":"delivered"}';

    public static function error(string $code, string $error = 'no', string $requestId = 'req_1'): string
    {
        return json_encode(['error' => $error, 'code' => $code, 'request_id' => $requestId], JSON_THROW_ON_ERROR);
    }
}
