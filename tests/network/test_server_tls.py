"""The certificate of a server: errors name the file, and a changed certificate is reloaded."""

import asyncio
import contextlib
import hashlib
import re
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from postroad.network.http import http_messages, http_server
from postroad.network.tls import server_tls
from postroad.protocol.smtp import server_events
from tests import raw_http
from tests.network.recording_listener import FEATURES, Connection, connect, running
from tests.network.test_http_listener import refuse
from tests.network.test_http_listener_tls import served

STARTTLS = server_events.Features("mx.example.test", 1000, starttls=True)


class Files:
    """A certificate and its key in a folder, of an authority that each client trusts."""

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "certificate.pem"
        self.key = folder / "key.pem"
        self._authority = trustme.CA()
        self.client_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._authority.configure_trust(self.client_tls)
        self.put(self.issue("first.test"))

    def issue(self, name: str) -> trustme.LeafCert:
        return self._authority.issue_cert(name, "127.0.0.1")

    def put(self, issued: trustme.LeafCert) -> None:
        self.put_certificate(issued)
        self.put_key(issued)

    def put_certificate(self, issued: trustme.LeafCert) -> None:
        self.certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))

    def put_key(self, issued: trustme.LeafCert) -> None:
        self.key.write_bytes(issued.private_key_pem.bytes())

    def load(self) -> server_tls.Certificate:
        return server_tls.Certificate.load(self.certificate, self.key)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def shown(client: Connection) -> str:
    """The name in the certificate that a client was shown."""
    certificate = client.writer.get_extra_info("ssl_object").getpeercert()
    return str(next(value for kind, value in certificate["subjectAltName"] if kind == "DNS"))


async def test_a_changed_certificate_is_shown_to_the_next_client_while_old_sessions_go_on(files: Files) -> None:
    certificate = files.load()
    async with (
        running(FEATURES, tls=lambda: certificate.context, implicit_tls=True) as server,
        connect(server.address, tls=files.client_tls) as old,
    ):
        await old.reply()
        assert certificate.refresh() is None
        files.put(files.issue("second.test"))
        assert "was reloaded" in (certificate.refresh() or "")
        assert certificate.refresh() is None
        async with connect(server.address, tls=files.client_tls) as new:
            await new.reply()
            assert (shown(old), shown(new)) == ("first.test", "second.test")
            assert await old.ask(b"NOOP\r\n") == await new.ask(b"NOOP\r\n") == [b"250 2.0.0 OK"]


async def test_a_changed_certificate_is_shown_under_starttls_too(files: Files) -> None:
    certificate = files.load()
    async with running(STARTTLS, tls=lambda: certificate.context) as server:
        for name in ("second.test", "third.test"):
            files.put(files.issue(name))
            certificate.refresh()
            async with connect(server.address) as client:
                await client.ask(b"EHLO x\r\nSTARTTLS\r\n", replies=3)
                await client.writer.start_tls(files.client_tls, server_hostname=name)
                assert shown(client) == name
                assert (await client.ask(b"EHLO x\r\n"))[0].startswith(b"250 ")


async def test_files_that_are_replaced_one_after_the_other_are_used_once_they_fit(files: Files) -> None:
    certificate = files.load()
    async with running(FEATURES, tls=lambda: certificate.context, implicit_tls=True) as server:
        issued = files.issue("second.test")
        files.put_certificate(issued)
        with pytest.raises(server_tls.CertificateError, match=re.escape(str(files.key))):
            certificate.refresh()
        assert certificate.refresh() is None
        async with connect(server.address, tls=files.client_tls) as client:
            assert shown(client) == "first.test"
        files.put_key(issued)
        assert "was reloaded" in (certificate.refresh() or "")
        async with connect(server.address, tls=files.client_tls) as client:
            assert shown(client) == "second.test"


@pytest.mark.parametrize("content", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA"])
async def test_a_broken_or_missing_file_keeps_the_old_certificate_and_tells(files: Files, content: bytes) -> None:
    certificate = files.load()
    files.certificate.write_bytes(content)
    with pytest.raises(server_tls.CertificateError, match=re.escape(f"{files.certificate} contains no certificate")):
        certificate.refresh()
    files.certificate.unlink()
    with pytest.raises(server_tls.CertificateError, match=re.escape(f"{files.certificate} cannot be read")):
        certificate.refresh()
    assert certificate.refresh() is None
    async with (
        running(FEATURES, tls=lambda: certificate.context, implicit_tls=True) as server,
        connect(server.address, tls=files.client_tls) as client,
    ):
        assert shown(client) == "first.test"


def test_files_that_change_while_they_are_read_never_leave_half_a_pair(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = files.load()
    before = certificate.context
    files.put(files.issue("second.test"))
    check = server_tls._check

    def check_late(file: Path, *arguments: Any) -> None:
        check(file, *arguments)
        files.put_certificate(files.issue("third.test"))

    with monkeypatch.context() as patched:
        patched.setattr(server_tls, "_check", check_late)
        with pytest.raises(server_tls.CertificateError, match="do not belong together"):
            certificate.refresh()
    assert certificate.context is before
    files.put(files.issue("fourth.test"))
    assert "was reloaded" in (certificate.refresh() or "")
    assert certificate.context is not before


def test_what_cannot_be_loaded_is_refused_with_the_name_of_the_file(files: Files) -> None:
    files.put_key(files.issue("other.test"))
    with pytest.raises(server_tls.CertificateError, match="do not belong together"):
        files.load()
    files.key.write_bytes(files.certificate.read_bytes())
    with pytest.raises(server_tls.CertificateError, match=r"key\.pem contains no private key"):
        files.load()
    files.key.unlink()
    with pytest.raises(server_tls.CertificateError, match=r"key\.pem cannot be read: No such file"):
        files.load()


def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(files: Files) -> None:
    key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
    protection = serialization.BestAvailableEncryption(b"secret")
    files.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection))
    with pytest.raises(server_tls.CertificateError, match="password"):
        files.load()


def test_old_versions_of_tls_are_not_spoken(files: Files) -> None:
    assert files.load().context.minimum_version is ssl.TLSVersion.TLSv1_2


async def test_the_listener_looks_after_the_certificate_by_itself(files: Files) -> None:
    certificate = files.load()
    reported: list[str] = []

    def refresh() -> None:
        if (news := certificate.refresh()) is not None:
            reported.append(news)

    async with running(FEATURES, tls=lambda: certificate.context, implicit_tls=True, refresh=refresh) as server:
        files.put(files.issue("second.test"))
        names = [""]
        while names[-1] != "second.test":
            async with connect(server.address, tls=files.client_tls) as client:
                names.append(shown(client))
        assert reported[-1].endswith("was reloaded")


def test_a_certificate_in_memory_is_used_like_one_in_files(files: Files) -> None:
    chain, key = files.certificate.read_bytes(), files.key.read_bytes()
    context = server_tls.context_of(chain, key)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert server_tls.describe(chain).names == ("first.test",)
    used = server_tls.MemoryCertificate()
    with pytest.raises(server_tls.CertificateError, match="the certificate cannot be used"):
        used.replace(b"nonsense", key)
    assert used.context is None


# TLS-ALPN-01.


NAME = "mail.example.com"


def client_tls(*protocols: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


async def shown_proof(address: tuple[str, int], tls: ssl.SSLContext, name: str) -> tuple[x509.Certificate, str | None]:
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
    listener = http_server.HttpListener(served, refuse=refuse, tls=lambda: usual, challenges=challenges)
    await listener.start("127.0.0.1", 0)
    try:
        challenges.replace({NAME: "token.thumbprint"})
        certificate, protocol = await shown_proof(listener.address, client_tls("acme-tls/1"), NAME)
        proof = certificate.extensions.get_extension_for_oid(x509.ObjectIdentifier("1.3.6.1.5.5.7.1.31"))
        assert isinstance(proof.value, x509.UnrecognizedExtension)
        assert proof.value.value == b"\x04\x20" + hashlib.sha256(b"token.thumbprint").digest()
        assert (proof.critical, protocol) == (True, "acme-tls/1")
        other, protocol = await shown_proof(listener.address, client_tls("h2", "http/1.1"), NAME)
        assert (other.issuer == other.subject, protocol) == (False, None)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await shown_proof(listener.address, client_tls("acme-tls/1"), "unknown.example.com")
        challenges.replace({})
        again, protocol = await shown_proof(listener.address, client_tls("acme-tls/1"), NAME)
        assert (again.issuer == again.subject, protocol) == (False, None)
    finally:
        await listener.stop(grace_seconds=0)


async def test_before_the_first_certificate_only_the_authority_is_answered() -> None:
    challenges = server_tls.AlpnChallenges()
    listener = http_server.HttpListener(served, refuse=refuse, tls=lambda: None, challenges=challenges)
    await listener.start("127.0.0.1", 0)
    try:
        challenges.replace({NAME: "token.thumbprint"})
        _, protocol = await shown_proof(listener.address, client_tls("acme-tls/1"), NAME)
        assert protocol == "acme-tls/1"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await shown_proof(listener.address, client_tls(), NAME)
    finally:
        await listener.stop(grace_seconds=0)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01"])
async def test_a_client_that_sends_no_whole_record_is_closed_in_time(sent: bytes) -> None:
    challenges = server_tls.AlpnChallenges()
    challenges.replace({NAME: "token.thumbprint"})
    listener = http_server.HttpListener(
        served,
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
