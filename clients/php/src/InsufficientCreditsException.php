<?php

/**
 * The account has fewer credits than the message has recipients: status 402.
 */

declare(strict_types=1);

namespace Postroad;

final class InsufficientCreditsException extends PostroadException
{
}
