"""How the page of a message says what it is: scheduled, expiring, expired, canceled or a test; and explains it once."""

import msgspec

from postroad import context
from postroad.model.bounces import disposition
from postroad.model.mail import statuses
from postroad.model.units import times
from postroad.services.messages import queue_changes
from tests import accepted_mail, contexts
from tests.dashboard.browser_client import Browser
from tests.services import claimed_mail


def head(text: str) -> str:
    return text.partition('id="head"')[2].partition('id="timeline"')[0]


async def test_one_recipient_has_one_explanation(ctx: context.Context, browser: Browser) -> None:
    message_id, (claimed,) = await claimed_mail.accepted(ctx, browser.account_id, "ada@example.net")
    outcome = claimed_mail.outcome(ctx, claimed, disposition.Verdict.BOUNCED, fault=disposition.Fault.ADDRESS)
    assert outcome.attempt is not None
    attempt = msgspec.structs.replace(outcome.attempt, reason="greylisted")
    await ctx.outcome_commits.submit([msgspec.structs.replace(outcome, attempt=attempt)])
    text = (await browser.get(f"/messages/{message_id}")).text
    assert text.count(disposition.explain("greylisted")) == 1
    assert "1 attempt</summary>" in text
    assert "status-bounced" in head(text)


async def test_a_message_has_the_status_that_the_list_shows(ctx: context.Context, browser: Browser) -> None:
    message_id, (claimed,) = await claimed_mail.accepted(ctx, browser.account_id, "ada@example.net")
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, disposition.Verdict.RETRY, code=451)])
    assert '<span class="status status-deferred">' in (await browser.get("/messages")).text
    assert '<span class="status status-deferred">' in head((await browser.get(f"/messages/{message_id}")).text)


async def test_a_scheduled_message_that_expires_and_is_canceled_says_so_with_its_times(
    ctx: context.Context, browser: Browser, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    send_at = times.to_wire(clock.now + 3600 * contexts.SECOND)
    message_id = await accepted_mail.accept(ctx, browser.account_id, send_at=send_at, expires_in=600)
    shown = head((await browser.get(f"/messages/{message_id}")).text)
    assert '<span class="status status-scheduled">' in shown
    assert f'Scheduled for <time datetime="{send_at}"' in shown
    assert f'Expires <time datetime="{times.to_wire(clock.now + 4200 * contexts.SECOND)}"' in shown
    clock.pass_seconds(60)
    canceled_at = times.to_wire(clock.now)
    await queue_changes.cancel_message(ctx, browser.account_id, message_id)
    clock.pass_seconds(60)
    text = (await browser.get(f"/messages/{message_id}")).text
    assert '<span class="status status-canceled">' in head(text)
    assert f'Canceled <time datetime="{canceled_at}"' in head(text)
    step = text.partition("Canceled: ada@example.net")[2].partition("</li>")[0]
    assert f'<time datetime="{canceled_at}"' in step


async def test_an_expired_message_says_when_and_by_which_time(
    ctx: context.Context, browser: Browser, clock: contexts.Clock
) -> None:
    message_id, (claimed,) = await claimed_mail.accepted(ctx, browser.account_id, "ada@example.net", expires_in=600)
    deadline = times.to_wire(clock.now + 600 * contexts.SECOND)
    clock.pass_seconds(601)
    outcome = claimed_mail.outcome(ctx, claimed, disposition.Verdict.FAILED, tried=False)
    await ctx.outcome_commits.submit([msgspec.structs.replace(outcome, status=statuses.RecipientStatus.EXPIRED)])
    shown = head((await browser.get(f"/messages/{message_id}")).text)
    assert '<span class="status status-expired">' in shown
    assert f'Expired <time datetime="{times.to_wire(clock.now)}"' in shown
    assert f'its deadline was <time datetime="{deadline}"' in shown


async def test_a_test_message_is_marked_beside_its_status(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id, is_test=True)
    assert '<span class="status status-test">test</span>' in head((await browser.get(f"/messages/{message_id}")).text)
