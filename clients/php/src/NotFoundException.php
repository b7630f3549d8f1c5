<?php

/**
 * There is no message with this id: status 404.
 */

declare(strict_types=1);

namespace Postroad;

final class NotFoundException extends PostroadException
{
}
