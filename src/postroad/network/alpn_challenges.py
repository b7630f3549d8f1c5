"""Answers to TLS-ALPN-01 challenges (RFC 8737): a certificate authority opens a TLS connection and offers `acme-tls/1`.

It gets a self-signed certificate with the hash of the key authorization, and nothing else. Python cannot choose a
certificate by ALPN, so the ClientHello is looked at before the handshake begins, without taking it from the socket.
That happens only while a challenge is pending, and other clients get the usual certificate then too.
"""

import asyncio
import datetime as dt
import hashlib
import socket
import ssl
from collections.abc import Mapping
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from postroad.network import server_tls

PROTOCOL: Final = "acme-tls/1"
_OFFERED: Final = bytes([len(PROTOCOL)]) + PROTOCOL.encode()
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
        """Whether there is a challenge."""
        return bool(self._contexts)

    def replace(self, authorizations: Mapping[str, str]) -> None:
        """The key authorization of each name that has a challenge now."""
        if authorizations != self._authorizations:
            self._authorizations = authorizations
            self._contexts = {name: _context(name, text) for name, text in authorizations.items()}

    def _choose(self, connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> int | None:
        chosen = self._contexts.get((name or "").lower())
        if chosen is None:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        connection.context = chosen
        return None


async def is_asked_for(client: socket.socket) -> bool:
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


def _context(name: str, key_authorization: str) -> ssl.SSLContext:
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
    context = server_tls.context_of(certificate.public_bytes(serialization.Encoding.PEM), private)
    context.set_alpn_protocols([PROTOCOL])
    return context
