"""TLS as a server: certificates read from PEM files and reloaded, handshakes, and answers to TLS-ALPN-01 challenges."""

import asyncio
import contextlib
import datetime as dt
import functools
import hashlib
import secrets
import socket
import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec
from cryptography import exceptions, x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from postroad.network import listener

PASSWORD_BYTES: Final = 32


class CertificateError(Exception):
    """A certificate cannot be used; the text names the file and says what is wrong."""


class ServerCertificate(Protocol):
    """What a listener needs of its certificate."""

    @property
    def context(self) -> ssl.SSLContext | None:
        """The context of the next handshake; None while there is no certificate."""

    def refresh(self) -> str | None:
        """Take over a change, and describe it; None when there is none. Raises CertificateError if it is unusable."""


class Certificate:
    """A certificate with its key; made by `load`."""

    def __init__(self, certificate: Path, key: Path, *, context: ssl.SSLContext, seen: object) -> None:
        self.context = context
        self._certificate = certificate
        self._key = key
        self._seen = seen

    @classmethod
    def load(cls, certificate: Path, key: Path) -> "Certificate":
        """Read both files. Raises CertificateError."""
        seen = _version(certificate), _version(key)
        return cls(certificate, key, context=_context(certificate, key), seen=seen)

    def refresh(self) -> str | None:
        """Read the files again if they have changed, and describe it; None when they have not.

        Raises CertificateError, once for each change, when they cannot be used: the old certificate stays.
        """
        seen = _version(self._certificate), _version(self._key)
        if seen == self._seen:
            return None
        self._seen = seen
        self.context = _context(self._certificate, self._key)
        return f"the certificate in {self._certificate} was reloaded"


class MemoryCertificate:
    """A certificate that is not in files; there is none at first."""

    def __init__(self) -> None:
        self.context: ssl.SSLContext | None = None

    def replace(self, chain: bytes, key: bytes) -> None:
        """Use another certificate. Raises CertificateError."""
        self.context = context_of(chain, key)

    def refresh(self) -> None:
        """Nothing to do: it is replaced from outside."""


def _version(file: Path) -> tuple[int, int, int] | None:
    """Changes with the file: a file that replaces another has a new inode."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class Description(msgspec.Struct, frozen=True):
    """The host names of a certificate, and from when until when it is valid, in seconds since 1970."""

    names: tuple[str, ...]
    valid_from: int
    expires_at: int


def describe(chain: bytes) -> Description:
    """What the first certificate of a PEM chain says. Raises ValueError."""
    certificate = x509.load_pem_x509_certificates(chain)[0]
    names = [
        name
        for extension in certificate.extensions
        if isinstance(extension.value, x509.SubjectAlternativeName)
        for name in extension.value.get_values_for_type(x509.DNSName)
    ]
    valid_from, expires_at = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return Description(tuple(names), int(valid_from.timestamp()), int(expires_at.timestamp()))


def context_of(chain: bytes, key: bytes) -> ssl.SSLContext:
    """The context of a certificate in memory, both parts in PEM. Raises CertificateError.

    OpenSSL reads files only. The key is encrypted there, with a password that nobody else knows: a deleted file may
    stay on the disk.
    """
    password = secrets.token_bytes(PASSWORD_BYTES)
    try:
        encrypted = serialization.load_pem_private_key(key, password=None).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password),
        )
        with tempfile.NamedTemporaryFile() as file:
            file.write(encrypted + chain)
            file.flush()
            context = _new_context()
            context.load_cert_chain(file.name, password=password)
    except (OSError, ValueError) as problem:
        raise CertificateError(_reason(problem, "the certificate", "the key")) from None
    return context


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # RFC 8996
    return context


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = _new_context()
    # OpenSSL alone does not say which file is wrong, and asks at the terminal for the password of a key.
    _check(certificate, x509.load_pem_x509_certificates, "contains no certificate in PEM format")
    load_key = functools.partial(serialization.load_pem_private_key, password=None)
    _check(key, load_key, "contains no private key in PEM format, or one with a passphrase")
    try:
        context.load_cert_chain(certificate, key)
    except OSError as problem:
        raise CertificateError(_reason(problem, f"the certificate in {certificate}", f"the key in {key}")) from None
    return context


def _reason(problem: Exception, certificate: str, key: str) -> str:
    """Why OpenSSL does not take a pair."""
    reason = (problem.reason or "") if isinstance(problem, ssl.SSLError) else ""
    if reason == "KEY_VALUES_MISMATCH":
        return f"{certificate} and {key} do not belong together"
    return f"{certificate} cannot be used: {reason.lower().replace('_', ' ') or problem}"


def _check(file: Path, parse: Callable[[bytes], object], reason: str) -> None:
    try:
        parse(file.read_bytes())
    except OSError as problem:
        raise CertificateError(f"{file} cannot be read: {problem.strerror}") from None
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm):
        raise CertificateError(f"{file} {reason}") from None


# Answers to TLS-ALPN-01 challenges (RFC 8737): a certificate authority opens a TLS connection and offers `acme-tls/1`.
#
# It gets a self-signed certificate with the hash of the key authorization, and nothing else. Python cannot choose a
# certificate by ALPN, so the ClientHello is looked at before the handshake begins, without taking it from the socket.
# That happens only while a challenge is pending, and other clients get the usual certificate then too.

ACME_PROTOCOL: Final = "acme-tls/1"
_OFFERED: Final = bytes([len(ACME_PROTOCOL)]) + ACME_PROTOCOL.encode()
# RFC 8737 section 6.1.
_ACME_IDENTIFIER: Final = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.31")
# DER of an OCTET STRING with the 32 octets of a SHA-256 hash.
_OCTET_STRING: Final = b"\x04\x20"
# A TLS record: its type, version and length, then up to 16 KiB (RFC 8446 section 5.1).
_RECORD_HEADER: Final = 5
_MAX_RECORD: Final = _RECORD_HEADER + 16 * 1024
# A ClientHello that is not complete is looked at again after this time.
_AGAIN_SECONDS: Final = 0.05
_LIFETIME: Final = dt.timedelta(days=1)


class AlpnChallenges:
    """The pending challenges, by name, as this process knows them."""

    def __init__(self) -> None:
        self._authorizations: Mapping[str, str] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.sni_callback = self._choose

    @property
    def is_pending(self) -> bool:
        return bool(self._contexts)

    def replace(self, authorizations: Mapping[str, str]) -> None:
        """The key authorization of each name that has a challenge now."""
        if authorizations != self._authorizations:
            self._authorizations = authorizations
            self._contexts = {name: _challenge_context(name, text) for name, text in authorizations.items()}

    def _choose(self, connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> int | None:
        chosen = self._contexts.get((name or "").lower())
        if chosen is None:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        connection.context = chosen
        return None


async def is_acme_handshake(client: socket.socket) -> bool:
    """Whether a new connection offers the protocol of the challenge; waits for its first TLS record."""
    loop = asyncio.get_running_loop()
    while True:
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(client.fileno(), _set, readable)
        try:
            await readable
        finally:
            loop.remove_reader(client.fileno())
        record = client.recv(_MAX_RECORD, socket.MSG_PEEK)
        length = _RECORD_HEADER + int.from_bytes(record[3:_RECORD_HEADER], "big")
        if not record or len(record) >= min(length, _MAX_RECORD):
            return _OFFERED in record
        await asyncio.sleep(_AGAIN_SECONDS)


def _set(readable: "asyncio.Future[None]") -> None:
    if not readable.done():
        readable.set_result(None)


def _challenge_context(name: str, key_authorization: str) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ACME challenge")])
    proof = _OCTET_STRING + hashlib.sha256(key_authorization.encode()).digest()
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _LIFETIME)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.UnrecognizedExtension(_ACME_IDENTIFIER, proof), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = context_of(certificate.public_bytes(serialization.Encoding.PEM), private)
    context.set_alpn_protocols([ACME_PROTOCOL])
    return context


# A connection with implicit TLS (RFC 8314, RFC 9110 section 4.2.2), from accept to the end of its handshake.
#
# asyncio does not report such a connection before its handshake has succeeded, so half-open ones would have no limit.
# Here it is accepted without TLS, counted, and its socket passed on to a handshake with a timeout. A connection over
# the limit, one for which no second file descriptor is free, and every one while there is no certificate is closed
# without a reply: that would need a handshake.

# How long to wait for the close_notify of the client.
SHUTDOWN_SECONDS: Final = 2.0


class Handshakes(msgspec.Struct, frozen=True):
    """What the handshakes of a listener share with its sessions.

    `tls` is called for each handshake, because the certificate may be renewed. A session calls the argument of
    `make_session` first of all, to release the slot that the handshake held.
    """

    tls: Callable[[], ssl.SSLContext | None]
    make_session: Callable[[Callable[[], None]], asyncio.Protocol]
    connections: listener.OpenConnections
    state: listener.ListenerState
    seconds: float
    # Proves the names of this host to a certificate authority.
    challenges: AlpnChallenges | None = None


class TlsAccept(asyncio.Protocol):
    """A handshake; it is in `connections` until the session replaces it."""

    transport: asyncio.Transport
    _socket: socket.socket

    def __init__(self, shared: Handshakes) -> None:
        self._shared = shared
        self.idle_since = asyncio.get_running_loop().time()
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the handshake on the same socket. The plain transport is closed before it reads a byte."""
        self.transport = transport
        is_admitted = self._shared.connections.enter(self, listener.peer_address(transport)) is None
        if self._can_begin() and is_admitted and self._shared.state.changed is None:
            with contextlib.suppress(OSError):
                self._socket = transport.get_extra_info("socket").dup()
                self._handshake = asyncio.get_running_loop().create_task(self._run_handshake())
                self._handshake.add_done_callback(self._ended)
        transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the cause does not matter
        """The plain transport is closed; without a handshake the connection has ended."""
        if self._handshake is None:
            self.leave()

    def leave(self) -> None:
        """Stop counting: the session counts instead, or the connection has ended."""
        if self._shared.connections.leave(self) and self._shared.state.changed is not None:
            self._shared.state.changed.set()

    def evict(self) -> None:
        self.shutdown()

    def shutdown(self) -> None:
        """Cancel the handshake: no work is in progress."""
        if self._handshake is not None:
            self._handshake.cancel()

    def sweep(self, now: float) -> None:
        """Nothing to do: the handshake has its own timeout."""

    def _can_begin(self) -> bool:
        challenges = self._shared.challenges
        return self._shared.tls() is not None or (challenges is not None and challenges.is_pending)

    async def _run_handshake(self) -> None:
        tls, challenges = self._shared.tls(), self._shared.challenges
        if challenges is not None and challenges.is_pending:
            async with asyncio.timeout(self._shared.seconds):
                if await is_acme_handshake(self._socket):
                    tls = challenges.context
        if tls is None:
            raise ConnectionAbortedError("there is no certificate yet")
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: self._shared.make_session(self.leave),
            self._socket,
            ssl=tls,
            ssl_handshake_timeout=self._shared.seconds,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )

    def _ended(self, handshake: asyncio.Task[None]) -> None:
        self.leave()
        problem = None if handshake.cancelled() else handshake.exception()
        if handshake.cancelled() or problem is not None:
            self._socket.close()
        if problem is not None and not isinstance(problem, OSError):
            raise problem
