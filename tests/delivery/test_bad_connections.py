"""Destinations that cannot be reached, or that misbehave before the first message: no mail is lost, and none leaves."""

import contextlib
import functools
import hashlib
import ssl
from dataclasses import dataclass

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from postroad.network.http import https_get
from tests import dns_server, https_server, smtp_peers
from tests.delivery import engine_harness
from tests.smtp_peers import CLOSE, RESET, SILENCE

DOMAIN = "example.net"
HOST = engine_harness.HOST


@dataclass(frozen=True)
class Case:
    """What a peer does, and what becomes of the recipient."""

    script: smtp_peers.Script
    stage: str
    reason: str
    fault: str
    response: str
    code: int | None = None
    status: str = "deferred"


CASES = {
    "reset": Case({"BANNER": RESET}, "banner", "connection_lost", "network", "connection was lost"),
    "silent_at_banner": Case({"BANNER": SILENCE}, "banner", "reply_timed_out", "network", "did not answer in time"),
    "banner_554": Case(
        {"BANNER": ("554 peer.example takes no mail", CLOSE)},
        "banner",
        "refused",
        "policy",
        "takes no mail",
        code=554,
        status="bounced",
    ),
    "banner_421": Case(
        {"BANNER": ("421 4.3.0 on holiday", CLOSE)},
        "banner",
        "destination_trouble",
        "network",
        "on holiday",
        code=421,
    ),
    "hello_refused_twice": Case(
        {"EHLO": "502 5.5.1 what?", "HELO": "550 5.7.1 not you"},
        "hello",
        "policy_refused",
        "policy",
        "not you",
        code=550,
        status="bounced",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_bad_start_is_classified_and_nothing_is_sent(case: Case, url: str) -> None:
    timeouts = engine_harness.SHORT_TIMEOUTS if case.reason == "reply_timed_out" else {}
    async with engine_harness.delivering_to(url, case.script, **timeouts) as (peer, harness):
        seen = await harness.settle(await harness.send())
        assert seen.standing == (case.status, 1, case.code)
        assert case.response in (seen.recipient.last_smtp_response or "")
        attempt = seen.attempt
        assert (attempt.stage, attempt.reason, attempt.fault) == (case.stage, case.reason, case.fault)
        assert (attempt.host, attempt.address, attempt.in_doubt) == (HOST, "127.0.0.1", 0)
        assert case.response in attempt.response
        assert seen.message.status == ("queued" if case.status == "deferred" else "failed")
        assert await harness.credits() == ((0, 1) if case.status == "deferred" else (0, 0))
        # What is said before the recipient is named is not about the address.
        assert await harness.suppressed("ada@example.net") == {}
    assert peer.transactions == []
    assert "MAIL" not in peer.verbs()


async def test_a_refused_connection_is_tried_again_and_the_log_says_where(database_url: str) -> None:
    (address,) = engine_harness.loopback_addresses(1)
    with contextlib.ExitStack() as owner:
        port = owner.enter_context(smtp_peers.refusing_port(address))
        async with engine_harness.running_engine(
            database_url, port=port, zones=engine_harness.zones_of({HOST: address})
        ) as harness:
            message_id = await harness.send()
            seen = await harness.settle(message_id)
            assert seen.standing == ("deferred", 1, None)
            assert seen.recipient.last_smtp_response == f"connecting to {HOST} [{address}]:{port}: connection refused"
            attempt = seen.attempt
            assert (attempt.stage, attempt.reason, attempt.fault) == ("connect", "connection_refused", "network")
            assert (attempt.host, attempt.verdict, attempt.in_doubt, attempt.tls) == (HOST, "retry", 0, "")
            assert await harness.credits() == (0, 1)
            owner.close()
            async with smtp_peers.serving(host=address, port=port) as peer:
                harness.pass_seconds(67)
                seen = await harness.settle(message_id, attempts=2)
            assert seen.standing == ("delivered", 2, 250)
            assert [attempt.verdict for attempt in seen.attempts] == ["retry", "delivered"]
            assert seen.message.status == "delivered"
            assert await harness.credits() == (1, 0)
            assert len(peer.transactions) == 1


@pytest.fixture
def certificate() -> ssl.SSLContext:
    """A server's context, with a certificate of an authority that nobody knows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert(HOST).configure_cert(context)
    return context


BROKEN_TLS: dict[str, smtp_peers.Script] = {
    "refused_for_good": {"STARTTLS": "554 5.7.3 no"},
    "garbage": {"HANDSHAKE": (b"this is not TLS\r\n", CLOSE)},
}


@pytest.mark.parametrize("tls", ["opportunistic", "required"])
@pytest.mark.parametrize("kind", BROKEN_TLS)
async def test_broken_starttls_falls_back_to_plain_text_where_encryption_is_not_required(
    kind: str, tls: str, certificate: ssl.SSLContext, url: str
) -> None:
    async with engine_harness.delivering_to(url, BROKEN_TLS[kind], certificate=certificate, tls=tls) as (
        peer,
        harness,
    ):
        seen = await harness.settle(await harness.send())
        if tls == "required":
            assert seen.recipient.status == ("bounced" if kind == "refused_for_good" else "deferred")
            assert (seen.recipient.attempt_count, seen.attempt.stage, seen.attempt.in_doubt) == (1, "starttls", 0)
            assert "MAIL" not in peer.verbs()
        else:
            assert (seen.standing, seen.attempt.tls) == (("delivered", 1, 250), "")
            assert peer.connections == 2
    assert [taken.is_encrypted for taken in peer.transactions] == [False] * (tls == "opportunistic")


async def test_a_host_without_starttls_gets_nothing_where_encryption_is_required(url: str) -> None:
    async with engine_harness.delivering_to(url, tls="required") as (peer, harness):
        seen = await harness.settle(await harness.send())
        assert seen.standing == ("deferred", 1, None)
        assert "does not offer STARTTLS" in seen.attempt.response
        assert (seen.attempt.stage, seen.attempt.reason) == ("starttls", "tls_failed")
    assert "MAIL" not in peer.verbs()


POLICY = f"version: STSv1\nmode: enforce\nmx: {HOST}\nmax_age: 86400\n".encode()


def policy_zones() -> dns_server.Zones:
    return {
        **engine_harness.zones_of({HOST: "127.0.0.1"}),
        f"_mta-sts.{DOMAIN}": {"TXT": ['"v=STSv1; id=1"']},
        f"mta-sts.{DOMAIN}": {"A": ["127.0.0.1"]},
    }


@pytest.mark.parametrize("mode", ["enforce", "testing"])
async def test_a_bad_certificate_under_mta_sts_stops_mail_where_the_policy_is_enforced(
    mode: str, certificate: ssl.SSLContext, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with https_server.running(f"mta-sts.{DOMAIN}") as policies:
        policies.answer = https_server.response(POLICY.replace(b"enforce", mode.encode()))
        as_trusted = functools.partial(https_get.Client, policies.context, port=policies.port)
        monkeypatch.setattr(https_get, "Client", as_trusted)
        async with engine_harness.delivering_to(url, certificate=certificate, zones=policy_zones(), mta_sts=True) as (
            peer,
            harness,
        ):
            seen = await harness.settle(await harness.send())
            if mode == "enforce":
                assert seen.standing == ("deferred", 1, None)
                assert (seen.attempt.stage, seen.attempt.reason) == ("starttls", "tls_failed")
                assert "certificate" in (seen.recipient.last_smtp_response or "")
                # Nothing is sent in plain text either.
                assert peer.verbs() == ["EHLO", "STARTTLS"]
            else:
                assert seen.standing == ("delivered", 1, 250)
                assert [taken.is_encrypted for taken in peer.transactions] == [True]
    assert len(policies.requests) == 1


def tlsa_of(certificate: trustme.LeafCert) -> str:
    """The record that names the certificate's key (RFC 6698): DANE-EE, its public key, SHA-256."""
    leaf = x509.load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes())
    key = leaf.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return f"3 1 1 {hashlib.sha256(key).hexdigest()}"


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
async def test_a_key_that_dns_does_not_name_stops_mail_under_dane(is_right: bool, url: str) -> None:  # noqa: FBT001
    issued = trustme.CA().issue_cert(HOST)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    async with engine_harness.delivering_to(url, certificate=context, dane=True) as (peer, harness):
        harness.dns.secure.add(DOMAIN)
        named = issued if is_right else trustme.CA().issue_cert(HOST)
        harness.dns.zones[f"_{peer.port}._tcp.{HOST}"] = {"TLSA": [tlsa_of(named)]}
        seen = await harness.settle(await harness.send())
        if is_right:
            assert (seen.standing, seen.attempt.tls) == (("delivered", 1, 250), "TLSv1.3 DANE")
        else:
            assert seen.standing == ("deferred", 1, None)
            assert (seen.attempt.stage, seen.attempt.reason) == ("starttls", "tls_failed")
            assert seen.recipient.last_smtp_response == "the destination's certificate matches none of its TLSA records"
    assert [taken.is_encrypted for taken in peer.transactions] == [True] * is_right
    assert peer.connections == 1
