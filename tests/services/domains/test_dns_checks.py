"""A check asks DNS about a domain, keeps what it says, and proves the domain or takes the proof back."""

import asyncio
import dataclasses

import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.mail.signing import domain_keys
from postroad.model.domains import domain_records
from postroad.model.domains.domain_records import RecordPurpose, RecordState
from postroad.model.people import callers
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as domains
from postroad.storage.mail import domains as stored_checks
from postroad.storage.mail import messages
from tests import accepted_mail, contexts, dns_server
from tests.services import domain_zones

Change = domain_records.VerificationChange
HOURS = 3600


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    return domain_zones.settings(database_url, server)


@pytest_asyncio.fixture
async def domain(ctx: context.Context, account_id: str) -> stored_checks.Domain:
    return await domains.add(ctx, account_id, domain_zones.DOMAIN, verified=False)


async def check(ctx: context.Context, domain: stored_checks.Domain) -> Change:
    return (await domain_checks.check(ctx, domain)).change


async def states(ctx: context.Context, domain: stored_checks.Domain) -> dict[RecordPurpose, RecordState]:
    return {one.record.purpose: one.state for one in await domain_checks.records(ctx, domain)}


async def find(ctx: context.Context, domain: stored_checks.Domain) -> stored_checks.Domain:
    return await domains.find(ctx, domain.account_id, domain.id)


async def test_records_are_pending_until_they_are_checked(ctx: context.Context, domain: stored_checks.Domain) -> None:
    # To look at them creates no key.
    assert [one.record.purpose for one in await domain_checks.records(ctx, domain)] == ["spf", "return_path", "dmarc"]
    await domain_keys.keys(ctx, domain)
    shown = await domain_checks.records(ctx, domain)
    assert [one.record.purpose for one in shown] == ["dkim", "spf", "return_path", "dmarc", "dkim_ed25519"]
    assert {(one.state, one.detail, one.checked_at) for one in shown} == {
        (RecordState.PENDING, "not checked yet", None)
    }
    assert [one.required for one in shown] == [True, True, True, False, False]
    assert [one.optional for one in shown] == [False, False, False, False, True]


async def test_a_domain_with_all_its_records_is_proven_by_dns(
    ctx: context.Context, server: dns_server.DnsServer, domain: stored_checks.Domain, clock: contexts.Clock
) -> None:
    assert domain.check_at <= clock.now
    young = (await domain_checks.check(ctx, domain)).domain
    assert 270 <= (young.check_at - clock.now) / contexts.SECOND <= 330
    await domain_zones.publish_all(ctx, server, domain)
    await domain_zones.publish_keys(ctx, server, domain, RecordPurpose.DKIM_ED25519)
    checked = await domain_checks.check(ctx, domain)
    assert 21 * HOURS <= (checked.domain.check_at - clock.now) / contexts.SECOND <= 27 * HOURS
    assert checked.change is Change.VERIFIED
    assert (checked.domain.verified_at, checked.domain.verified_by) == (clock.now, stored_checks.DNS)
    assert await find(ctx, domain) == checked.domain
    assert set((await states(ctx, domain)).values()) == {RecordState.OK}
    assert {one.checked_at for one in await domain_checks.records(ctx, domain)} == {clock.now}
    assert await check(ctx, domain) is Change.NONE


async def test_each_record_is_checked_on_its_own(
    ctx: context.Context, server: dns_server.DnsServer, domain: stored_checks.Domain
) -> None:
    server.zones[f"bounces.{domain.name}"] = {"TXT": ['"v=spf1 mx -all"'], "MX": dns_server.Fault.SERVFAIL}
    assert await check(ctx, domain) is Change.NONE
    assert await states(ctx, domain) == {
        RecordPurpose.DKIM: RecordState.MISSING,
        RecordPurpose.SPF: RecordState.WRONG,
        RecordPurpose.RETURN_PATH: RecordState.UNKNOWN,
        RecordPurpose.DMARC: RecordState.MISSING,
        RecordPurpose.DKIM_ED25519: RecordState.MISSING,
    }
    assert (await find(ctx, domain)).verified_at is None
    assert ctx.metrics.domain_checks.values["dkim", "missing"] == 1
    assert ctx.metrics.domain_checks.values["dkim", "ok"] == 0
    spf = (await domain_checks.records(ctx, domain))[1]
    assert spf.record.value == "v=spf1 include:spf.example.net ~all"
    assert spf.value == "v=spf1 mx include:spf.example.net -all"


async def test_mail_is_accepted_with_the_subdomain_as_return_path_while_its_mx_record_is_found(
    ctx: context.Context, server: dns_server.DnsServer, domain: stored_checks.Domain
) -> None:
    async def chosen() -> str:
        message_id = await accepted_mail.accept(ctx, domain.account_id, sender=f"shop@{domain.name}")
        async with ctx.store.reading() as tx:
            (message,) = await messages.outgoing(tx, [(domain.account_id, message_id)])
        return message.return_path_domain

    await credits.add(ctx, domain.account_id, 10, None)
    await domain_zones.publish_key(ctx, server, domain)
    await check(ctx, domain)
    assert await chosen() == ""
    await domain_zones.publish_all(ctx, server, domain)
    assert (await domain_checks.check(ctx, domain)).domain.return_path_domain == "bounces.example.com"
    assert await chosen() == "bounces.example.com"
    server.zones["bounces.example.com"] = {"MX": dns_server.Fault.SERVFAIL}
    await check(ctx, domain)
    assert await chosen() == "bounces.example.com"
    del server.zones["bounces.example.com"]
    await check(ctx, domain)
    assert await chosen() == ""


async def test_a_proof_that_dns_denies_for_three_days_is_taken_back_and_comes_back_with_the_key(
    ctx: context.Context,
    other_process: context.Context,
    server: dns_server.DnsServer,
    domain: stored_checks.Domain,
    clock: contexts.Clock,
) -> None:
    async def version() -> int:
        async with ctx.store.reading() as tx:
            return int((await tx.fetch_one("access_version.version") or [0])[0])

    key = await domain_zones.publish_key(ctx, server, domain)
    assert await check(ctx, domain) is Change.VERIFIED
    proven, published = await version(), server.zones.pop(key)
    # Silence of DNS changes nothing, for however long.
    server.zones["*"] = dns_server.Fault.SERVFAIL
    for _ in range(2):
        assert await check(ctx, domain) is Change.NONE
        clock.pass_seconds(100 * HOURS)
    del server.zones["*"]
    assert await check(ctx, domain) is Change.FAILING
    clock.pass_seconds(100 * HOURS)
    server.zones[key] = published
    assert await check(ctx, domain) is Change.RECOVERED
    assert (await find(ctx, domain)).failing_since is None
    server.zones.pop(key)
    assert await check(ctx, domain) is Change.FAILING
    failing = await find(ctx, domain)
    assert failing.failing_since == clock.now
    clock.pass_seconds(72 * HOURS - 1)
    assert await check(ctx, domain) is Change.NONE
    assert (await find(ctx, domain)).verified_at is not None
    assert await version() == proven
    clock.pass_seconds(1)
    assert await check(other_process, domain) is Change.LOST
    assert await version() == proven + 1  # which every process notices
    lost = await find(ctx, domain)
    assert (lost.verified_at, lost.verified_by, lost.failing_since) == (None, None, failing.failing_since)
    assert await check(ctx, domain) is Change.NONE
    server.zones[key] = published
    assert await check(ctx, domain) is Change.VERIFIED
    back = await find(ctx, domain)
    assert (back.verified_at, back.verified_by, back.failing_since) == (clock.now, stored_checks.DNS, None)


@pytest.mark.parametrize("was_failing", [False, True])
async def test_what_an_operator_has_vouched_for_is_checked_and_stays(
    ctx: context.Context,
    server: dns_server.DnsServer,
    domain: stored_checks.Domain,
    clock: contexts.Clock,
    *,
    was_failing: bool,
) -> None:
    if was_failing:
        key = await domain_zones.publish_key(ctx, server, domain)
        await check(ctx, domain)
        server.zones.pop(key)
        await check(ctx, domain)
    vouched = await domains.verify(ctx, domain.account_id, domain.id, by=stored_checks.OPERATOR)
    for _ in range(2):
        assert await check(ctx, domain) is Change.NONE
        clock.pass_seconds(100 * HOURS)
    now = await find(ctx, domain)
    assert (now.verified_at, now.verified_by, now.failing_since) == (vouched.verified_at, stored_checks.OPERATOR, None)
    assert (await states(ctx, domain))[RecordPurpose.DKIM] is RecordState.MISSING


async def test_a_domain_that_another_account_has_verified_is_reported_and_nothing_breaks(
    ctx: context.Context, server: dns_server.DnsServer, domain: stored_checks.Domain
) -> None:
    other = await accounts.create(ctx, "Other")
    theirs = await domains.add(ctx, other.id, domain.name, verified=False)
    await domain_zones.publish_key(ctx, server, theirs)
    await domain_zones.publish_key(ctx, server, domain)
    assert await check(ctx, domain) is Change.VERIFIED
    assert await check(ctx, theirs) is Change.NONE
    shown = (await domain_checks.records(ctx, theirs))[0]
    assert shown.state is RecordState.OK
    assert "another account has verified this domain" in shown.detail
    assert domain.account_id not in shown.detail
    assert (await find(ctx, theirs)).verified_at is None


def by_person(ctx: context.Context) -> context.Context:
    """An operator does not wait."""
    return dataclasses.replace(ctx, actor=callers.Actor(callers.ActorKind.PERSON, "usr_1", "req_1", "192.0.2.1"))


async def test_a_caller_waits_between_two_checks_whatever_the_host(
    ctx: context.Context, other_process: context.Context, domain: stored_checks.Domain, clock: contexts.Clock
) -> None:
    place = (domain.account_id, domain.id)
    ctx, elsewhere = by_person(ctx), by_person(other_process)
    results = await asyncio.gather(*(domain_checks.check_now(ctx, *place) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(result, domain_checks.CheckResult) for result in results) == 1
    assert sum(isinstance(result, errors.RateLimited) for result in results) == 4
    clock.pass_seconds(7.5)
    with pytest.raises(errors.RateLimited, match="wait 10 seconds") as refused:
        await domain_checks.check_now(elsewhere, *place)
    assert refused.value.retry_after == 3
    clock.pass_seconds(2.5)
    await domain_checks.check_now(ctx, *place)


async def test_who_removes_a_domain_and_adds_it_again_waits_all_the_same(
    ctx: context.Context, domain: stored_checks.Domain, clock: contexts.Clock
) -> None:
    ctx = by_person(ctx)
    await domain_checks.check_now(ctx, domain.account_id, domain.id)
    clock.pass_seconds(2)
    await domains.remove(ctx, domain.account_id, domain.id)
    again = await domains.add(ctx, domain.account_id, domain.name, verified=False)
    with pytest.raises(errors.RateLimited, match="wait 10 seconds") as refused:
        await domain_checks.check_now(ctx, domain.account_id, again.id)
    assert refused.value.retry_after == 8
    other = await accounts.create(ctx, "Other")
    theirs = await domains.add(ctx, other.id, domain.name, verified=False)
    await domain_checks.check_now(ctx, other.id, theirs.id)
    clock.pass_seconds(8)
    await domain_checks.check_now(ctx, domain.account_id, again.id)


async def test_an_account_has_two_checks_under_way_and_keeps_no_other_from_its_own(
    ctx: context.Context, server: dns_server.DnsServer, account_id: str
) -> None:
    ctx = by_person(ctx)
    mine = [await domains.add(ctx, account_id, f"d{number}.example", verified=False) for number in range(3)]
    other = await accounts.create(ctx, "Other")
    theirs = await domains.add(ctx, other.id, "theirs.example", verified=False)
    with server.holding():
        checking = [asyncio.create_task(domain_checks.check_now(ctx, account_id, one.id)) for one in mine[:2]]
        while (usage := ctx.work_in_progress.get("domain checks")) is None or usage.free > 18:
            await asyncio.sleep(0)
        with pytest.raises(errors.RateLimited, match="at most 2 at once") as refused:
            await domain_checks.check_now(ctx, account_id, mine[2].id)
        checking.append(asyncio.create_task(domain_checks.check_now(ctx, other.id, theirs.id)))
        while not any("theirs.example" in name for name, _ in server.questions):
            await asyncio.sleep(0)
    assert refused.value.retry_after == 5
    await asyncio.gather(*checking)
    await domain_checks.check_now(ctx, account_id, mine[2].id)


@pytest.mark.parametrize("meanwhile", [False, True])
async def test_a_removed_domain_leaves_nothing_even_if_dns_is_asked_meanwhile(
    ctx: context.Context, server: dns_server.DnsServer, domain: stored_checks.Domain, *, meanwhile: bool
) -> None:
    await check(ctx, domain)
    if meanwhile:
        server.questions.clear()
        with server.holding():
            checking = asyncio.create_task(domain_checks.check(ctx, domain))
            while not server.questions:
                await asyncio.sleep(0)
            await domains.remove(ctx, domain.account_id, domain.id)
        with pytest.raises(errors.NotFound):
            await checking
    else:
        await domains.remove(ctx, domain.account_id, domain.id)
    async with ctx.store.reading() as tx:
        assert await stored_checks.checks(tx, domain.account_id, domain.id) == {}
