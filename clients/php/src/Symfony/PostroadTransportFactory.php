<?php

/**
 * Makes the transport of a DSN: `postroad://API_KEY@mail.example.com`. It needs the package symfony/mailer.
 */

declare(strict_types=1);

namespace Postroad\Symfony;

use Postroad\Client;
use Symfony\Component\Mailer\Exception\UnsupportedSchemeException;
use Symfony\Component\Mailer\Transport\AbstractTransportFactory;
use Symfony\Component\Mailer\Transport\Dsn;
use Symfony\Component\Mailer\Transport\TransportInterface;

final class PostroadTransportFactory extends AbstractTransportFactory
{
    /** The scheme `postroad+http` is for a service on the same machine; a password makes it an SMTP credential. */
    public function create(Dsn $dsn): TransportInterface
    {
        if (!$this->supports($dsn)) {
            throw new UnsupportedSchemeException($dsn, 'postroad', $this->getSupportedSchemes());
        }
        $scheme = $dsn->getScheme() === 'postroad+http' ? 'http' : 'https';
        $port = $dsn->getPort() === null ? '' : ':' . $dsn->getPort();
        $credential = $dsn->getPassword() === null
            ? ['token' => $this->getUser($dsn)]
            : ['username' => $this->getUser($dsn), 'password' => $dsn->getPassword()];
        $client = new Client(
            "$scheme://{$dsn->getHost()}$port",
            ...$credential,
            timeout: (float) $dsn->getOption('timeout', 30),
            maxElapsed: (float) $dsn->getOption('max_elapsed', 60),
        );

        return new PostroadTransport($client, $this->dispatcher, $this->logger);
    }

    protected function getSupportedSchemes(): array
    {
        return ['postroad', 'postroad+http'];
    }
}
