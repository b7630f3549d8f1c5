"""STARTTLS by policy: encrypted where it can be, never in plain text where it must not be."""

import datetime as dt
import hashlib
import pathlib
import ssl

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from postroad.model.delivery.tls_policy import Mode, Tlsa, TlsPolicy
from postroad.network.smtp import smtp_connection
from postroad.network.smtp.smtp_connection import ConnectFailed, Destination, SmtpConnection, Timeouts
from postroad.protocol.smtp import values
from postroad.protocol.smtp.values import RecipientResult, Stage
from tests import smtp_peers
from tests.smtp_peers import CLOSE, RESET, SILENCE, Script

HOST = "mx.example.org"
LONG_TIMEOUTS = Timeouts(connect=20, reply=20, content=20)
ENVELOPE = values.MailTransaction("a@example.com", ("b@example.org",), (b"Subject: x\r\n\r\nhello\r\n",))
STRICT = [Mode.REQUIRED, Mode.VERIFIED, Mode.DANE]


class Identity:
    """A server's certificate, the authorities above it, and a context that shows them."""

    def __init__(self, folder: pathlib.Path, *names: str, not_after: dt.datetime | None = None) -> None:
        self.root = trustme.CA()
        self.intermediate = self.root.create_child_ca()
        self.certificate = self.intermediate.issue_cert(*names, not_after=not_after)
        self.ca_file = str(folder / "authorities.pem")
        self.root.cert_pem.write_to_path(self.ca_file)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # With its anchor, as RFC 7672 section 3.1.2 asks of servers with such records.
        chain = b"".join(pem.bytes() for pem in (*self.certificate.cert_chain_pems, self.root.cert_pem))
        (folder / "chain.pem").write_bytes(self.certificate.private_key_pem.bytes() + chain)
        self.context.load_cert_chain(folder / "chain.pem")

    @staticmethod
    def record(pem: trustme.Blob, *, usage: int, selector: int = 1, matching_type: int = 1) -> Tlsa:
        certificate = x509.load_pem_x509_certificate(pem.bytes())
        data = certificate.public_bytes(serialization.Encoding.DER)
        if selector == 1:
            data = certificate.public_key().public_bytes(
                serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        if matching_type > 0:
            data = hashlib.new({1: "sha256", 2: "sha512"}[matching_type], data).digest()
        return Tlsa(usage, selector, matching_type, data)


@pytest.fixture
def identity(tmp_path: pathlib.Path) -> Identity:
    return Identity(tmp_path, HOST, "*.mail.example.org")


async def connect(
    peer: smtp_peers.Peer,
    policy: TlsPolicy,
    *,
    ca_file: str | None = None,
    host: str = HOST,
    timeouts: Timeouts = LONG_TIMEOUTS,
) -> SmtpConnection:
    destination = Destination(host, peer.host, peer.port, policy)
    return await smtp_connection.connect(destination, hello_name="me.example", timeouts=timeouts, ca_file=ca_file)


async def seen(peer: smtp_peers.Peer, policy: TlsPolicy, *, ca_file: str | None = None, host: str = HOST) -> str:
    """How a message got there: the connection's own words, which must agree with what the peer saw."""
    connection = await connect(peer, policy, ca_file=ca_file, host=host)
    (result,) = await connection.deliver(ENVELOPE)
    await connection.close()
    assert result.stage is Stage.CONTENT
    assert peer.transactions[-1].is_encrypted is bool(connection.tls)
    return connection.tls


async def failure(peer: smtp_peers.Peer, policy: TlsPolicy, *, ca_file: str | None = None) -> RecipientResult:
    with pytest.raises(ConnectFailed) as caught:
        await connect(peer, policy, ca_file=ca_file)
    assert "MAIL" not in peer.verbs()
    return caught.value.result


@pytest.mark.parametrize("mode", [Mode.OPPORTUNISTIC, Mode.REQUIRED])
async def test_any_certificate_will_do_where_nothing_is_known(mode: Mode, identity: Identity) -> None:
    async with smtp_peers.serving(tls=identity.context) as peer:
        assert await seen(peer, TlsPolicy(mode), host=f"{HOST}.") == "TLSv1.3"
        assert peer.verbs()[:3] == ["EHLO", "STARTTLS", "EHLO"]
        assert peer.server_names == [HOST]
        assert peer.connections == 1


async def test_plain_means_plain(identity: Identity) -> None:
    async with smtp_peers.serving(tls=identity.context) as peer:
        assert await seen(peer, TlsPolicy(Mode.PLAIN)) == ""


async def test_opportunistic_goes_without_where_it_is_not_offered() -> None:
    async with smtp_peers.serving() as peer:
        assert await seen(peer, TlsPolicy()) == ""
        assert peer.connections == 1


@pytest.mark.parametrize("mode", STRICT)
async def test_strict_does_not_go_without(mode: Mode) -> None:
    async with smtp_peers.serving() as peer:
        result = await failure(peer, TlsPolicy(mode))
    assert result == RecipientResult(
        Stage.STARTTLS,
        cause=values.Cause.TLS_FAILED,
        detail="the destination does not offer STARTTLS, which is required here",
    )


BROKEN: dict[str, Script] = {
    "refused": {"STARTTLS": "454 4.7.0 not now"},
    "nonsense": {"HANDSHAKE": b"220 this is not TLS, it is text\r\n"},
    "injected": {"STARTTLS": b"220 go on\r\n250 PIPELINING\r\n"},
    "closed": {"HANDSHAKE": CLOSE},
    "reset": {"HANDSHAKE": RESET},
    "closed at once": {"STARTTLS": CLOSE},
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN)
async def test_opportunistic_comes_again_in_plain_text_where_it_is_broken(script: Script, identity: Identity) -> None:
    async with smtp_peers.serving(script, tls=identity.context) as peer:
        assert await seen(peer, TlsPolicy()) == ""
        assert peer.connections == 2
        assert peer.verbs().count("STARTTLS") == 1


@pytest.mark.parametrize("mode", STRICT)
@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN)
async def test_strict_does_not_come_again_where_it_is_broken(script: Script, mode: Mode, identity: Identity) -> None:
    async with smtp_peers.serving(script, tls=identity.context) as peer:
        result = await failure(peer, TlsPolicy(mode), ca_file=identity.ca_file)
        assert result.stage is Stage.STARTTLS
        assert result.detail or result.reply == values.Reply(454, "not now", "4.7.0")
        assert peer.connections == 1


async def test_a_handshake_that_never_ends_times_out(identity: Identity) -> None:
    timeouts = Timeouts(connect=0.3, reply=20, content=20)
    async with smtp_peers.serving({"HANDSHAKE": SILENCE}, tls=identity.context) as peer:
        with pytest.raises(ConnectFailed) as caught:
            await connect(peer, TlsPolicy(Mode.REQUIRED), timeouts=timeouts)
    assert caught.value.result.stage is Stage.STARTTLS


async def test_opportunistic_comes_again_where_the_server_breaks_after_the_handshake(identity: Identity) -> None:
    ehlo: smtp_peers.Answer = ["250-peer.example\n250 STARTTLS", CLOSE, "250 peer.example"]
    async with smtp_peers.serving({"EHLO": ehlo}, tls=identity.context) as peer:
        assert await seen(peer, TlsPolicy()) == ""
        assert peer.connections == 2


async def test_a_refusal_after_the_handshake_is_final(identity: Identity) -> None:
    script: Script = {"EHLO": ["250-peer.example\n250 STARTTLS", "550 5.7.1 no"], "HELO": "550 5.7.1 no"}
    async with smtp_peers.serving(script, tls=identity.context) as peer:
        result = await failure(peer, TlsPolicy())
        assert result == RecipientResult(Stage.HELLO, values.Reply(550, "no", "5.7.1"))
        assert peer.connections == 1


@pytest.mark.parametrize("names", [(), (HOST,), ("other.example", HOST), ("A.MAIL.example.org.",)])
async def test_a_certificate_of_a_known_authority_is_verified(names: tuple[str, ...], identity: Identity) -> None:
    async with smtp_peers.serving(tls=identity.context) as peer:
        policy = TlsPolicy(Mode.VERIFIED, names=names)
        assert await seen(peer, policy, ca_file=identity.ca_file) == "TLSv1.3 verified"


@pytest.mark.parametrize("name", ["other.example", "a.b.mail.example.org", "mail.example.org", "example.org"])
async def test_a_certificate_for_another_name_is_refused(name: str, identity: Identity) -> None:
    async with smtp_peers.serving(tls=identity.context) as peer:
        result = await failure(peer, TlsPolicy(Mode.VERIFIED, names=(name,)), ca_file=identity.ca_file)
    assert result == RecipientResult(
        Stage.STARTTLS, cause=values.Cause.TLS_FAILED, detail=f"the destination's certificate is not for {name}"
    )


async def test_a_certificate_of_an_unknown_authority_is_refused(identity: Identity) -> None:
    async with smtp_peers.serving(tls=identity.context) as peer:
        result = await failure(peer, TlsPolicy(Mode.VERIFIED))  # the system knows nothing of this authority
    assert result.stage is Stage.STARTTLS
    assert "self-signed certificate" in result.detail


@pytest.mark.parametrize("selector", [0, 1])
@pytest.mark.parametrize("matching_type", [0, 1, 2])
@pytest.mark.parametrize("usage", [2, 3])
async def test_a_certificate_is_known_by_its_tlsa_record(
    usage: int, selector: int, matching_type: int, identity: Identity
) -> None:
    pem = identity.certificate.cert_chain_pems[0] if usage == 3 else identity.root.cert_pem
    record = identity.record(pem, usage=usage, selector=selector, matching_type=matching_type)
    foreign = Tlsa(3, 1, 1, b"\0" * 32)
    async with smtp_peers.serving(tls=identity.context) as peer:
        assert await seen(peer, TlsPolicy(Mode.DANE, tlsa=(foreign, record))) == "TLSv1.3 DANE"


async def test_an_intermediate_authority_may_be_the_anchor(identity: Identity) -> None:
    record = identity.record(identity.certificate.cert_chain_pems[1], usage=2)
    async with smtp_peers.serving(tls=identity.context) as peer:
        assert await seen(peer, TlsPolicy(Mode.DANE, tlsa=(record,))) == "TLSv1.3 DANE"


async def test_the_servers_own_record_asks_for_no_name_and_an_anchor_does(identity: Identity) -> None:
    own = identity.record(identity.certificate.cert_chain_pems[0], usage=3)
    anchor = identity.record(identity.root.cert_pem, usage=2)
    async with smtp_peers.serving(tls=identity.context) as peer:
        result = await failure(peer, TlsPolicy(Mode.DANE, names=("other.example",), tlsa=(anchor,)))
        assert result.detail == "the destination's certificate matches none of its TLSA records"
        assert await seen(peer, TlsPolicy(Mode.DANE, names=("other.example",), tlsa=(own,))) == "TLSv1.3 DANE"


async def test_a_certificate_that_has_expired_counts_only_by_its_own_record(tmp_path: pathlib.Path) -> None:
    expired = Identity(tmp_path, HOST, not_after=dt.datetime.now(dt.UTC) - dt.timedelta(days=1))
    own = expired.record(expired.certificate.cert_chain_pems[0], usage=3)
    anchor = expired.record(expired.root.cert_pem, usage=2)
    async with smtp_peers.serving(tls=expired.context) as peer:
        assert (await failure(peer, TlsPolicy(Mode.DANE, tlsa=(anchor,)))).stage is Stage.STARTTLS
        result = await failure(peer, TlsPolicy(Mode.VERIFIED), ca_file=expired.ca_file)
        assert "expired" in result.detail
        assert await seen(peer, TlsPolicy(Mode.DANE, tlsa=(own,))) == "TLSv1.3 DANE"


def forged(issuer: trustme.LeafCert, folder: pathlib.Path) -> ssl.SSLContext:
    """A certificate for HOST, signed with the key of a server, which is no authority, and the chain above that."""
    signer = x509.load_pem_x509_certificate(issuer.cert_chain_pems[0].bytes())
    signing_key = serialization.load_pem_private_key(issuer.private_key_pem.bytes(), None)
    assert isinstance(signing_key, ec.EllipticCurvePrivateKey)
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(signer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=True)
        .sign(signing_key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    parts = [key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain), certificate.public_bytes(pem)]
    (folder / "forged.pem").write_bytes(b"".join(parts + [blob.bytes() for blob in issuer.cert_chain_pems]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "forged.pem")
    return context


async def test_a_server_that_is_no_authority_cannot_vouch_for_another(tmp_path: pathlib.Path) -> None:
    authority = trustme.CA().create_child_ca()
    other = authority.issue_cert("other.example")
    anchor = Identity.record(authority.cert_pem, usage=2)
    async with smtp_peers.serving(tls=forged(other, tmp_path)) as peer:
        assert (await failure(peer, TlsPolicy(Mode.DANE, tlsa=(anchor,)))).stage is Stage.STARTTLS


async def test_an_authority_that_is_shown_but_did_not_sign_is_no_anchor(
    identity: Identity, tmp_path: pathlib.Path
) -> None:
    stranger = trustme.CA()
    shown = b"".join(pem.bytes() for pem in (*identity.certificate.cert_chain_pems, stranger.cert_pem))
    (tmp_path / "shown.pem").write_bytes(identity.certificate.private_key_pem.bytes() + shown)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "shown.pem")
    async with smtp_peers.serving(tls=context) as peer:
        result = await failure(peer, TlsPolicy(Mode.DANE, tlsa=(identity.record(stranger.cert_pem, usage=2),)))
    assert result.stage is Stage.STARTTLS


@pytest.mark.parametrize("selector", [0, 1])
async def test_a_shortened_record_describes_the_same_certificate_and_no_other(
    selector: int, identity: Identity, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "other").mkdir()
    pem = identity.certificate.cert_chain_pems[0]
    record = identity.record(pem, usage=3, selector=selector, matching_type=0).shortened
    assert record.matching_type == 1
    policy = TlsPolicy(Mode.DANE, tlsa=(record,))
    async with smtp_peers.serving(tls=identity.context) as peer:
        assert await seen(peer, policy) == "TLSv1.3 DANE"
    async with smtp_peers.serving(tls=Identity(tmp_path / "other", HOST).context) as peer:
        assert (await failure(peer, policy)).stage is Stage.STARTTLS


@pytest.mark.parametrize("record", [Tlsa(3, 1, 1, b"\0" * 32), Tlsa(2, 0, 2, b"\0" * 64), Tlsa(3, 0, 0, b"x")])
async def test_a_certificate_that_no_record_describes_is_refused(record: Tlsa, identity: Identity) -> None:
    async with smtp_peers.serving(tls=identity.context) as peer:
        result = await failure(peer, TlsPolicy(Mode.DANE, tlsa=(record,)))
    assert result == RecipientResult(
        Stage.STARTTLS,
        cause=values.Cause.TLS_FAILED,
        detail="the destination's certificate matches none of its TLSA records",
    )


@pytest.mark.parametrize("record", [Tlsa(1, 1, 1, b"x"), Tlsa(3, 2, 1, b"x"), Tlsa(3, 1, 3, b"x"), Tlsa(2, 0, 2, b"")])
async def test_records_that_cannot_be_used_still_ask_for_encryption(record: Tlsa, identity: Identity) -> None:
    policy = TlsPolicy(Mode.DANE, tlsa=(record,))
    async with smtp_peers.serving(tls=identity.context) as peer:
        assert await seen(peer, policy) == "TLSv1.3"
    async with smtp_peers.serving() as peer:
        assert (await failure(peer, policy)).stage is Stage.STARTTLS


async def test_large_content_goes_through_encryption_whole(identity: Identity) -> None:
    content = (b"x" * 998 + b"\r\n") * 3000
    async with smtp_peers.serving(tls=identity.context) as peer:
        connection = await connect(peer, TlsPolicy(Mode.REQUIRED))
        (result,) = await connection.deliver(values.MailTransaction("", ("b@example.org",), (content,)))
        await connection.close()
        assert result.stage is Stage.CONTENT
        assert peer.transactions[0].content == content


async def test_a_host_that_cannot_be_named_in_a_handshake_is_a_failure_of_tls(identity: Identity) -> None:
    async with smtp_peers.serving(tls=identity.context) as peer:
        with pytest.raises(ConnectFailed) as caught:
            await connect(peer, TlsPolicy(Mode.REQUIRED), host="x" * 300)
    assert caught.value.result.stage is Stage.STARTTLS
