<?php

/**
 * What carries a request to the service and brings the response. SocketTransport is the usual one; give the client
 * another to send through an HTTP client of your own, or through none in tests.
 */

declare(strict_types=1);

namespace Postroad\Http;

interface Transport
{
    /**
     * One attempt, of at most so many seconds. It must not repeat the request, follow redirects, or throw for a status
     * such as 404 or 503: the client decides about them.
     *
     * @throws TransportException when there is no whole response
     */
    public function exchange(Request $request, float $timeout): Response;
}
