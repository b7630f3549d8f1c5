"""Mail hosts that are down, disagree or do not exist, and DNS that fails: mail finds the way there is, or waits."""

import contextlib
import functools
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from postroad.model.bounces import reasons
from postroad.network.http import https_get
from postroad.network.smtp import smtp_connection
from tests import dns_server, https_server, smtp_peers
from tests.delivery import engine_harness, parts

FIRST, SECOND = "mx1.example.net", "mx2.example.net"


@dataclass(frozen=True)
class Pair:
    """Two mail hosts on one port; the first may be down."""

    addresses: tuple[str, str]
    port: int
    first: smtp_peers.Peer | None
    second: smtp_peers.Peer

    @property
    def zones(self) -> dns_server.Zones:
        """DNS prefers the first."""
        return engine_harness.zones_of({FIRST: self.addresses[0], SECOND: self.addresses[1]})


@contextlib.asynccontextmanager
async def two_hosts(
    first: smtp_peers.Script | None = None, second: smtp_peers.Script | None = None
) -> AsyncIterator[Pair]:
    """Two mail hosts; the first refuses connections when it has no script."""
    one, two = engine_harness.loopback_addresses(2)
    async with smtp_peers.serving(second, host=two) as last, contextlib.AsyncExitStack() as stack:
        port = last.port
        front = await stack.enter_async_context(smtp_peers.serving(first, host=one, port=port)) if first else None
        yield Pair((one, two), port, front, last)


async def test_when_the_first_host_is_down_the_second_gets_it_in_the_same_attempt(database_url: str) -> None:
    async with (
        two_hosts() as pair,
        engine_harness.running_engine(database_url, port=pair.port, zones=pair.zones) as harness,
    ):
        seen = await harness.settle(await harness.send())
        assert seen.standing == ("delivered", 1, 250)
        assert (seen.attempt.host, seen.attempt.address) == (SECOND, pair.addresses[1])
        assert seen.message.status == "delivered"
        assert await harness.credits() == (1, 0)
    assert len(pair.second.transactions) == 1


async def test_what_a_host_says_of_the_recipient_is_the_last_word(url: str) -> None:
    async with (
        two_hosts({"RCPT": "550 5.1.1 no such user"}) as pair,
        engine_harness.running_engine(url, port=pair.port, zones=pair.zones) as harness,
    ):
        seen = await harness.settle(await harness.send())
        assert (seen.standing, seen.attempt.host) == (("bounced", 1, 550), FIRST)
        assert (seen.attempt.reason, seen.attempt.fault) == ("unknown_address", "address")
    assert pair.second.connections == 0


async def test_two_names_of_one_address_are_two_hosts(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A certificate may be for the second name only.
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    known = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(SECOND).configure_cert(known)
    connect = functools.partial(smtp_connection.connect, ca_file=str(tmp_path / "authority.pem"))
    monkeypatch.setattr(smtp_connection, "connect", connect)
    zones: dns_server.Zones = {
        **engine_harness.zones_of({FIRST: "127.0.0.1", SECOND: "127.0.0.1"}),
        "_mta-sts.example.net": {"TXT": ['"v=STSv1; id=1"']},
        "mta-sts.example.net": {"A": ["127.0.0.1"]},
    }
    async with https_server.running("mta-sts.example.net") as policies, smtp_peers.serving(tls=known) as peer:
        policies.answer = https_server.response(b"version: STSv1\nmode: enforce\nmx: *.example.net\nmax_age: 86400\n")
        as_trusted = functools.partial(https_get.Client, policies.context, port=policies.port)
        monkeypatch.setattr(https_get, "Client", as_trusted)
        async with engine_harness.running_engine(url, port=peer.port, zones=zones, mta_sts=True) as harness:
            seen = await harness.settle(await harness.send())
            assert (seen.standing, seen.attempt.host) == (("delivered", 1, 250), SECOND)
            assert seen.attempt.tls == "TLSv1.3 verified"
    assert len(peer.transactions) == 1
    assert peer.server_names == [FIRST, SECOND]


async def test_recipients_at_several_destinations_fare_on_their_own(database_url: str) -> None:
    zones: dns_server.Zones = {
        **engine_harness.zones_of({FIRST: "127.0.0.1"}),
        "broken.example": dns_server.Fault.SERVFAIL,
        "no-mail.example": {"MX": ["0 ."]},
    }
    async with engine_harness.delivering_to(database_url, zones=zones) as (peer, harness):
        message_id = await harness.send("ada@example.net", "bob@broken.example", "cy@no-mail.example")
        seen = await harness.settle(message_id)
        assert [one.status for one in seen.recipients] == ["delivered", "deferred", "bounced"]
        assert (seen.message.status, await harness.credits()) == ("queued", (1, 1))
        # Twice more, and the schedule of the one in the middle is over.
        for attempts in (2, 3):
            harness.pass_seconds(await harness.due_in(message_id))
            seen = await harness.settle(message_id, attempts=attempts)
        assert [one.status for one in seen.recipients] == ["delivered", "failed", "bounced"]
        assert [one.attempt_count for one in seen.recipients] == [1, 3, 1]
        assert (seen.message.status, seen.message.billing_status) == ("partial", "settled")
        assert await harness.credits() == (2, 0)
    assert len(peer.transactions) == 1


# Domains that have no way.


@dataclass(frozen=True)
class DeadEnd:
    """What DNS says, and what the recipient's sender reads."""

    zones: dns_server.Zones
    response: str
    reason: str
    status: str = "bounced"


DEAD_ENDS = {
    "null_mx": DeadEnd({"example.net": {"MX": ["0 ."]}}, "does not accept mail (null MX)", "null_mx"),
    "servfail": DeadEnd(
        {"example.net": dns_server.Fault.SERVFAIL}, "DNS lookup failed for example.net", "dns_failed", "deferred"
    ),
}


@pytest.mark.parametrize("end", DEAD_ENDS.values(), ids=DEAD_ENDS)
async def test_a_dead_end_in_dns_is_classified(end: DeadEnd, url: str) -> None:
    async with engine_harness.delivering_to(url, zones=end.zones) as (peer, harness):
        seen = await harness.settle(await harness.send())
        assert seen.standing == (end.status, 1, None)
        assert end.response in (seen.recipient.last_smtp_response or "")
        attempt = seen.attempt
        assert (attempt.stage, attempt.reason, attempt.host, attempt.in_doubt) == ("route", end.reason, "", 0)
        assert seen.message.status == ("failed" if end.status == "bounced" else "queued")
        assert await harness.credits() == ((0, 0) if end.status == "bounced" else (0, 1))
        # No server has spoken: a domain that is repaired tomorrow must not find its people on the list.
        assert await harness.suppressed("ada@example.net") == {}
    assert peer.connections == 0


async def test_a_mail_host_in_our_own_networks_gets_no_connection(url: str) -> None:
    async with engine_harness.delivering_to(url, allow_private=[]) as (peer, harness):
        seen = await harness.settle(await harness.send())
        assert seen.standing == ("deferred", 1, None)
        assert "127.0.0.1 is a loopback address" in (seen.recipient.last_smtp_response or "")
        assert seen.attempt.reason == "private_address"
        assert "delivery.allow_private" in reasons.explain(seen.attempt.reason)
    assert peer.connections == 0


async def test_mail_goes_when_dns_has_recovered(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # How long a failure is remembered, in seconds of the loop; the test need not wait for all of it.
    monkeypatch.setattr("postroad.delivery.host_addresses.FAILURE_SECONDS", 0.2)
    async with smtp_peers.serving() as peer:
        zones: dns_server.Zones = {"example.net": dns_server.Fault.SERVFAIL}
        async with engine_harness.running_engine(url, port=peer.port, zones=zones) as harness:
            message_id = await harness.send()
            seen = await harness.settle(message_id)
            assert seen.standing == ("deferred", 1, None)
            harness.dns.zones.update(engine_harness.zones_of({FIRST: "127.0.0.1"}))
            await _dropped(harness, "example.net")
            harness.pass_seconds(67)
            seen = await harness.settle(message_id, attempts=2)
            assert seen.standing == ("delivered", 2, 250)
            assert [(attempt.stage, attempt.host) for attempt in seen.attempts] == [("route", ""), ("content", FIRST)]
    assert len(peer.transactions) == 1


async def _dropped(harness: engine_harness.EngineHarness, domain: str) -> None:
    async def is_dropped() -> bool:
        return harness.engine._router.cached(domain) is None

    await parts.until(is_dropped)


async def test_a_domain_in_trouble_holds_up_no_other(url: str) -> None:
    zones: dns_server.Zones = {
        **engine_harness.zones_of({FIRST: "127.0.0.1"}),
        "slow.example": dns_server.Fault.SILENCE,
        "broken.example": dns_server.Fault.SERVFAIL,
    }
    async with engine_harness.delivering_to(url, zones=zones) as (peer, harness):
        slow, broken = await harness.send("ada@slow.example"), await harness.send("ada@broken.example")
        good = await harness.settle(await harness.send())
        assert good.standing == ("delivered", 1, 250)
        assert (await harness.settle(broken)).recipient.status == "deferred"
        assert (await harness.see(slow)).recipient.attempt_count <= 1
    assert len(peer.transactions) == 1
