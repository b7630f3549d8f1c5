"""The certificate of a server: read from PEM files, and reloaded when they change.

Use `context` for each handshake: a valid new pair replaces the old one as a whole, and open sessions continue. Half of
a pair, or a file that is still being written, leaves the old certificate in place. A renewal usually writes two files
one after the other, so a pair that does not match is checked again when one of them changes.
"""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cryptography import exceptions, x509
from cryptography.hazmat.primitives import serialization


class CertificateError(Exception):
    """A certificate cannot be used; the text names the file and says what is wrong."""


class _Version(NamedTuple):
    """What tells two states of a file apart; a file that was put in the place of another has another number."""

    number: int
    octets: int
    changed_at: int


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
        seen = _versions(certificate, key)
        return cls(certificate, key, context=_context(certificate, key), seen=seen)

    def refresh(self) -> str | None:
        """Look at the files, and read them if they have changed; what there is to say about it, if anything.

        Raises CertificateError, once for each change, when they cannot be used: the old certificate stays.
        """
        seen = _versions(self._certificate, self._key)
        if seen == self._seen:
            return None
        self._seen = seen
        self.context = _context(self._certificate, self._key)
        return f"the certificate in {self._certificate} was reloaded"


def _versions(*files: Path) -> tuple[_Version | None, ...]:
    return tuple(_version(file) for file in files)


def _version(file: Path) -> _Version | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return _Version(found.st_ino, found.st_size, found.st_mtime_ns)


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # RFC 8996
    # OpenSSL alone does not say which file is wrong, and asks at the terminal for the password of a key.
    _check(certificate, x509.load_pem_x509_certificates, "contains no certificate in PEM format")
    _check(key, _load_key, "contains no private key in PEM format, or one with a passphrase")
    try:
        context.load_cert_chain(certificate, key)
    except OSError as problem:
        raise CertificateError(f"the key in {key} does not match the certificate in {certificate}: {problem}") from None
    return context


def _check(file: Path, parse: Callable[[bytes], object], reason: str) -> None:
    try:
        parse(file.read_bytes())
    except OSError as problem:
        raise CertificateError(f"{file} cannot be read: {problem.strerror}") from None
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm):
        raise CertificateError(f"{file} {reason}") from None


def _load_key(data: bytes) -> object:
    return serialization.load_pem_private_key(data, password=None)
