"""TLS results of sessions are counted for the domain, by policy and failure, and stored in batches within bounds."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trustme

from postroad import config, context
from postroad.delivery import routing, tls_results
from postroad.model.delivery import tls_policy
from postroad.network.smtp import smtp_connection
from postroad.protocol.reports import tls_report
from postroad.roles import composition
from postroad.storage.mail import tls_policies
from tests import contexts, dns_server, smtp_peers
from tests.contexts import clock, database_url
from tests.delivery import engine_harness, parts
from tests.storage import samples

__all__ = ["clock", "database_url"]

DOMAIN = "example.net"
HOST = engine_harness.HOST
NONE = tls_report.Policy(tls_report.PolicyType.NONE, DOMAIN)
NOON = (20_834 * 24 + 12) * 3600 * contexts.SECOND
Sessions = dict[str, dict[tls_report.Result, int]]


def no_starttls(number: int = 0) -> tls_report.Result:
    kind = tls_report.FailureType.STARTTLS_NOT_SUPPORTED
    return tls_report.Result(NONE, kind, "127.0.0.1", f"mx{number}.example.net", "127.0.0.1")


async def stored(ctx: context.Context, *, day: int = 20_834) -> Sessions:
    """What a report would contain; this claims all reports."""
    async with ctx.store.transaction() as tx:
        claimed = await tls_policies.claim_due_report(tx, now=2**62, until=2**62 + 1, limit=1000)
        return {one.domain: await tls_policies.sessions(tx, one) for one in claimed if one.day == day}


@pytest.fixture
async def ctx(database_url: str, clock: contexts.Clock) -> AsyncIterator[context.Context]:
    clock.now = NOON
    overrides: dict[str, dict[str, Any]] = {
        "database": {"url": database_url},
        "security": {"installation_key": contexts.SECRET_KEY},
        "tls_reports": {"from": "tls-reports@example.com"},
    }
    async with composition.open_context(config.load(environment={}, overrides=overrides), clock=clock) as opened:
        yield opened


@pytest.fixture
def log() -> tuple[Any, list[Any]]:
    return parts.logger()


@pytest.fixture
def counted(ctx: context.Context, log: tuple[Any, list[Any]]) -> tls_results.TlsResults:
    return tls_results.TlsResults(ctx, log[0])


async def test_sessions_are_added_up_and_stored_together(
    ctx: context.Context, counted: tls_results.TlsResults, clock: contexts.Clock
) -> None:
    for _ in range(3):
        counted.add(DOMAIN, tls_report.Result(NONE))
    counted.add(DOMAIN, no_starttls())
    counted.add("example.org", no_starttls())
    assert await samples.count(ctx.store, "tls_results") == 0
    await counted.flush()
    counted.add(DOMAIN, tls_report.Result(NONE))
    await counted.flush()
    await counted.flush()
    assert await stored(ctx) == {
        DOMAIN: {tls_report.Result(NONE): 4, no_starttls(): 1},
        "example.org": {no_starttls(): 1},
    }


async def test_days_are_counted_apart_and_what_comes_late_is_left_out(
    ctx: context.Context, counted: tls_results.TlsResults, clock: contexts.Clock
) -> None:
    counted.add(DOMAIN, tls_report.Result(NONE))
    clock.pass_seconds(12 * 3600)
    counted.add(DOMAIN, no_starttls())
    clock.pass_seconds(599)
    await counted.flush()
    clock.now = NOON
    counted.add(DOMAIN, tls_report.Result(NONE))
    clock.pass_seconds(12 * 3600 + 600)
    await counted.flush()
    async with ctx.store.transaction() as tx:
        claimed = await tls_policies.claim_due_report(tx, now=2**62, until=2**62 + 1, limit=10)
        found = {one.day: await tls_policies.sessions(tx, one) for one in claimed}
    assert found == {20_834: {tls_report.Result(NONE): 1}, 20_835: {no_starttls(): 1}}


async def test_a_tenant_with_ever_new_domains_fills_neither_memory_nor_store(
    ctx: context.Context, counted: tls_results.TlsResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_results, "MAX_DOMAINS", 10)
    monkeypatch.setattr(tls_results, "BATCH_DOMAINS", 3)
    monkeypatch.setattr(tls_policies, "MAX_REPORTS_PER_DAY", 15)
    for batch in range(4):
        for number in range(1000):
            counted.add(f"{batch}-{number}.example", tls_report.Result(NONE))
        assert len(counted._counts) == 10
        await counted.flush()
    assert 15 <= await samples.count(ctx.store, "tls_reports") < 15 + 3
    assert await samples.count(ctx.store, "tls_reports") == await samples.count(ctx.store, "tls_results")


async def test_a_domain_with_ever_new_hosts_fills_neither_memory_nor_store(
    ctx: context.Context, counted: tls_results.TlsResults
) -> None:
    for number in range(300):
        counted.add(DOMAIN, no_starttls(number))
    assert len(next(iter(counted._counts.values()))) == 50
    await counted.flush()
    for number in range(200, 300):
        counted.add(DOMAIN, no_starttls(number))
    await counted.flush()
    assert await samples.count(ctx.store, "tls_results") == 50


async def test_a_database_outage_loses_counts_and_nothing_else(
    ctx: context.Context, counted: tls_results.TlsResults, log: tuple[Any, list[Any]]
) -> None:
    counted.add(DOMAIN, tls_report.Result(NONE))
    await ctx.store.close()
    await counted.flush()
    assert [entry["event"] for entry in log[1]] == ["tls_results_lost"]


async def test_a_failure_that_says_nothing_about_tls_is_not_counted(counted: tls_results.TlsResults) -> None:
    host = routing.Host(HOST, "192.0.2.1", 25, tls_policy.OPPORTUNISTIC, (DOMAIN, NONE))
    refused = smtp_connection.ConnectFailed(smtp_connection._tls_failure("refused"))
    counted.failed(host, refused)
    assert counted._counts == {}


# Through the engine.


@contextlib.asynccontextmanager
async def delivering(
    url: str, peer: smtp_peers.Peer, *, zones: dns_server.Zones | None = None, sender: str = "tls-reports@example.com"
) -> AsyncIterator[engine_harness.EngineHarness]:
    clock = contexts.Clock()
    clock.now = NOON
    async with engine_harness.running_engine(
        url, port=peer.port, zones=zones, clock=clock, tls_reports={"from": sender}
    ) as harness:
        yield harness


def certificate() -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert(HOST).configure_cert(made)
    return made


async def test_the_sessions_of_the_engine_are_counted_and_stored_at_its_end(
    database_url: str, ctx: context.Context
) -> None:
    async with smtp_peers.serving(tls=certificate()) as peer, delivering(database_url, peer) as harness:
        await harness.prove()
    assert await stored(ctx) == {DOMAIN: {tls_report.Result(NONE): 1}}


async def test_a_host_without_starttls_is_a_failure_although_the_mail_arrives(
    database_url: str, ctx: context.Context
) -> None:
    async with smtp_peers.serving() as peer, delivering(database_url, peer) as harness:
        await harness.prove()
    failure = tls_report.Result(NONE, tls_report.FailureType.STARTTLS_NOT_SUPPORTED, "127.0.0.1", HOST, "127.0.0.1")
    assert await stored(ctx) == {DOMAIN: {failure: 1}}


async def test_without_a_sender_nothing_is_counted(database_url: str, ctx: context.Context) -> None:
    async with smtp_peers.serving(tls=certificate()) as peer, delivering(database_url, peer, sender="") as harness:
        await harness.prove()
    assert await stored(ctx) == {}
    assert await samples.count(ctx.store, "tls_results") == 0
