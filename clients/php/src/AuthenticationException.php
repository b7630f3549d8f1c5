<?php

/**
 * The token, or the username and password, are not valid: status 401.
 */

declare(strict_types=1);

namespace Postroad;

final class AuthenticationException extends PostroadException
{
}
