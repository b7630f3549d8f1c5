<?php

/**
 * A connection to the service, with TLS or without, for several requests one after the other. Nothing in here blocks beyond the deadline, except that PHP cannot
 * bound the time in which the system looks up a name.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Postroad\Http\TransportException;
use SensitiveParameter;

/** @internal */
final class Connection
{
    private const CHUNK = 64 * 1024;
    private const LONGEST_WAIT = 60.0;
    // ETIMEDOUT of Linux, of BSD and macOS, of Windows.
    private const TIMED_OUT = [110, 60, 10060];
    private const INTERRUPTED = '[4]';

    // As long as a usual server keeps an idle connection.
    private const IDLE_SECONDS = 30.0;

    private float $restingSince = 0.0;
    private readonly int|false $process;

    /**
     * @param resource $socket
     * @param string $peer host and port
     */
    private function __construct(
        private readonly mixed $socket,
        public readonly string $peer,
        private readonly bool $isSecure,
    ) {
        $this->process = getmypid();
    }

    /** @throws TransportException */
    public static function open(BaseUrl $url, ?string $caFile, Deadline $deadline): self
    {
        $peer = $url->hostAndPort();
        $aim = "could not connect to $peer";
        $left = $deadline->left($aim);
        $context = stream_context_create([
            'ssl' => self::tlsOptions($url, $caFile),
            'socket' => ['tcp_nodelay' => true],
        ]);
        $errno = 0;
        $reason = '';
        [$socket] = Warnings::of(static function () use ($peer, $left, $context, &$errno, &$reason): mixed {
            return stream_socket_client("tcp://$peer", $errno, $reason, $left, STREAM_CLIENT_CONNECT, $context);
        });
        if ($socket === false) {
            throw in_array($errno, self::TIMED_OUT, true)
                ? $deadline->failure($aim)
                : TransportException::connectionFailed("$aim: " . str_replace('php_network_getaddresses: ', '', $reason));
        }
        stream_set_blocking($socket, false);
        $connection = new self($socket, $peer, $url->isSecure);
        if ($url->isSecure) {
            $connection->startTls($deadline);
        }

        return $connection;
    }

    /**
     * Writes what can be written now.
     *
     * @return ?int the number of bytes, perhaps 0; null when the other end does not read any more
     */
    public function write(
        #[SensitiveParameter]
        string $bytes,
        int $offset,
    ): ?int {
        [$written] = Warnings::of(fn (): int|false => fwrite($this->socket, substr($bytes, $offset, self::CHUNK)));

        return $written === false ? null : $written;
    }

    /**
     * Reads what is there now.
     *
     * @return ?string perhaps empty; null when the other end has closed the connection
     *
     * @throws TransportException when the connection broke
     */
    public function read(): ?string
    {
        [$bytes, $warning] = Warnings::of(fn (): string|false => fread($this->socket, self::CHUNK));
        if ($bytes === false || ($bytes === '' && $warning !== '')) {
            $reason = $warning === '' ? 'it was reset' : $warning;
            throw TransportException::connectionFailed("the connection to $this->peer broke: $reason");
        }

        return $bytes === '' && feof($this->socket) ? null : $bytes;
    }

    /**
     * Waits until there is something to read, or room to write; perhaps not so long.
     *
     * @throws TransportException at the deadline
     */
    public function wait(bool $toWrite, Deadline $deadline, string $aim): void
    {
        $microseconds = (int) ceil(min(self::LONGEST_WAIT, $deadline->left($aim)) * 1e6);
        $readable = [$this->socket];
        $writable = $toWrite ? [$this->socket] : [];
        $none = [];
        [, $warning] = Warnings::of(static function () use (&$readable, &$writable, &$none, $microseconds): mixed {
            return stream_select($readable, $writable, $none, 0, $microseconds);
        });
        // A signal is no reason to give up. More open files than select() can watch is one.
        if ($warning !== '' && !str_contains($warning, self::INTERRUPTED)) {
            throw TransportException::connectionFailed("cannot wait for $this->peer: $warning");
        }
    }

    /** The response is complete; the connection may be used again for a while. */
    public function rest(): self
    {
        $this->restingSince = hrtime(true) / 1e9;

        return $this;
    }

    /**
     * Whether a request may go over a resting connection. It has nothing to read: what can be read is its end, or
     * something that is not the response to the next request. A forked process does not use those of its parent.
     */
    public function isUsableFor(BaseUrl $url): bool
    {
        $age = hrtime(true) / 1e9 - $this->restingSince;
        if ($this->peer !== $url->hostAndPort() || $this->isSecure !== $url->isSecure
            || $age >= self::IDLE_SECONDS || $this->process !== getmypid()) {
            return false;
        }
        $readable = [$this->socket];
        $none = [];
        [$count] = Warnings::of(static function () use (&$readable, &$none): int|false {
            return stream_select($readable, $none, $none, 0);
        });

        return $count === 0;
    }

    public function close(): void
    {
        Warnings::of(fn (): bool => fclose($this->socket));
    }

    private function startTls(Deadline $deadline): void
    {
        $aim = "could not set up TLS with $this->peer";
        $method = STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT | STREAM_CRYPTO_METHOD_TLSv1_3_CLIENT;
        do {
            [$result, $warning] = Warnings::of(
                fn (): int|bool => stream_socket_enable_crypto($this->socket, true, $method),
            );
            if ($result === false) {
                $reason = $warning === '' ? 'the connection broke' : $warning;
                throw TransportException::connectionFailed("$aim: $reason");
            }
            if ($result === 0) {
                $this->wait(false, $deadline, $aim);
            }
        } while ($result === 0);
    }

    /** @return array<string, mixed> */
    private static function tlsOptions(BaseUrl $url, ?string $caFile): array
    {
        $name = trim($url->host, '[]');
        $isAddress = filter_var($name, FILTER_VALIDATE_IP) !== false;

        return [
            'verify_peer' => true,
            'verify_peer_name' => true,
            'peer_name' => $name,
            // TLS has no way to ask for an address.
            'SNI_enabled' => !$isAddress,
        ] + ($caFile === null ? [] : ['cafile' => $caFile]);
    }
}
