"""The timeline of a message: everything that happened, once, in its order, in plain words."""

import dataclasses

import msgspec

from postroad import context
from postroad.dashboard.mail import timelines
from postroad.model.bounces import disposition
from postroad.services.messages import lookup as messages
from postroad.services.messages import queue_inspection
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage.mail import attempts, webhooks
from tests import accepted_mail, contexts, queue_steps, webhook_rows
from tests.dashboard.browser_client import Browser
from tests.services import claimed_mail


async def timeline(ctx: context.Context, account_id: str, message_id: str) -> timelines.Timeline:
    found = await messages.details(ctx, account_id, message_id)
    lines = await queue_inspection.entries_of_message(ctx, account_id, message_id)
    reported = (await delivery_log.page(ctx, account_id, message_id=message_id, limit=100)).rows
    return timelines.build(found, [line.waiting for line in lines.values()], reported)


async def test_steps_stand_in_the_order_in_which_they_happened(
    ctx: context.Context, browser: Browser, clock: contexts.Clock
) -> None:
    account_id = browser.account_id
    await accepted_mail.allow_sending(ctx, account_id)
    await endpoints.save(ctx, account_id, url=webhook_rows.URL)
    message_id = await accepted_mail.accept(ctx, account_id)
    clock.now += contexts.SECOND
    (key,) = await queue_steps.claim(ctx, account_id)
    await queue_steps.defer(ctx, key)
    clock.now += contexts.SECOND
    await webhook_rows.put_ended(ctx, account_id, message_id=message_id, recipient_id=key[2])
    clock.now += contexts.SECOND
    async with ctx.store.transaction() as tx:
        report = attempts.AsyncBounce(account_id, message_id, key[2], clock.now, "failed", "5.0.0", "", "gone")
        await attempts.insert_async_bounces(tx, [report])
    found = await timeline(ctx, account_id, message_id)
    assert [step.title for step in found.steps] == [
        "Accepted for 1 recipient (HTTP API)",
        "Deferred: ada@example.net",
        "Webhook sent: email.delivered for ada@example.net",
        "Asynchronous bounce: ada@example.net",
        "Next attempt: ada@example.net",
    ]
    assert [step.at for step in found.steps] == sorted(step.at or 0 for step in found.steps)
    assert [step.is_upcoming for step in found.steps] == [False] * 4 + [True]
    assert found.steps[1].detail == disposition.explain("greylisted")
    assert found.steps[1].quoted == f"451 {queue_steps.RESPONSE}"


async def test_a_webhook_that_was_tried_often_is_one_step(ctx: context.Context, browser: Browser) -> None:
    account_id = browser.account_id
    await accepted_mail.allow_sending(ctx, account_id)
    await endpoints.save(ctx, account_id, url=webhook_rows.URL)
    message_id = await accepted_mail.accept(ctx, account_id)
    waiting = webhooks.State.WAITING
    delivery = await webhook_rows.put(ctx, account_id, message_id=message_id, state=waiting, attempt_count=2)
    await webhook_rows.put_attempt(ctx, delivery, 1, status_code=500)
    await webhook_rows.put_attempt(ctx, delivery, 2, status_code=None, error="timeout: no answer")
    _, step = (await timeline(ctx, account_id, message_id)).steps
    assert step.title == "Webhook failed: email.delivered"
    assert step.detail == "2 attempts. No response. It will be retried."
    assert step.quoted == "timeout: no answer"


async def test_a_result_without_an_attempt_is_shown_once_and_an_unknown_time_comes_last(
    ctx: context.Context, browser: Browser
) -> None:
    message_id, claimed = await claimed_mail.accepted(ctx, browser.account_id, "ada@example.net", "bob@example.net")
    verdicts = (disposition.Verdict.FAILED, disposition.Verdict.BOUNCED)
    for one, verdict in zip(claimed, verdicts, strict=True):
        reported = claimed_mail.outcome(
            ctx, one, verdict, recipient_count=2, code=None, response="not tried", tried=False
        )
        await ctx.outcome_commits.submit([reported])
    steps = (await timeline(ctx, browser.account_id, message_id)).steps
    assert [(step.title, step.quoted) for step in steps[1:]] == [
        ("Not sent: bob@example.net", "not tried"),
        ("Failed: ada@example.net", "not tried"),
    ]
    assert steps[-1].at is None


async def long_timeline(ctx: context.Context, account_id: str, count: int) -> tuple[messages.Details, attempts.Attempt]:
    """A message that was deferred so many times; and one of the attempts."""
    message_id, (claimed,) = await claimed_mail.accepted(ctx, account_id, "ada@example.net")
    reported = claimed_mail.outcome(ctx, claimed, disposition.Verdict.RETRY).attempt
    assert reported is not None
    found = await messages.details(ctx, account_id, message_id)
    tries = [at(reported, number) for number in range(count)]
    return messages.Details(found.message, found.recipients, found.receipt, tries, [], [], {}), reported


def at(attempt: attempts.Attempt, number: int, **changed: object) -> attempts.Attempt:
    """The same, so many microseconds later."""
    values = {"started_at": attempt.started_at + number, "response": str(number), "smtp_code": None, **changed}
    return msgspec.structs.replace(attempt, **values)


async def test_a_long_timeline_keeps_its_beginning_its_end_and_every_failure(
    ctx: context.Context, browser: Browser
) -> None:
    many = 30 + 5
    found, attempt = await long_timeline(ctx, browser.account_id, many)
    shown = timelines.build(found, [], [])
    assert shown.omitted_count == 5
    assert shown.steps[0].title.startswith("Accepted")
    assert [step.quoted for step in shown.steps[1:]] == [str(number) for number in range(5, many)]
    refused = at(attempt, 0, verdict=disposition.Verdict.BOUNCED, response="no such user")
    failed = timelines.build(dataclasses.replace(found, attempts=[refused, *found.attempts]), [], [])
    assert failed.omitted_count == 6
    assert failed.steps[1].quoted == "no such user"
    assert failed.steps[-1].quoted == str(many - 1)


async def test_in_a_long_timeline_the_webhook_has_a_step_only_for_failures(
    ctx: context.Context, browser: Browser
) -> None:
    account_id = browser.account_id
    found, _ = await long_timeline(ctx, account_id, 10 - 3)
    message_id = found.message.id
    await endpoints.save(ctx, account_id, url=webhook_rows.URL)
    for _ in range(3):
        await webhook_rows.put_ended(ctx, account_id, message_id=message_id)
    reported = (await delivery_log.page(ctx, account_id, message_id=message_id, limit=100)).rows
    assert sum("Webhook sent" in step.title for step in timelines.build(found, [], reported).steps) == 3
    for _ in range(2):
        await webhook_rows.put_ended(ctx, account_id, webhooks.State.FAILED, message_id=message_id)
    reported = (await delivery_log.page(ctx, account_id, message_id=message_id, limit=100)).rows
    shown = timelines.build(found, [], reported)
    assert [step.title for step in shown.steps if "Webhook" in step.title] == ["Webhook failed: 2 events"]
    assert shown.omitted_count == 4


async def test_of_many_that_wait_the_next_are_shown(ctx: context.Context, browser: Browser) -> None:
    many = tuple(f"ada-{number}@example.net" for number in range(10 + 2))
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id, to=many)
    for key in await queue_steps.claim(ctx, browser.account_id, most=len(many)):
        await queue_steps.defer(ctx, key)
    shown = await timeline(ctx, browser.account_id, message_id)
    assert sum(step.is_upcoming for step in shown.steps) == 10
    assert shown.omitted_count == 2
