"""The timeline of a message: everything that happened, once, in its order, in plain words."""

from postroad.dashboard import timelines
from postroad.model import judging
from postroad.services import context, messages, queues, webhook_log, webhooks
from postroad.storage import late_bounces, webhook_deliveries
from tests import contexts, mailing, queueing, webhook_rows
from tests.dashboard.browsing import Browser
from tests.services import ending


async def timeline(ctx: context.Context, account_id: str, message_id: str) -> timelines.Timeline:
    found = await messages.details(ctx, account_id, message_id)
    lines = await queues.lines_of_message(ctx, account_id, message_id)
    told = await webhook_log.page(ctx, account_id, message_id=message_id, limit=100)
    return timelines.of(found, [line.waiting for line in lines.values()], told)


async def test_steps_stand_in_the_order_in_which_they_happened(
    ctx: context.Context, browser: Browser, clock: contexts.Clock
) -> None:
    account_id = browser.account_id
    await mailing.allow(ctx, account_id)
    await webhooks.save(ctx, account_id, url=webhook_rows.URL)
    message_id = await mailing.accept(ctx, account_id)
    clock.now += contexts.SECOND
    (key,) = await queueing.claim(ctx, account_id)
    await queueing.defer(ctx, key)
    clock.now += contexts.SECOND
    await webhook_rows.put_ended(ctx, account_id, message_id=message_id, recipient_id=key[2])
    clock.now += contexts.SECOND
    async with ctx.store.transaction() as tx:
        report = late_bounces.LateBounce(account_id, message_id, key[2], clock.now, "failed", "5.0.0", "", "gone")
        await late_bounces.insert(tx, [report])
    found = await timeline(ctx, account_id, message_id)
    assert [step.title for step in found.steps] == [
        "Accepted over HTTP, for 1 recipient",
        "Put off for ada@example.net",
        "Webhook told: email.delivered for ada@example.net",
        "A bounce came back later for ada@example.net",
        "Next attempt for ada@example.net",
    ]
    assert [step.at for step in found.steps] == sorted(step.at or 0 for step in found.steps)
    assert [step.is_ahead for step in found.steps] == [False] * 4 + [True]
    assert found.steps[1].detail == judging.explain("greylisted")
    assert found.steps[1].quoted == f"451 {queueing.RESPONSE}"


async def test_a_webhook_that_was_tried_often_is_one_step(ctx: context.Context, browser: Browser) -> None:
    account_id = browser.account_id
    await mailing.allow(ctx, account_id)
    await webhooks.save(ctx, account_id, url=webhook_rows.URL)
    message_id = await mailing.accept(ctx, account_id)
    waiting = webhook_deliveries.State.WAITING
    delivery = await webhook_rows.put(ctx, account_id, message_id=message_id, state=waiting, attempt_count=2)
    await webhook_rows.put_attempt(ctx, delivery, 1, status_code=500)
    await webhook_rows.put_attempt(ctx, delivery, 2, status_code=None, error="timeout: no answer")
    _, step = (await timeline(ctx, account_id, message_id)).steps
    assert step.title == "Webhook not told: email.delivered"
    assert step.detail == "2 attempts so far. There was no answer. It is tried again."
    assert step.quoted == "timeout: no answer"


async def test_a_result_without_an_attempt_is_told_once_and_an_unknown_time_comes_last(
    ctx: context.Context, browser: Browser
) -> None:
    message_id, claimed = await ending.accepted(ctx, browser.account_id, "ada@example.net", "bob@example.net")
    verdicts = (judging.Verdict.FAILED, judging.Verdict.BOUNCED)
    for one, verdict in zip(claimed, verdicts, strict=True):
        told = ending.outcome(ctx, one, verdict, recipient_count=2, code=None, response="not tried", tried=False)
        await ctx.record.submit([told])
    steps = (await timeline(ctx, browser.account_id, message_id)).steps
    assert [(step.title, step.quoted) for step in steps[1:]] == [
        ("Not sent to bob@example.net", "not tried"),
        ("Given up for ada@example.net", "not tried"),
    ]
    assert steps[-1].at is None


async def test_a_long_story_keeps_its_beginning_and_its_end(ctx: context.Context, browser: Browser) -> None:
    message_id, claimed = await ending.accepted(ctx, browser.account_id, "ada@example.net")
    found = await messages.details(ctx, browser.account_id, message_id)
    reports = [
        late_bounces.LateBounce(
            browser.account_id, message_id, claimed[0].key[2], ctx.clock() + number, "failed", "5.0.0", "", str(number)
        )
        for number in range(timelines.MOST_STEPS + 5)
    ]
    long = messages.Details(found.message, found.recipients, found.receipt, found.attempts, reports)
    shown = timelines.of(long, [], [])
    assert shown.left_out == 5
    assert shown.steps[0].title.startswith("Accepted")
    assert [step.quoted for step in shown.steps[1:]] == [str(number) for number in range(5, timelines.MOST_STEPS + 5)]
