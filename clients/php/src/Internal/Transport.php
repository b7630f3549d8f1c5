<?php

/**
 * What carries a request to the service and brings the response; tests have one without a network.
 */

declare(strict_types=1);

namespace Postroad\Internal;

/** @internal */
interface Transport
{
    /**
     * One attempt, of at most so many seconds.
     *
     * @throws Failure when there is no whole response
     */
    public function exchange(Request $request, float $timeout): Response;
}
