<?php

/**
 * The credential may not do this, or the account is suspended: status 403.
 */

declare(strict_types=1);

namespace Postroad;

final class PermissionDeniedException extends PostroadException
{
}
