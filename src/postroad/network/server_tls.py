"""The certificate of a server: read from PEM files, and reloaded when they change.

Use `context` for each handshake: a valid new pair replaces the old one as a whole, and open sessions continue. Half of
a pair, or a file that is still being written, leaves the old certificate in place. A renewal usually writes two files
one after the other, so a pair that does not match is checked again when one of them changes.
"""

import functools
import secrets
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import msgspec
from cryptography import exceptions, x509
from cryptography.hazmat.primitives import serialization

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
