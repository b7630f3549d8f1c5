<?php

/**
 * Postroad does not accept the request: status 400, 413, 415, 422, or another 4xx without a class of its own.
 */

declare(strict_types=1);

namespace Postroad;

final class InvalidRequestException extends PostroadException
{
}
