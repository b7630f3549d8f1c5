<?php

/**
 * A response that Postroad does not give: a 2xx or 3xx of something else, or no HTTP at all.
 */

declare(strict_types=1);

namespace Postroad;

final class UnexpectedResponseException extends PostroadException
{
}
