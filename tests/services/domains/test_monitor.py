"""Domains that are due are checked in the background, shared by all hosts."""

import asyncio

import pytest

from postroad import config, context
from postroad.mail.signing import domain_keys
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as domains
from postroad.storage.mail import domains as stored
from tests import contexts, dns_server
from tests.api import app_server
from tests.services import domain_zones


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    return domain_zones.settings(database_url, server)


@pytest.fixture
def lines() -> app_server.CapturedLog:
    return app_server.CapturedLog()


async def watch(ctx: context.Context, lines: app_server.CapturedLog) -> int:
    return await domain_checks.check_due(ctx, log=lines.logger())


def logged(lines: app_server.CapturedLog) -> list[tuple[str, str]]:
    return [(line["event"], line["domain"]) for line in lines.kept]


async def test_a_new_domain_is_due_at_once_and_then_by_the_schedule(
    ctx: context.Context, account_id: str, clock: contexts.Clock, lines: app_server.CapturedLog
) -> None:
    assert await watch(ctx, lines) == 0
    await domains.add(ctx, account_id, "example.com", verified=False)
    assert await watch(ctx, lines) == 1
    assert await watch(ctx, lines) == 0
    clock.pass_seconds(260)
    assert await watch(ctx, lines) == 0
    clock.pass_seconds(80)
    assert await watch(ctx, lines) == 1
    assert lines.kept == []


async def test_the_log_shows_what_becomes_of_a_verification(
    ctx: context.Context,
    account_id: str,
    server: dns_server.DnsServer,
    clock: contexts.Clock,
    lines: app_server.CapturedLog,
) -> None:
    domain = await domains.add(ctx, account_id, "example.com", verified=False)
    key = await domain_zones.publish_key(ctx, server, domain)
    await watch(ctx, lines)
    published = server.zones.pop(key)
    for hours in (30, 70, 4):  # until it is due, then nearly to the end of the grace period, and beyond
        clock.pass_seconds(hours * 3600)
        assert await watch(ctx, lines) == 1
    server.zones[key] = published
    clock.pass_seconds(3960)
    await watch(ctx, lines)
    events = ["domain_verified", "domain_failing", "domain_unverified", "domain_verified"]
    assert logged(lines) == [(event, "example.com") for event in events]
    assert {(line["account_id"], line["domain_id"]) for line in lines.kept} == {(account_id, domain.id)}


async def test_two_hosts_share_what_is_due_and_check_nothing_twice(
    ctx: context.Context,
    other_process: context.Context,
    account_id: str,
    server: dns_server.DnsServer,
    lines: app_server.CapturedLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(domain_checks, "BATCH_SIZE", 2)
    names = [f"d{at}.example.com" for at in range(5)]
    for name in names:
        domain = await domains.add(ctx, account_id, name, verified=False)
        await domain_keys.keys(ctx, domain)
    both = await asyncio.gather(watch(ctx, lines), watch(other_process, lines))
    assert sum(both) == len(names)
    assert [server.count(f"_dmarc.{name}", "TXT") for name in names] == [1] * len(names)


async def test_a_domain_that_cannot_be_checked_is_logged_and_keeps_no_other_from_it(
    ctx: context.Context,
    account_id: str,
    clock: contexts.Clock,
    lines: app_server.CapturedLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = domain_checks.check

    async def check(ctx: context.Context, domain: stored.Domain) -> domain_checks.CheckResult:
        if domain.name == "bad.example":
            raise LookupError("a bug")
        return await checked(ctx, domain)

    monkeypatch.setattr(domain_checks, "check", check)
    for name in ("bad.example", "good.example"):
        await domains.add(ctx, account_id, name, verified=False)
    assert await watch(ctx, lines) == 2
    assert logged(lines) == [("domain_check_failed", "bad.example")]
    good = await domains.by_name(ctx, account_id, "good.example")
    assert (await domain_checks.records(ctx, good))[0].checked_at == clock.now


async def test_a_round_that_is_cut_off_is_made_up_for_when_the_claim_ends(
    ctx: context.Context,
    account_id: str,
    server: dns_server.DnsServer,
    clock: contexts.Clock,
    lines: app_server.CapturedLog,
) -> None:
    await domains.add(ctx, account_id, "example.com", verified=False)
    with server.holding():
        watching = asyncio.create_task(watch(ctx, lines))
        while not server.questions:
            await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait([watching])
    assert watching.cancelled()
    assert await watch(ctx, lines) == 0
    clock.pass_seconds(599)
    assert await watch(ctx, lines) == 0
    clock.pass_seconds(1)
    assert await watch(ctx, lines) == 1
