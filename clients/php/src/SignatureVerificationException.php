<?php

/**
 * A webhook request that was not signed with the secret, or not recently.
 */

declare(strict_types=1);

namespace Postroad;

final class SignatureVerificationException extends PostroadException
{
}
