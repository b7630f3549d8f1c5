"""`/failures` over HTTP: causes by provider, with numbers that agree with the overview to the last recipient."""

import collections
import html
import re
from urllib import parse

from msgspec import structs

from postroad import context
from postroad.model.bounces import disposition, reasons
from postroad.model.mail import statuses
from postroad.storage.mail import mail_counts, queue
from tests import accepted_mail
from tests.contexts import Clock
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser
from tests.services import claimed_mail

DELIVERED, BOUNCED, RETRY, FAILED = disposition.Verdict
# What became of recipients, in each of two hours: provider queue, verdict, reason; "" without an attempt.
MIXED = (
    ("google", DELIVERED, "delivered"),
    ("google", BOUNCED, "unknown_address"),
    ("google", BOUNCED, "unknown_address"),
    ("google", BOUNCED, "low_reputation"),
    ("google", RETRY, "rate_limited"),
    ("microsoft", BOUNCED, "unknown_address"),
    ("microsoft", FAILED, "connection_timed_out"),
    ("mx.one.example", BOUNCED, "not_authenticated"),
    ("mx.two.example", BOUNCED, "not_authenticated"),
    ("upstream:relay", BOUNCED, "spam_suspected"),
    ("", BOUNCED, ""),
    ("", FAILED, ""),
    ("", FAILED, "expired"),
)


async def record(
    ctx: context.Context,
    claimed: queue.Claimed,
    provider_queue: str,
    verdict: str,
    reason: str,
    *,
    recipient_count: int = len(MIXED),
) -> None:
    """The result of a recipient of a message to all of MIXED."""
    outcome = claimed_mail.outcome(
        ctx,
        claimed,
        disposition.Verdict(verdict),
        recipient_count=recipient_count,
        code=550,
        response=f"reply about {reason}",
        tried=bool(provider_queue),
    )
    if outcome.attempt is not None:
        known = reasons.REASONS[reason]
        attempt = structs.replace(outcome.attempt, provider_queue=provider_queue, reason=reason, fault=known.fault)
        outcome = structs.replace(outcome, attempt=attempt)
    elif reason == "expired":
        outcome = structs.replace(outcome, status=statuses.RecipientStatus.EXPIRED)
    await ctx.outcome_commits.submit([outcome])


async def fail(ctx: context.Context, account_id: str) -> None:
    """A message to all of MIXED, with their results."""
    to = [f"{place}@example.net" for place in range(len(MIXED))]
    _, claimed = await claimed_mail.another(ctx, account_id, *to)
    for one, result in zip(sorted(claimed, key=lambda one: int(one.email_key.split("@")[0])), MIXED, strict=True):
        await record(ctx, one, *result)


def cells(text: str) -> list[list[str]]:
    """What the rows of the table say."""
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [words(cell) for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
        for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL)
    ]


def messages_of(text: str) -> set[str]:
    """The messages that a list has."""
    return set(re.findall(r'href="/messages/(em_[0-9a-f]{28})', text))


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


async def test_the_numbers_agree_with_the_overview_to_the_last_recipient(
    ctx: context.Context, clock: Clock, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await fail(ctx, browser.account_id)
    clock.pass_seconds(7_200)
    await fail(ctx, browser.account_id)
    overview, failures = (await browser.get("/")).text, (await browser.get("/failures")).text
    # Of 26 recipients, 2 were delivered, 2 are deferred, and the rest bounced or failed.
    assert "Bounced 66.7% 16 of 24" in words(overview)
    assert "Failed 25.0% 6 of 24" in words(overview)
    assert "22 recipients: 16 bounced , 6 failed ." in words(failures)
    rows = cells(failures)
    assert [(row[0].partition(" ")[0], row[1], row[2]) for row in rows] == [
        ("Not", "All others", "4 +4 compared with the previous 7 days"),
        ("Unknown", "Google", "4 +4 compared with the previous 7 days"),
        ("Connection", "Microsoft", "2 +2 compared with the previous 7 days"),
        ("Expired", "No provider", "2 +2 compared with the previous 7 days"),
        ("Low", "Google", "2 +2 compared with the previous 7 days"),
        ("Retries", "No provider", "2 +2 compared with the previous 7 days"),
        ("Spam", "upstream:relay", "2 +2 compared with the previous 7 days"),
        ("Suppressed", "No provider", "2 +2 compared with the previous 7 days"),
        ("Unknown", "Microsoft", "2 +2 compared with the previous 7 days"),
    ]
    assert sum(int(row[2].split()[0]) for row in rows) == 22
    by_provider: dict[str, int] = collections.Counter()
    for row in rows:
        by_provider[row[1]] += int(row[2].split()[0])
    provider_table = overview.partition('id="reputation"')[2].partition("</table>")[0]
    of_overview = {
        row[0]: int(row[4]) + int(row[5])
        for row in (
            [words(cell) for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", found, re.DOTALL)]
            for found in re.findall(r"<tr>\s*<th scope=\"row\">.*?</tr>", provider_table, re.DOTALL)
        )
    }
    assert of_overview == {name: count for name, count in by_provider.items() if name != "No provider"}


async def test_every_number_leads_to_the_messages_that_it_counts(ctx: context.Context, browser: Browser) -> None:
    """Each recipient has a message of its own, so that a list has as many messages as recipients are counted."""
    await accepted_mail.allow_sending(ctx, browser.account_id)
    sent: dict[tuple[str, str], set[str]] = {}
    for place, (provider_queue, verdict, reason) in enumerate(MIXED):
        message_id, (claimed,) = await claimed_mail.another(ctx, browser.account_id, f"{place}@example.net")
        await record(ctx, claimed, provider_queue, verdict, reason, recipient_count=1)
        if verdict in (BOUNCED, FAILED):
            sent.setdefault((verdict, ""), set()).add(message_id)
        sent.setdefault((provider_queue.partition(".")[0], reason), set()).add(message_id)
    page = (await browser.get("/failures")).text
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    listed = []
    for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL):
        found = await browser.get(html.unescape(re.findall(r'href="(/messages\?[^"]*)"', row)[0]))
        assert found.status_code == 200
        listed.append(messages_of(found.text))
    rows = cells(page)
    assert [len(ids) for ids in listed] == [int(row[2].split()[0]) for row in rows]
    google = next(place for place, row in enumerate(rows) if row[0].startswith("Unknown") and row[1] == "Google")
    assert listed[google] == sent["google", "unknown_address"]
    overview = (await browser.get("/")).text.partition('id="tiles"')[2].partition('id="charts"')[0]
    counts = []
    for path in re.findall(r'href="(/messages\?[^"]*)"', overview):
        found = await browser.get(html.unescape(path))
        assert found.status_code == 200
        counts.append(len(messages_of(found.text)))
    # Messages, delivered, bounced, failed, queued.
    assert counts == [13, 1, 8, 3, 1]
    assert "Bounced 66.7% 8 of 12" in words(overview)
    assert len(sent[BOUNCED, ""]) == 8


async def test_each_cause_is_explained_with_an_example_a_trend_and_one_action(
    ctx: context.Context, clock: Clock, browser: Browser, reader: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await fail(ctx, browser.account_id)
    clock.pass_seconds(1)
    page = (await browser.get("/failures", period="24h")).text
    found = {(row[0].partition(" ")[0], row[1]): row for row in cells(page)}
    unknown = found["Unknown", "Google"]
    assert unknown[0] == (
        "Unknown address Address The mailbox does not exist. "
        "Check the spelling. If it is right, remove it from your list."
    )
    assert unknown[4] == "550 reply about unknown_address"
    assert {key: row[5] for key, row in found.items()} == {
        ("Unknown", "Google"): "See suppressions",
        ("Unknown", "Microsoft"): "See suppressions",
        ("Low", "Google"): "Google: Email sender guidelines",
        ("Connection", "Microsoft"): "Resend these messages",
        ("Not", "All others"): "Check the domain",
        ("Spam", "upstream:relay"): "Read the replies",
        ("Suppressed", "No provider"): "See suppressions",
        ("Retries", "No provider"): "Read the replies",
        ("Expired", "No provider"): "Read the replies",
    }
    assert 'aria-label="By hour: 0, 0,' in page
    confirmations = [html.unescape(one) for one in re.findall(r'"(/bulk\?[^"]*)"', page)]
    titles = [re.findall(r"<h1>(.*)</h1>", (await browser.get(one)).text) for one in confirmations]
    # The only message of the account has also a recipient that waits, so it is not final, and is not resent yet.
    assert titles == [["Nothing to resend"]]
    assert "/bulk" not in (await reader.get("/failures", period="24h")).text
    searches = [parse.parse_qs(html.unescape(one))["search"][0] for one in re.findall(r'"/messages\?([^"]*)"', page)]
    since = "after:2027-01-14T09:00Z"
    assert f"outcome:bounced OR outcome:failed cause:unknown_address provider:google {since}" in searches
    assert f"outcome:suppressed {since}" in searches
    assert f"outcome:expired {since}" in searches


async def test_addresses_that_no_reply_refused_can_be_suppressed_from_the_page(
    ctx: context.Context, clock: Clock, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    _, (claimed,) = await claimed_mail.another(ctx, browser.account_id, "ada@typo.example")
    await record(ctx, claimed, "others", BOUNCED, "domain_not_found", recipient_count=1)
    clock.pass_seconds(1)
    page = (await browser.get("/failures")).text
    (path,) = [html.unescape(one) for one in re.findall(r'"(/bulk\?[^"]*)">Suppress these addresses', page)]
    assert "<h1>Suppress 1 address?</h1>" in (await browser.get(path)).text


async def test_the_page_leads_to_resending_what_failed(ctx: context.Context, clock: Clock, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id, amount=100)
    for place in range(3):
        _, (claimed,) = await claimed_mail.another(ctx, browser.account_id, f"{place}@example.net")
        await record(ctx, claimed, "microsoft", FAILED, "connection_timed_out", recipient_count=1)
    clock.pass_seconds(1)
    page = (await browser.get("/failures")).text
    (path,) = [html.unescape(one) for one in re.findall(r'"(/bulk\?[^"]*)"', page)]
    asked = (await browser.get(path)).text
    assert "<h1>Resend 3 messages?</h1>" in asked
    # What would change nothing is not offered.
    tabs = asked.partition('aria-label="Actions"')[2].partition("</nav>")[0]
    assert re.findall(r">([^<]+)</a>", tabs) == ["Resend", "Suppress addresses"]


async def test_results_of_a_version_that_did_not_count_causes_are_a_row_of_their_own(
    ctx: context.Context, clock: Clock, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    hour = mail_counts.hour_of(clock.now)
    async with ctx.store.transaction() as tx:
        more = mail_counts.CountIncrement(
            account_id=browser.account_id, hour=hour, provider="yahoo", bounced=3, failed=1
        )
        await mail_counts.add_hourly(tx, [more])
        await mail_counts.add_failures(
            tx, [mail_counts.FailureIncrement(browser.account_id, hour, "yahoo", "mailbox_full", 1, 1)]
        )
        # Of an hour that the other table does not have any more.
        await mail_counts.add_failures(
            tx, [mail_counts.FailureIncrement(browser.account_id, hour - 1, "yahoo", "mailbox_full", 9, 9)]
        )
    rows = cells((await browser.get("/failures")).text)
    assert [(row[0].partition(".")[0], row[2].split()[0]) for row in rows] == [
        (
            "Cause not recorded Unknown These results were recorded by a version of Postroad that did not count causes",
            "2",
        ),
        ("Mailbox full Mailbox or receiver policy The mailbox is full", "2"),
    ]


async def test_a_range_without_failures_says_so_and_impossible_ones_are_refused(
    ctx: context.Context, clock: Clock, served: browser_client.Served, browser: Browser
) -> None:
    assert "No failures" in (await browser.get("/failures")).text
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await fail(ctx, browser.account_id)
    days = {"from": "2027-01-13", "until": "2027-01-14"}
    assert "No failures" in (await browser.get("/failures", **days)).text
    clock.pass_seconds(86_400)
    assert browser.user is not None
    async with browser_client.open_browser(ctx, served, browser.user) as later:
        page = (await later.get("/failures", **{"from": "2027-01-16", "until": "2027-01-16"})).text
        assert "No failures" in page
        page = (await later.get("/failures", **{"from": "2027-01-15", "until": "2027-01-15"})).text
        assert "11 recipients: 8 bounced , 3 failed . 2027-01-15; 0 in the day before." in words(page)
        refused = await later.get("/failures", **{"from": "2027-01-14", "until": "2027-01-13"})
        assert refused.status_code == 400
        assert "from: must not be after the last day" in refused.text
