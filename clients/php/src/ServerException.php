<?php

/**
 * The service, or a proxy before it, is out of order: status 5xx.
 */

declare(strict_types=1);

namespace Postroad;

final class ServerException extends PostroadException
{
}
