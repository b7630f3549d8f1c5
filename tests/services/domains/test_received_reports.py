"""Reports about a domain count for its owner, once, within quotas, and only what is proven decides."""

import contextlib
import gzip
from collections.abc import AsyncIterator

import pytest

from postroad import context, errors
from postroad.model.reports import dmarc_readiness
from postroad.model.units import times
from postroad.protocol.dns import tag_lists
from postroad.protocol.reports import tls_report
from postroad.services.domains import domain_registry as domains
from postroad.services.domains import received_reports
from postroad.services.operations import cleanup
from postroad.storage.mail import received_reports as stored
from postroad.storage.people import accounts
from tests import contexts, dkim_signatures, dns_server, feedback_loop
from tests.protocol.reports import sample_reports
from tests.storage import samples

DOMAIN = sample_reports.DOMAIN
STORED = received_reports.ReportResult.STORED
KEY: dns_server.Types = {"TXT": [" ".join(f'"{part}"' for part in tag_lists.txt_strings(dkim_signatures.RECORD))]}


def signed(mail: bytes, domain: str) -> bytes:
    return dkim_signatures.sign(mail, tags={"d": domain})


@pytest.fixture
async def days(clock: contexts.Clock) -> int:
    """The day after the newest of a hundred sample reports."""
    clock.now = (sample_reports.FIRST_DAY + 21) * times.DAY
    return sample_reports.FIRST_DAY


@contextlib.asynccontextmanager
async def installation(ctx: context.Context, account_id: str) -> AsyncIterator[context.Context]:
    """With the domain, verified, and a name server that knows the keys of receivers."""
    await domains.add(ctx, account_id, DOMAIN, verified=True)
    zones = {f"sel._domainkey.{sample.domain}": KEY for sample in sample_reports.make(5)}
    async with dns_server.running(dict(zones)) as dns:
        yield feedback_loop.asking(ctx, dns)


async def receive(
    ctx: context.Context, mail: bytes, *, domain: str = DOMAIN, client: str = "192.0.2.9"
) -> received_reports.ReportResult:
    return await received_reports.receive(
        ctx, domain, mail, sender=received_reports.Sender(client, "mx.mail.example", "")
    )


async def test_a_hundred_reports_of_five_receivers_become_a_summary(
    ctx: context.Context, account: accounts.Account, days: int
) -> None:
    found = sample_reports.make(100, first_day=days)
    async with installation(ctx, account.id) as asking:
        for number, sample in enumerate(found):
            mail = signed(sample.mail, sample.domain)
            assert await receive(asking, mail, client=f"192.0.{number // 50}.9") is STORED
        assert await receive(asking, signed(found[0].mail, found[0].domain)) is received_reports.ReportResult.REPEATED
        summary = await received_reports.summary(asking, account.id, DOMAIN)
    assert sum(total.messages for total in summary.days.values()) == sum(sample.messages for sample in found)
    assert {each.domain for each in summary.reporters} == {sample.domain for sample in found}
    assert summary.sources[0].network == "192.0.2.0/24"
    assert summary.verdict.passed == sum(sample.passed for sample in found)
    verdict = summary.verdict
    assert verdict.days == 20
    assert verdict.obstacles == (dmarc_readiness.Obstacle.FEW_DAYS, dmarc_readiness.Obstacle.UNKNOWN_SOURCE)
    assert [source.network for source in verdict.sources] == ["203.0.113.0/24"]
    assert (summary.unproven, summary.unreadable) == (0, 0)


async def test_what_nobody_has_proven_is_kept_apart(ctx: context.Context, account: accounts.Account, days: int) -> None:
    sample = sample_reports.make(1, first_day=days)[0]
    async with installation(ctx, account.id) as asking:
        assert await receive(asking, sample.mail) is STORED
        # The forged report does not take the place of the real one.
        assert await receive(asking, signed(sample.mail, sample.domain)) is STORED
        assert await receive(asking, signed(sample.mail, "mail.example")) is received_reports.ReportResult.REPEATED
        summary = await received_reports.summary(asking, account.id, DOMAIN)
    assert sum(total.messages for total in summary.days.values()) == summary.unproven == sample.messages
    assert summary.verdict.messages == sample.messages


async def test_a_report_about_another_domain_or_another_time_changes_nothing(
    ctx: context.Context, account: accounts.Account, days: int
) -> None:
    sample = sample_reports.make(1, first_day=days)[0]
    old = sample_reports.make(1, first_day=days - 40)[0]
    async with installation(ctx, account.id) as asking:
        await domains.add(asking, account.id, "other.example", verified=True)
        await domains.add(asking, account.id, "unverified.example", verified=False)
        mail = signed(sample.mail, sample.domain)
        assert await receive(asking, mail, domain="other.example") is received_reports.ReportResult.OTHER_DOMAIN
        assert await receive(asking, mail, domain="unverified.example") is received_reports.ReportResult.NO_OWNER
        assert await receive(asking, signed(old.mail, old.domain)) is received_reports.ReportResult.NOT_TIMELY
    assert await samples.count(ctx.store, "dmarc_rows") == 0


async def test_mail_that_cannot_be_read_is_counted(ctx: context.Context, account: accounts.Account, days: int) -> None:
    head = b"From: <a@mail.example>\r\nContent-Type: application/gzip\r\n\r\n"
    bomb = gzip.compress(b"<feedback>" + b" " * 40 * 1024 * 1024)
    async with installation(ctx, account.id) as asking:
        for content in (b"", b"Hello\r\n", head + b"\x1f\x8bxx", head + bomb):
            assert await receive(asking, content) is received_reports.ReportResult.UNREADABLE
        summary = await received_reports.summary(asking, account.id, DOMAIN)
    assert (summary.unreadable, summary.verdict.messages) == (4, 0)


async def test_a_flood_of_forged_reports_leaves_room_for_real_ones(
    ctx: context.Context, account: accounts.Account, days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(received_reports, "MAX_REPORTS", {True: 5, False: 4})
    monkeypatch.setattr(received_reports, "MAX_FROM_ONE", 2)
    sample = sample_reports.make(1, first_day=days)[0]
    async with installation(ctx, account.id) as asking:
        for network in ("198.51.100.1", "203.0.113.1"):
            for number in range(2):
                await receive(asking, f"From: <{number}@{sample.domain}>\r\n\r\n{network}".encode(), client=network)
            with pytest.raises(errors.RateLimited):
                await receive(asking, b"From: <x@x.example>\r\n\r\n", client=network)
        with pytest.raises(errors.RateLimited):
            await receive(asking, b"From: <x@x.example>\r\n\r\n", client="192.0.2.77")
        assert await receive(asking, signed(sample.mail, sample.domain), client="192.0.2.77") is STORED


async def test_a_flood_of_rows_is_summed_up(
    ctx: context.Context, account: accounts.Account, days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(received_reports, "MAX_ROWS", {True: 2, False: 1})
    found = sample_reports.make(5, first_day=days)
    async with installation(ctx, account.id) as asking:
        for sample in found:
            await receive(asking, signed(sample.mail, sample.domain))
        summary = await received_reports.summary(asking, account.id, DOMAIN)
    assert sum(total.messages for total in summary.days.values()) == sum(sample.messages for sample in found)
    assert sum(source.messages > 0 for source in summary.sources) == 2


async def test_a_reporter_with_many_rows_leaves_room_for_the_sources_of_others(
    ctx: context.Context, account: accounts.Account, days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(received_reports, "MAX_ROWS", {True: 8, False: 1})
    monkeypatch.setattr(received_reports, "MAX_ROWS_FROM_ONE", 4)
    records = [sample_reports.Record(f"203.0.113.{number}", 9, dkim=True, spf=True) for number in range(10)]
    first, other = sample_reports.make(2, first_day=days)
    async with installation(ctx, account.id) as asking:
        await receive(asking, signed(sample_reports.google(days, records), first.domain))
        await receive(asking, signed(other.mail, other.domain))
        async with asking.store.reading() as tx:
            rows = await stored.dmarc(tx, account.id, DOMAIN, since_day=days)
    named = [key.reporter for key in rows if key.source]
    assert (named.count(first.domain), named.count(other.domain)) == (4, min(3, len(other.records)))
    assert sum(rows.values()) == 90 + other.messages


async def test_a_stranger_makes_no_failures_of_others_small(
    ctx: context.Context, account: accounts.Account, days: int
) -> None:
    real, stranger = sample_reports.make(2, first_day=days)
    source = "203.0.113.9"
    found = [
        sample_reports.Record(source, 400, dkim=True, spf=True),
        sample_reports.Record(source, 100, dkim=False, spf=False),
    ]
    claimed = [sample_reports.Record(source, 10**9, dkim=True, spf=True)]
    async with installation(ctx, account.id) as asking:
        assert await receive(asking, signed(sample_reports.google(days, found), real.domain)) is STORED
        for write in (sample_reports.google, sample_reports.microsoft):
            assert await receive(asking, signed(write(days, claimed), stranger.domain)) is STORED
        summary = await received_reports.summary(asking, account.id, DOMAIN)
    # The one in the name of Google is not proven, the one in its own name is.
    assert summary.unproven == 10**9
    assert summary.verdict.messages == 500 + 10**9
    assert dmarc_readiness.Obstacle.KNOWN_SOURCE_FAILS in summary.verdict.obstacles


async def test_tls_reports_count_only_with_a_signature(
    ctx: context.Context, account: accounts.Account, days: int
) -> None:
    policy = tls_report.Policy(tls_report.PolicyType.STS, DOMAIN)
    other = tls_report.Policy(tls_report.PolicyType.STS, "other.example")
    failed = tls_report.Result(policy, tls_report.FailureType.CERTIFICATE_EXPIRED, "192.0.2.1", "mx.example.com")
    sessions = {tls_report.Result(policy): 40, failed: 2, tls_report.Result(other): 7}
    report = tls_report.Report("Mail", "tls@mail.example", DOMAIN, days, sessions)
    mail = report.mail(f"reports@bounces.{DOMAIN}", key="1")
    async with installation(ctx, account.id) as asking:
        assert await receive(asking, mail) is received_reports.ReportResult.NOT_AUTHENTICATED
        assert await receive(asking, signed(mail, "mail.example")) is STORED
        summary = await received_reports.summary(asking, account.id, DOMAIN)
    assert summary.tls == [
        stored.TlsRow("mail.example", "sts", "", 40),
        stored.TlsRow("mail.example", "sts", "certificate-expired", 2),
    ]


async def test_a_report_comes_again_when_dns_fails_for_its_sender(
    ctx: context.Context, account: accounts.Account, days: int
) -> None:
    await domains.add(ctx, account.id, DOMAIN, verified=True)
    sample = sample_reports.make(1, first_day=days)[0]
    zones: dns_server.Zones = {f"sel._domainkey.{sample.domain}": dns_server.Fault.SERVFAIL}
    async with dns_server.running(zones) as dns:
        with pytest.raises(errors.ServiceUnavailable):
            await receive(feedback_loop.asking(ctx, dns), signed(sample.mail, sample.domain))
    assert await samples.count(ctx.store, "received_reports") == 0


async def test_old_rows_go(ctx: context.Context, account: accounts.Account, days: int, clock: contexts.Clock) -> None:
    sample = sample_reports.make(1, first_day=days)[0]
    async with installation(ctx, account.id) as asking:
        await receive(asking, signed(sample.mail, sample.domain))
    clock.now = (days + 21 + 33) * times.DAY
    assert (await cleanup.sweep(ctx)).received_reports == 1
    clock.now = (days + 400) * times.DAY
    assert (await cleanup.sweep(ctx)).received_reports >= 1
    assert await samples.count(ctx.store, "dmarc_rows") == 0
