<?php

/**
 * No connection, or one that was lost before the response was complete.
 */

declare(strict_types=1);

namespace Postroad;

final class ConnectionFailedException extends PostroadException
{
}
