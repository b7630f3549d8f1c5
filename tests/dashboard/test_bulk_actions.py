"""Retry, cancel, resend and suppress what a search finds."""

import asyncio
import contextlib
import dataclasses
import html
import re
from collections.abc import Sequence

import pytest

from postroad import context
from postroad.model.bounces import disposition
from postroad.services import usage_limits
from postroad.services.messages import bulk_actions, lookup
from postroad.services.operations import operator_jobs
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import messages, queue
from tests import accepted_mail, contexts
from tests.dashboard.browser_client import Browser, notice_of
from tests.services import claimed_mail

MINUTE = 60 * contexts.SECOND


async def confirm(browser: Browser, action: str, search: str) -> dict[str, str]:
    """The form of the page that asks."""
    page = (await browser.get("/bulk", action=action, search=search)).text
    fields = dict(re.findall(r'name="(action|search|confirmed_at)" value="([^"]*)"', page))
    return {name: html.unescape(value) for name, value in fields.items()}


async def defer(ctx: context.Context, account_id: str, *to: str, **fields: object) -> str:
    """A message whose recipients wait after an attempt."""
    message_id, claimed = await claimed_mail.another(ctx, account_id, *to, **fields)
    for one in claimed:
        outcome = claimed_mail.outcome(ctx, one, disposition.Verdict.RETRY, recipient_count=len(to), code=451)
        await ctx.outcome_commits.submit([outcome])
    return message_id


async def statuses(ctx: context.Context, account_id: str, message_id: str) -> list[str]:
    _, reached = await lookup.find(ctx, account_id, message_id)
    return [one.status for one in reached]


@pytest.fixture
async def shop(ctx: context.Context, browser: Browser) -> str:
    await accepted_mail.allow_sending(ctx, browser.account_id, amount=100)
    return browser.account_id


async def test_what_waits_is_retried_once(
    ctx: context.Context, browser: Browser, stranger: Browser, shop: str, clock: contexts.Clock
) -> None:
    await defer(ctx, shop, "ada@example.net", "bob@example.net", subject="Invoice 1")
    clock.now += MINUTE
    await defer(ctx, shop, "eve@example.net", subject="Invoice 2")
    clock.now += contexts.SECOND
    page = (await browser.get("/bulk", action="retry", search="invoice")).text
    assert "<h1>Retry 2 messages?</h1>" in page
    form = await confirm(browser, "retry", "invoice")
    # Accepted after the confirmation, so not part of it.
    clock.now += contexts.SECOND
    await accepted_mail.accept(ctx, shop, subject="Invoice 3")
    done = await browser.post("/bulk", form)
    assert done.headers["location"] == "/messages?search=invoice"
    assert notice_of(done) == "Retrying 2 recipients now. Not changed: 1 attempted a moment ago."
    again = await browser.post("/bulk", form)
    assert notice_of(again) == "Nothing was changed. Not changed: 2 about to be sent, 1 attempted a moment ago."
    log = html.unescape((await browser.get("/audit-log")).text)
    assert log.count("retried 2 recipients (1 not changed; search: invoice)") == 1
    nothing = (await stranger.get("/bulk", action="retry", search="invoice")).text
    assert "<h1>Nothing to retry</h1>" in nothing
    assert 'action="/bulk"' not in nothing


async def test_what_was_never_attempted_is_canceled_and_the_rest_goes_on(
    ctx: context.Context, browser: Browser, shop: str, clock: contexts.Clock
) -> None:
    tried = await defer(ctx, shop, "ada@example.net", subject="Offer 1")
    clock.now += contexts.SECOND
    fresh = await accepted_mail.accept(ctx, shop, to=("bob@example.net", "eve@example.net"), subject="Offer 2")
    clock.now += contexts.SECOND
    form = await confirm(browser, "cancel", "offer")
    done = await browser.post("/bulk", form)
    assert notice_of(done) == "Canceled: 2 recipients. Not changed: 1 attempted before."
    assert await statuses(ctx, shop, fresh) == ["canceled", "canceled"]
    assert await statuses(ctx, shop, tried) == ["deferred"]
    again = await browser.post("/bulk", form)
    assert notice_of(again) == "Nothing was changed. Not changed: 2 with a final result, 1 attempted before."
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    log = html.unescape((await browser.get("/audit-log")).text)
    assert log.count("canceled 2 recipients (1 not changed; search: offer)") == 1


async def test_only_what_waits_can_be_retried_or_canceled_from_the_list(
    ctx: context.Context, browser: Browser, shop: str
) -> None:
    offered = re.compile(r">(\w+)…</a>")
    _, (claimed,) = await claimed_mail.another(ctx, shop, "ada@example.net", subject="Bounced")
    bounced = claimed_mail.outcome(ctx, claimed, disposition.Verdict.BOUNCED, recipient_count=1, code=550)
    await ctx.outcome_commits.submit([bounced])
    assert offered.findall((await browser.get("/messages")).text) == ["Resend", "Suppress"]
    await accepted_mail.accept(ctx, shop, subject="Waits")
    assert offered.findall((await browser.get("/messages")).text) == ["Retry", "Cancel", "Resend", "Suppress"]


async def test_addresses_that_failed_are_suppressed_and_no_others(
    ctx: context.Context, browser: Browser, shop: str, clock: contexts.Clock
) -> None:
    for subject in ("News 1", "News 2"):
        _, claimed = await claimed_mail.another(ctx, shop, "ada@example.net", "bob@example.net", subject=subject)
        for one in claimed:
            is_good = one.email_key.startswith("ada")
            verdict = disposition.Verdict.DELIVERED if is_good else disposition.Verdict.BOUNCED
            await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, one, verdict, recipient_count=2, code=550)])
        clock.now += contexts.SECOND
    asked = (await browser.get("/bulk", action="suppress", search="status:partial")).text
    assert "<h1>Suppress 1 address?</h1>" in asked
    form = await confirm(browser, "suppress", "status:partial")
    done = await browser.post("/bulk", form)
    assert notice_of(done) == "Suppressed: 1 address. Not changed: 2 not failed."
    (row,) = await suppressions.page(ctx, shop, after="", limit=9)
    assert (row.email_key, row.smtp_code, row.source) == ("bob@example.net", 550, "account")
    assert notice_of(await browser.post("/bulk", form)).endswith("2 not failed, 1 already suppressed.")
    log = html.unescape((await browser.get("/audit-log")).text)
    assert "added 1 address to the suppression list (2 not changed; search: status:partial)" in log
    # What would change nothing is not offered.
    asked = (await browser.get("/bulk", action="suppress", search="status:partial")).text
    assert "<h1>Nothing to suppress</h1>" in asked
    assert "All addresses that failed are already suppressed." in asked
    assert "What will happen" not in asked
    tabs = asked.partition('aria-label="Actions"')[2].partition("</nav>")[0]
    assert re.findall(r">([^<]+)</a>", tabs) == ["Resend"]


async def test_too_many_messages_are_refused_with_words(
    ctx: context.Context, browser: Browser, shop: str, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await accepted_mail.accept(ctx, shop)
    clock.now += contexts.SECOND
    form = await confirm(browser, "cancel", "")
    monkeypatch.setattr(bulk_actions, "MAX_MESSAGES", 2)
    for answer in (await browser.get("/bulk", action="cancel"), await browser.post("/bulk", form)):
        assert answer.status_code == 409
        assert "finds more than 2 messages; narrow it" in answer.text
    monkeypatch.setattr(bulk_actions, "MAX_STEPS", 0)
    monkeypatch.setattr(bulk_actions, "MAX_MESSAGES", 9)
    assert "takes too long to count" in (await browser.get("/bulk", action="cancel")).text
    monkeypatch.setattr(bulk_actions, "MAX_STEPS", 9)
    monkeypatch.setattr(bulk_actions, "MAX_SELECT_SECONDS", -1.0)
    assert "takes too long to count" in (await browser.get("/bulk", action="cancel")).text


async def test_an_account_counts_only_so_many_bulk_actions_at_once(
    ctx: context.Context, browser: Browser, stranger: Browser, shop: str
) -> None:
    """Each holds its messages in memory."""
    with contextlib.ExitStack() as held:
        for _ in range(bulk_actions.SELECTIONS.per_account):
            held.enter_context(usage_limits.acquire(ctx, bulk_actions.SELECTIONS, shop))
        assert (await browser.get("/bulk", action="cancel")).status_code == 429
        assert (await stranger.get("/bulk", action="cancel")).status_code == 200


async def test_a_confirmation_is_for_an_hour_and_a_wrong_search_changes_nothing(
    browser: Browser, reader: Browser, shop: str, clock: contexts.Clock
) -> None:
    form = await confirm(browser, "cancel", "") or {"action": "cancel", "confirmed_at": str(clock.now)}
    for confirmed_at in (clock.now - 61 * MINUTE, clock.now + MINUTE):
        answer = await browser.post("/bulk", {**form, "confirmed_at": str(confirmed_at)})
        assert answer.status_code == 409
        assert "older than an hour" in answer.text
    assert (await browser.post("/bulk", {**form, "search": "stauts:x"})).status_code == 400
    assert (await browser.get("/bulk", action="delete")).status_code == 400
    assert (await reader.get("/bulk")).status_code == 403
    assert "/bulk" not in (await reader.get("/messages")).text


async def test_a_transaction_changes_a_bounded_number_of_recipients(ctx: context.Context, shop: str) -> None:
    """A hundred messages with 50 recipients each would hold up everybody's mail for half a second."""
    await accepted_mail.accept(ctx, shop)
    (one,) = (await lookup.page(ctx, shop, lookup.Filters(), limit=9, cursor=None)).messages
    large, small = dataclasses.replace(one, recipient_count=50), dataclasses.replace(one, recipient_count=1)
    assert [len(step) for step in bulk_actions.steps([large] * 9)] == [4, 4, 1]
    assert [len(step) for step in bulk_actions.steps([small] * 250)] == [100, 100, 50]
    assert [len(step) for step in bulk_actions.steps([*[small] * 99, large, large, large])] == [100, 2]
    assert not list(bulk_actions.steps([]))


async def fail(ctx: context.Context, account_id: str, subject: str) -> str:
    """A message that its only recipient's server refused."""
    message_id, claimed = await claimed_mail.another(ctx, account_id, "ada@example.net", subject=subject)
    await fail_claimed(ctx, claimed)
    return message_id


async def fail_claimed(ctx: context.Context, claimed: Sequence[queue.Claimed]) -> None:
    for one in claimed:
        await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, one, disposition.Verdict.FAILED, code=550)])


async def resends_of(ctx: context.Context, account_id: str, message_id: str) -> list[str]:
    async with ctx.store.reading() as tx:
        return await messages.resends(tx, account_id, message_id, limit=9)


async def test_a_failed_message_is_resent_once_however_often_it_is_confirmed(
    ctx: context.Context, browser: Browser, shop: str, clock: contexts.Clock
) -> None:
    failed = [await fail(ctx, shop, f"Invoice {number}") for number in range(3)]
    clock.now += contexts.SECOND
    assert "<h1>Resend 3 messages?</h1>" in (await browser.get("/bulk", action="resend", search="invoice")).text
    form = await confirm(browser, "resend", "invoice")
    earlier = {**form, "confirmed_at": str(int(form["confirmed_at"]) - 1)}
    # Two members of the team, at the same time.
    answers = await asyncio.gather(browser.post("/bulk", form), browser.post("/bulk", earlier))
    assert sorted(answer.status_code for answer in answers) in ([303, 303], [303, 429])
    assert notice_of(await browser.post("/bulk", earlier)) == "Nothing was changed. Not changed: 3 already resent."
    # The key of a resend is remembered for a day; that a message was resent, as long as the message.
    async with ctx.store.transaction() as tx:
        await tx.run_script("DELETE FROM idempotency_keys")
    clock.now += contexts.SECOND
    again = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    assert [len(await resends_of(ctx, shop, one)) for one in failed] == [1, 1, 1]
    assert len(again) == 3
    assert "<h1>Nothing to resend</h1>" in (await browser.get("/bulk", action="resend", search="invoice")).text
    # What was resent and failed too is a message of its own.
    await fail_claimed(ctx, again[:1])
    assert "<h1>Resend 1 message?</h1>" in (await browser.get("/bulk", action="resend", search="invoice")).text
    done = await browser.post("/bulk", await confirm(browser, "resend", "invoice"))
    assert notice_of(done) == "Resent: 1 message. Not changed: 3 already resent."
    assert [len(await resends_of(ctx, shop, one)) for one in failed] == [1, 1, 1]


async def test_only_what_has_failed_finally_can_be_resent_and_each_refusal_has_its_reason(
    ctx: context.Context, browser: Browser, shop: str, clock: contexts.Clock
) -> None:
    await defer(ctx, shop, "eve@example.net", subject="Offer 1")
    clock.now += contexts.SECOND
    nothing = (await browser.get("/bulk", action="resend", search="offer")).text
    assert "<h1>Nothing to resend</h1>" in nothing
    assert "No message has failed, or all that failed were already resent." in nothing
    await fail(ctx, shop, "Offer 2")
    async with ctx.store.transaction() as tx:
        await tx.run_script("DELETE FROM bodies")
    kept = await fail(ctx, shop, "Offer 3")
    clock.now += contexts.SECOND
    assert "<h1>Resend 2 messages?</h1>" in (await browser.get("/bulk", action="resend", search="offer")).text
    form = await confirm(browser, "resend", "offer")
    done = await browser.post("/bulk", form)
    assert notice_of(done) == "Resent: 1 message. Not changed: 1 no longer retained."
    assert len(await resends_of(ctx, shop, kept)) == 1
    await fail(ctx, shop, "Offer 4")
    await suppressions.add(ctx, shop, "ada@example.net")
    clock.now += contexts.SECOND
    done = await browser.post("/bulk", await confirm(browser, "resend", '"offer 4"'))
    assert notice_of(done) == "Nothing was changed. Not changed: 1 suppressed."
