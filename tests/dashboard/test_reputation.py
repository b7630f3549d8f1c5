"""What mailbox providers make of the mail: the line, the word for each of them, and both on the pages."""

import re

import pytest
from msgspec import structs

from postroad import context
from postroad.dashboard.framework import reputation
from postroad.mail.results import complaints
from postroad.model.bounces import disposition
from postroad.model.domains import warmup
from postroad.model.reports import dmarc_rows
from postroad.model.units import times
from postroad.protocol.reports import dmarc_report
from postroad.services.accounts import statistics
from postroad.services.domains import domain_registry as domains
from postroad.storage.mail import attempts, mail_counts, queue, received_reports
from postroad.storage.mail import domains as stored_domains
from tests import accepted_mail, bounce_counts, contexts
from tests.dashboard.browser_client import Browser
from tests.dashboard.test_overview import words
from tests.services import claimed_mail


def row(
    name: str = "google",
    *,
    delivered: int = 0,
    bounced: int = 0,
    deferred: int = 0,
    blocked: int = 0,
    complaints: int = 0,
) -> reputation.ProviderRow:
    return reputation.ProviderRow(
        statistics.ProviderCounts(name, delivered, bounced, 0, deferred, blocked, complaints), 0.08
    )


@pytest.mark.parametrize(
    "found, standing",
    [
        (row(delivered=19), "few"),
        (row(delivered=20), "good"),
        (row(delivered=96, bounced=4, blocked=4), "good"),
        (row(delivered=95, bounced=5, blocked=5), "blocking"),
        (row(delivered=75, deferred=24), "good"),
        (row(delivered=75, deferred=25), "deferring"),
        (row(deferred=20), "deferring"),
        # One person may be wrong.
        (row(delivered=100, complaints=1), "good"),
        (row(delivered=2500, complaints=2), "complaints"),
        (row(delivered=2501, complaints=2), "good"),
        (row(delivered=90, bounced=10, blocked=10, complaints=9, deferred=100), "blocking"),
        (row(delivered=100, complaints=9, deferred=100), "complaints"),
    ],
)
def test_the_worst_that_is_true_stands_for_a_provider(found: reputation.ProviderRow, standing: str) -> None:
    assert found.standing == standing


@pytest.mark.parametrize(
    "rows, guard, kind, title",
    [
        ([], "ok", "unknown", "Too little mail to judge"),
        ([row(delivered=19)], "ok", "unknown", "Too little mail to judge"),
        ([row(delivered=20), row("yahoo", delivered=1)], "ok", "good", "Providers accept the mail"),
        (
            [row(delivered=75, deferred=25), row("yahoo", delivered=20)],
            "ok",
            "warn",
            "25.0% of the attempts at Google are deferred",
        ),
        ([row(delivered=75, deferred=25)], "warned", "warn", "The bounce guard warns you"),
        ([row("yahoo", delivered=20, complaints=3)], "warned", "warn", "3 people at Yahoo reported spam"),
        (
            [row(delivered=200, complaints=3), row("others", delivered=38, bounced=2, blocked=2)],
            "warned",
            "bad",
            "5.0% of the mail to other providers is blocked",
        ),
        ([row(bounced=20, blocked=20)], "ok", "bad", "100% of the mail to Google is blocked"),
        ([row(bounced=20, blocked=20)], "suspended", "bad", "The bounce guard suspended sending"),
    ],
)
def test_the_line_says_what_is_most_wrong(
    rows: list[reputation.ProviderRow], guard: str, kind: str, title: str
) -> None:
    found = reputation.assess(rows, guard=guard)
    assert (found.kind, found.title) == (kind, title)


def test_the_line_has_the_figures_of_all_providers() -> None:
    rows = [row(delivered=90, bounced=10, blocked=2, deferred=10), row("yahoo", delivered=100, complaints=1)]
    assert reputation.assess(rows).text == "1.0% blocked, 4.8% of attempts deferred, 1 reported as spam"
    assert reputation.assess(rows[:1]).text == "2.0% blocked, 9.1% of attempts deferred"


async def refuse(ctx: context.Context, account_id: str, reason: str, *, count: int, hours_ago: int = 0) -> None:
    """So many recipients at Google are refused for a reason."""
    hour = mail_counts.hour_of(ctx.clock()) - hours_ago
    async with ctx.store.transaction() as tx:
        await mail_counts.add_hourly(
            tx, [mail_counts.CountIncrement(account_id=account_id, hour=hour, provider="google", bounced=count)]
        )
        await mail_counts.add_failures(tx, [mail_counts.FailureIncrement(account_id, hour, "google", reason, count, 0)])


async def complain(ctx: context.Context, claimed: queue.Claimed) -> None:
    """Its owner reports a delivered message as spam, after a bounce of another kind was reported."""
    delivered = claimed_mail.outcome(ctx, claimed, disposition.Verdict.DELIVERED)
    assert delivered.attempt is not None
    attempt = structs.replace(delivered.attempt, provider_queue="yahoo")
    await ctx.outcome_commits.submit([structs.replace(delivered, attempt=attempt)])
    kept = [
        attempts.AsyncBounce(*claimed.key, ctx.clock() + place, action, "", "", "")
        for place, action in enumerate(("failed", complaints.ACTION))
    ]
    async with ctx.store.transaction() as tx:
        await attempts.insert_async_bounces(tx, kept)


async def test_the_overview_says_who_blocks_and_who_complained(ctx: context.Context, browser: Browser) -> None:
    _, (claimed,) = await claimed_mail.accepted(ctx, browser.account_id, "ada@yahoo.com")
    await complain(ctx, claimed)
    await refuse(ctx, browser.account_id, "ip_blocked", count=2)
    await refuse(ctx, browser.account_id, "low_reputation", count=1)
    await refuse(ctx, browser.account_id, "unknown_address", count=17)
    page = (await browser.get("/")).text
    section = page.partition('aria-labelledby="reputation"')[2].partition("</section>")[0]
    assert '<span class="verdict-bad"><strong>15.0% of the mail to Google is blocked</strong>' in section
    text = words(section)
    assert "14.3% blocked, 0% of attempts deferred, 1 reported as spam." in text
    assert "Google blocking 100% 0 20 0 3 0 0" in text
    assert "Yahoo 0% 1 0 0 0 1 0" in text
    assert "cause%3Areputation" in section
    assert 'href="/suppressions?source=complaint">1</a>' in section
    # A sample of some of the mail does not know causes.
    narrowed = (await browser.get("/", tag="orders")).text
    assert "verdict-bad" not in narrowed
    assert "Complaints</th>" not in narrowed


async def test_the_overview_says_what_the_bounce_guard_has_decided(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await accepted_mail.accept(ctx, browser.account_id)
    await bounce_counts.count(ctx, browser.account_id, recipients=1_000, complaints=1)
    assert "The bounce guard warns you" in (await browser.get("/")).text


async def test_domains_in_warm_up_are_named_until_they_have_no_cap(ctx: context.Context, browser: Browser) -> None:
    warming = contexts.with_settings(ctx, "warmup", enabled=True)
    await accepted_mail.allow_sending(warming, browser.account_id)
    listed = await domains.of_account(warming, browser.account_id)
    ((domain, view),) = await domains.in_warmup(warming, listed)
    assert (domain.name, view.used, view.cap) == ("example.com", 0, 200)
    async with ctx.store.transaction() as tx:
        done = warmup.State(ctx.clock() // (24 * 3600 * 1_000_000), 100, 5)
        await stored_domains.put_warmups(tx, {(browser.account_id, "example.com"): done})
    assert await domains.in_warmup(warming, listed) == []
    assert await domains.in_warmup(ctx, listed) == []


async def test_what_receivers_report_is_beside_it(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await accepted_mail.accept(ctx, browser.account_id)
    today = times.day_of(ctx.clock())
    rows = {
        dmarc_rows.Key(
            today - age,
            "example.com",
            "isp.example",
            "192.0.2.0/24",
            "example.com",
            dmarc_report.Disposition.NONE,
            dkim,
            spf,
        ): messages
        for age, dkim, spf, messages in ((0, True, False, 700), (1, False, True, 290), (29, False, False, 10))
    }
    old = dmarc_rows.Key(
        today - 30,
        "example.com",
        "isp.example",
        "",
        "example.com",
        dmarc_report.Disposition.NONE,
        dkim=False,
        spf=False,
    )
    async with ctx.store.transaction() as tx:
        await received_reports.add_dmarc(tx, browser.account_id, {**rows, old: 5000}, is_authenticated=True)
        await received_reports.add_dmarc(tx, browser.account_id, rows, is_authenticated=False)
    text = words((await browser.get("/")).text)
    assert "DMARC, as receivers report it for 30 days: example.com passes with 99.0% of 1,000 messages" in text


async def test_operators_see_the_last_day_of_all_accounts(ctx: context.Context, operator: Browser) -> None:
    await refuse(ctx, operator.account_id, "domain_blocked", count=30, hours_ago=24)
    await refuse(ctx, operator.account_id, "domain_blocked", count=2)
    await refuse(ctx, operator.account_id, "mailbox_full", count=38)
    section = (await operator.get("/operator/providers")).text.partition('id="standing"')[2].partition("</section>")[0]
    assert "5.0% of the mail to Google is blocked" in section
    assert [words(cell) for cell in re.findall(r"<td.*?</td>", section, re.DOTALL)] == [
        *("Google", "blocking", "0", "40", "5.0%", "0%"),
    ]


async def test_the_place_is_found_by_its_name(browser: Browser) -> None:
    assert 'href="/#reputation"' in (await browser.get("/find", q="reputation")).text
