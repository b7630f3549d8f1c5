"""How a session failed is known as RFC 8460 names it, also where the mail goes on without TLS."""

import datetime as dt
import pathlib

import pytest

from postroad.model.delivery.tls_policy import Mode, Tlsa, TlsPolicy
from postroad.network.smtp.smtp_connection import ConnectFailed
from postroad.protocol.reports.tls_report import FailureType
from tests import smtp_peers
from tests.network.test_smtp_connection_tls import HOST, Identity, connect, identity, seen
from tests.smtp_peers import CLOSE, Script

__all__ = ["identity"]

TESTING = TlsPolicy(Mode.TESTING, names=(HOST,))


async def failed(
    peer: smtp_peers.Peer, policy: TlsPolicy, *, ca_file: str | None = None
) -> tuple[FailureType | None, str]:
    with pytest.raises(ConnectFailed) as caught:
        await connect(peer, policy, ca_file=ca_file)
    return caught.value.tls_failure, caught.value.source_address


async def noted(peer: smtp_peers.Peer, policy: TlsPolicy, *, ca_file: str | None = None) -> tuple[str, str | None]:
    """Whether the session has TLS, and the failure before it."""
    connection = await connect(peer, policy, ca_file=ca_file)
    assert connection.destination.tls == policy
    assert connection.source_address == "127.0.0.1"
    await connection.close()
    return connection.tls, connection.tls_failure


async def test_a_host_without_starttls() -> None:
    async with smtp_peers.serving() as peer:
        assert await failed(peer, TlsPolicy(Mode.REQUIRED)) == (FailureType.STARTTLS_NOT_SUPPORTED, "127.0.0.1")
        assert await noted(peer, TlsPolicy()) == ("", FailureType.STARTTLS_NOT_SUPPORTED)
        assert await noted(peer, TlsPolicy(Mode.PLAIN)) == ("", None)


SCRIPTS: dict[str, tuple[Script, FailureType]] = {
    "refused": ({"STARTTLS": "454 4.7.0 not now"}, FailureType.STARTTLS_NOT_SUPPORTED),
    "nonsense": ({"HANDSHAKE": b"220 this is not TLS, it is text\r\n"}, FailureType.VALIDATION_FAILURE),
    "closed": ({"HANDSHAKE": CLOSE}, FailureType.VALIDATION_FAILURE),
    "closed at once": ({"STARTTLS": CLOSE}, FailureType.VALIDATION_FAILURE),
}


@pytest.mark.parametrize("script, expected", SCRIPTS.values(), ids=SCRIPTS)
async def test_a_host_whose_tls_is_broken(script: Script, expected: FailureType, identity: Identity) -> None:
    async with smtp_peers.serving(script, tls=identity.context) as peer:
        assert await noted(peer, TlsPolicy()) == ("", expected)
        assert (await failed(peer, TlsPolicy(Mode.REQUIRED)))[0] is expected


async def test_a_certificate_that_falls_short(tmp_path: pathlib.Path, identity: Identity) -> None:
    expired = Identity(tmp_path, HOST, not_after=dt.datetime.now(dt.UTC) - dt.timedelta(days=1))
    async with smtp_peers.serving(tls=expired.context) as peer:
        (kind, _) = await failed(peer, TlsPolicy(Mode.VERIFIED, names=(HOST,)), ca_file=expired.ca_file)
        assert kind is FailureType.CERTIFICATE_EXPIRED
    async with smtp_peers.serving(tls=identity.context) as peer:
        (kind, _) = await failed(peer, TlsPolicy(Mode.VERIFIED, names=(HOST,)))
        assert kind is FailureType.CERTIFICATE_NOT_TRUSTED
        tlsa = TlsPolicy(Mode.DANE, names=(HOST,), tlsa=(Tlsa(3, 1, 1, bytes(32)),))
        assert (await failed(peer, tlsa))[0] is FailureType.CERTIFICATE_NOT_TRUSTED


async def test_a_certificate_for_another_name(tmp_path: pathlib.Path) -> None:
    other = Identity(tmp_path, "mx.example.com")
    async with smtp_peers.serving(tls=other.context) as peer:
        (kind, _) = await failed(peer, TlsPolicy(Mode.VERIFIED, names=(HOST,)), ca_file=other.ca_file)
        assert kind is FailureType.CERTIFICATE_HOST_MISMATCH


async def test_success_has_no_failure(identity: Identity) -> None:
    async with smtp_peers.serving(tls=identity.context) as peer:
        assert await noted(peer, TlsPolicy()) == ("TLSv1.3", None)


async def test_a_policy_that_is_tested_is_verified_where_it_can_be(identity: Identity) -> None:
    async with smtp_peers.serving(tls=identity.context) as peer:
        assert await noted(peer, TESTING, ca_file=identity.ca_file) == ("TLSv1.3 verified", None)
        assert peer.connections == 1


async def test_a_policy_that_is_tested_only_notes_its_failure(identity: Identity) -> None:
    async with smtp_peers.serving(tls=identity.context) as peer:
        assert await noted(peer, TESTING) == ("TLSv1.3", FailureType.CERTIFICATE_NOT_TRUSTED)
        assert await seen(peer, TESTING) == "TLSv1.3"
    async with smtp_peers.serving() as peer:
        assert await noted(peer, TESTING) == ("", FailureType.STARTTLS_NOT_SUPPORTED)
        assert await seen(peer, TESTING) == ""
    async with smtp_peers.serving({"HANDSHAKE": CLOSE}, tls=identity.context) as peer:
        assert await noted(peer, TESTING) == ("", FailureType.VALIDATION_FAILURE)
        assert peer.connections == 3
