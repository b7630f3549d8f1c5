<?php

/**
 * Too many requests, or more mail than the sender may send now: status 429.
 */

declare(strict_types=1);

namespace Postroad;

final class RateLimitException extends PostroadException
{
}
