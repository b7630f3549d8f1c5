"""TLS-ALPN-01: who offers `acme-tls/1` gets the proof, everybody else the usual certificate, at the same moment."""

import asyncio
import contextlib
import hashlib
import ssl

import pytest
import trustme
from cryptography import x509

from postroad.network.http import http_messages, http_server
from postroad.network.tls import server_tls
from tests import raw_http
from tests.network.test_http_listener import refuse
from tests.network.test_http_listener_tls import scheme

NAME = "mail.example.com"


def client_tls(*protocols: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


async def shown(address: tuple[str, int], tls: ssl.SSLContext, name: str) -> tuple[x509.Certificate, str | None]:
    """The certificate and the protocol that a client gets."""
    async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
        _, writer = await asyncio.open_connection(*address, ssl=tls, server_hostname=name)
    connection = writer.get_extra_info("ssl_object")
    certificate, protocol = connection.getpeercert(binary_form=True), connection.selected_alpn_protocol()
    writer.transport.abort()
    return x509.load_der_x509_certificate(certificate), protocol


async def test_the_authority_gets_the_proof_and_others_the_certificate() -> None:
    usual = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert(NAME).configure_cert(usual)
    challenges = server_tls.AlpnChallenges()
    listener = http_server.HttpListener(scheme, refuse=refuse, tls=lambda: usual, challenges=challenges)
    await listener.start("127.0.0.1", 0)
    try:
        challenges.replace({NAME: "token.thumbprint"})
        certificate, protocol = await shown(listener.address, client_tls("acme-tls/1"), NAME)
        proof = certificate.extensions.get_extension_for_oid(x509.ObjectIdentifier("1.3.6.1.5.5.7.1.31"))
        assert isinstance(proof.value, x509.UnrecognizedExtension)
        assert proof.value.value == b"\x04\x20" + hashlib.sha256(b"token.thumbprint").digest()
        assert (proof.critical, protocol) == (True, "acme-tls/1")
        other, protocol = await shown(listener.address, client_tls("h2", "http/1.1"), NAME)
        assert (other.issuer == other.subject, protocol) == (False, None)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await shown(listener.address, client_tls("acme-tls/1"), "unknown.example.com")
        challenges.replace({})
        again, protocol = await shown(listener.address, client_tls("acme-tls/1"), NAME)
        assert (again.issuer == again.subject, protocol) == (False, None)
    finally:
        await listener.stop(grace_seconds=0)


async def test_before_the_first_certificate_only_the_authority_is_answered() -> None:
    challenges = server_tls.AlpnChallenges()
    listener = http_server.HttpListener(scheme, refuse=refuse, tls=lambda: None, challenges=challenges)
    await listener.start("127.0.0.1", 0)
    try:
        challenges.replace({NAME: "token.thumbprint"})
        _, protocol = await shown(listener.address, client_tls("acme-tls/1"), NAME)
        assert protocol == "acme-tls/1"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await shown(listener.address, client_tls(), NAME)
    finally:
        await listener.stop(grace_seconds=0)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01"])
async def test_a_client_that_sends_no_whole_record_is_closed_in_time(sent: bytes) -> None:
    challenges = server_tls.AlpnChallenges()
    challenges.replace({NAME: "token.thumbprint"})
    listener = http_server.HttpListener(
        scheme,
        refuse=refuse,
        limits=http_messages.Limits(handshake_seconds=0.05),
        tls=lambda: None,
        challenges=challenges,
    )
    await listener.start("127.0.0.1", 0)
    try:
        async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
            reader, writer = await asyncio.open_connection(*listener.address)
            writer.write(sent)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.transport.abort()
    finally:
        await listener.stop(grace_seconds=0)
