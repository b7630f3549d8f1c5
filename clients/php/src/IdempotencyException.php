<?php

/**
 * The key was used with another message, or its first request is in progress: status 409.
 */

declare(strict_types=1);

namespace Postroad;

final class IdempotencyException extends PostroadException
{
}
