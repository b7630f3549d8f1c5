"""The outbox, on both engines: an event for every final result and for nothing else, in the same transaction."""

import asyncio
import dataclasses
import json
from collections.abc import Sequence

import msgspec
import pytest

from postroad import context
from postroad.mail import outbox
from postroad.mail.results import async_bounces, outcomes
from postroad.model.bounces import disposition
from postroad.model.units import identifiers
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import lookup as messages
from postroad.services.messages import queue_inspection
from postroad.services.operations import operator_jobs
from postroad.storage.engine import store
from postroad.storage.mail import messages as messages_stored
from postroad.storage.mail import queue, queue_views, webhooks
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, contexts, reports, webhook_endpoints
from tests.contexts import Clock
from tests.services import claimed_mail
from tests.storage import samples, webhook_samples

DELIVERED, BOUNCED, RETRY, FAILED = disposition.Verdict
KINDS = {DELIVERED: "email.delivered", BOUNCED: "email.bounced", FAILED: "email.failed"}


async def statuses(ctx: context.Context, account_id: str, message_id: str) -> list[str]:
    _, reached = await messages.find(ctx, account_id, message_id)
    return [recipient.status for recipient in reached]


async def events_of(ctx: context.Context, ended: Sequence[outcomes.Outcome]) -> int:
    """How many events these results make."""
    recorded: outcomes.RecordResult = await ctx.outcome_commits.submit(ended)
    return recorded.events


def all_of(
    ctx: context.Context, claimed: Sequence[queue.Claimed], verdict: disposition.Verdict = DELIVERED
) -> list[outcomes.Outcome]:
    return [claimed_mail.outcome(ctx, claim, verdict, recipient_count=len(claimed)) for claim in claimed]


@pytest.mark.parametrize("verdict", KINDS)
async def test_a_final_result_writes_its_event(
    ctx: context.Context, account_id: str, clock: Clock, verdict: disposition.Verdict
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    message_id, (claimed,) = await claimed_mail.accepted(ctx, account_id, "Ada@Example.net", subject="Hello")
    clock.pass_seconds(3.4567)
    written = await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, claimed, verdict, code=299, response="word for word")]
    )
    assert written.events == 1
    (delivery,) = await webhook_endpoints.deliveries_for(ctx, webhook)
    (_, (recipient,)) = await messages.find(ctx, account_id, message_id)
    event = json.loads(delivery.body)
    sender = event["data"].pop("from")
    assert event == {
        "id": delivery.event_id,
        "type": KINDS[verdict],
        "created_at": "2027-01-15T08:00:03.456Z",
        "data": {
            "email_id": message_id,
            "recipient_id": recipient.id,
            "to": "Ada@Example.net",
            "subject": "Hello",
            "smtp_code": 299,
            "smtp_response": "word for word",
        },
    }
    assert sender.startswith("bounces+")
    assert identifiers.is_identifier(delivery.event_id, "evt_")
    assert identifiers.is_identifier(delivery.id, "whd_")
    assert (delivery.event_type, delivery.message_id, delivery.recipient_id) == (
        KINDS[verdict],
        message_id,
        recipient.id,
    )
    assert (delivery.state, delivery.attempt_count, delivery.due_at, delivery.url) == (
        "ready",
        0,
        clock.now,
        webhook_endpoints.URL,
    )
    assert (delivery.replay_of, delivery.worker, delivery.ended_at, delivery.created_at) == (
        None,
        None,
        None,
        clock.now,
    )


async def test_a_deferral_writes_nothing_until_the_last_attempt(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    _, (claimed,) = await claimed_mail.accepted(ctx, account_id, "ada@example.net")
    for _ in range(3):
        assert await events_of(ctx, [claimed_mail.outcome(ctx, claimed, RETRY, code=451, response="later")]) == 0
        clock.pass_seconds(10)
        async with ctx.store.transaction() as tx:
            await queue.promote(tx, now=clock.now, limit=10)
        (claimed,) = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    assert await webhook_endpoints.deliveries_for(ctx, webhook) == []
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, FAILED, code=451, response="later")])
    assert [event["type"] for event in await webhook_endpoints.written_events(ctx, webhook)] == ["email.failed"]


async def test_results_that_are_recorded_twice_or_come_too_late_write_one_event(
    ctx: context.Context, account_id: str
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    _, claimed = await claimed_mail.accepted(ctx, account_id, "ada@example.net", "bob@example.net")
    ended = all_of(ctx, claimed)
    await asyncio.gather(ctx.outcome_commits.submit(ended), ctx.outcome_commits.submit(ended))
    assert await events_of(ctx, ended) == 0
    for verdict in disposition.Verdict:
        assert await events_of(ctx, [claimed_mail.outcome(ctx, claimed[0], verdict, worker="w2")]) == 0
    reported = await webhook_endpoints.written_events(ctx, webhook)
    assert [event["type"] for event in reported] == ["email.delivered"] * 2


async def test_a_bounce_that_comes_after_the_delivery_writes_nothing(ctx: context.Context, account_id: str) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    message_id, (claimed,) = await claimed_mail.accepted(ctx, account_id, "ada@example.net")
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, DELIVERED)])
    before = await webhook_endpoints.deliveries_for(ctx, webhook)
    received = await async_bounces.receive(
        ctx, await reports.named(ctx, message_id), reports.report(reports.group("ada@example.net"))
    )
    (handled,) = received.handled
    assert handled.result is async_bounces.ReportResult.RECORDED
    assert await webhook_endpoints.deliveries_for(ctx, webhook) == before


async def test_every_recipient_of_a_message_has_an_event_of_its_own(ctx: context.Context, account_id: str) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    to = ["a@example.net", "b@example.net", "c@example.org"]
    message_id, claimed = await claimed_mail.accepted(ctx, account_id, *to)
    by_address = {claim.email: claim for claim in claimed}
    ended = [
        claimed_mail.outcome(ctx, by_address[email], verdict, recipient_count=3)
        for email, verdict in zip(to, (DELIVERED, BOUNCED, FAILED), strict=True)
    ]
    assert await events_of(ctx, ended) == 3
    reported = await webhook_endpoints.written_events(ctx, webhook)
    _, reached = await messages.find(ctx, account_id, message_id)
    assert {event["data"]["email_id"] for event in reported} == {message_id}
    assert len({event["id"] for event in reported}) == 3
    assert {event["data"]["to"]: (event["data"]["recipient_id"], event["type"]) for event in reported} == {
        recipient.email: (recipient.id, f"email.{recipient.status}") for recipient in reached
    }


@pytest.mark.parametrize("subscribed", KINDS.values())
async def test_only_what_is_subscribed_to_is_written(ctx: context.Context, account_id: str, subscribed: str) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id, subscribed)
    _, claimed = await claimed_mail.accepted(ctx, account_id, "a@example.net", "b@example.net", "c@example.net")
    ended = [
        claimed_mail.outcome(ctx, claim, verdict, recipient_count=3)
        for claim, verdict in zip(claimed, KINDS, strict=True)
    ]
    assert await events_of(ctx, ended) == 1
    assert [event["type"] for event in await webhook_endpoints.written_events(ctx, webhook)] == [subscribed]


async def test_the_endpoint_counts_as_it_is_when_the_result_is_recorded(ctx: context.Context, account_id: str) -> None:
    _, claimed = await claimed_mail.accepted(ctx, account_id, *(f"{number}@example.net" for number in range(6)))
    none, enabled, disabled, moved, removed, replaced = all_of(ctx, claimed)
    assert await events_of(ctx, [none]) == 0
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    assert await events_of(ctx, [enabled]) == 1
    await webhook_endpoints.subscribe(ctx, account_id, enabled=False)
    assert await events_of(ctx, [disabled]) == 0
    await webhook_endpoints.subscribe(ctx, account_id, url="https://elsewhere.example.org/")
    assert await events_of(ctx, [moved]) == 1
    reported = await webhook_endpoints.deliveries_for(ctx, webhook)
    assert {(one.recipient_id, one.url) for one in reported} == {
        (enabled.key[2], webhook_endpoints.URL),
        (moved.key[2], "https://elsewhere.example.org/"),
    }
    await webhook_endpoints.unsubscribe(ctx, webhook)
    assert await events_of(ctx, [removed]) == 0
    again = await webhook_endpoints.subscribe(ctx, account_id)
    assert await events_of(ctx, [replaced]) == 1
    assert [one.recipient_id for one in await webhook_endpoints.deliveries_for(ctx, again)] == [replaced.key[2]]
    assert len(await webhook_endpoints.deliveries_for(ctx, webhook)) == 2


async def test_accounts_in_one_batch_get_their_own_events_and_nobody_elses(ctx: context.Context) -> None:
    made = [await accounts.create(ctx, name) for name in ("subscribed", "also", "without", "disabled")]
    subscribed = [
        await webhook_endpoints.subscribe(ctx, made[0].id),
        await webhook_endpoints.subscribe(ctx, made[1].id, "email.bounced", url="https://also.example.org/"),
        None,
        await webhook_endpoints.subscribe(ctx, made[3].id, enabled=False),
    ]
    sent = {}
    for number, account in enumerate(made):
        await accepted_mail.allow_sending(ctx, account.id, domain=f"shop{number}.example")
        sent[account.id] = await accepted_mail.accept(ctx, account.id, sender=f"a@shop{number}.example")
    claimed = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    assert len(claimed) == 4
    ended = [[claimed_mail.outcome(ctx, claim, BOUNCED)] for claim in claimed]
    assert await asyncio.gather(*[events_of(ctx, one) for one in ended]) == [2] * 4
    for account, webhook in zip(made[:2], subscribed[:2], strict=True):
        assert webhook is not None
        (delivery,) = await webhook_endpoints.deliveries_for(ctx, webhook)
        assert (delivery.account_id, delivery.message_id, delivery.url) == (account.id, sent[account.id], webhook.url)
        assert json.loads(delivery.body)["data"]["email_id"] == sent[account.id]
    assert subscribed[3] is not None
    assert await webhook_endpoints.deliveries_for(ctx, subscribed[3]) == []


async def test_when_the_transaction_fails_neither_result_nor_event_is_stored(
    ctx: context.Context, account_id: str
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    message_id, claimed = await claimed_mail.accepted(ctx, account_id, "ada@example.net")

    async def record_and_fail() -> None:
        async with ctx.store.transaction() as tx:
            assert await outcomes.record(tx, [all_of(ctx, claimed)], outbox=ctx.outbox) == [outcomes.RecordResult(1)]
            raise RuntimeError("the plug")

    with pytest.raises(RuntimeError, match="the plug"):
        await record_and_fail()
    assert await webhook_endpoints.deliveries_for(ctx, webhook) == []
    assert await statuses(ctx, account_id, message_id) == ["queued"]
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_when_the_event_cannot_be_written_the_result_is_not_stored_either(
    ctx: context.Context, account_id: str
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    message_id, claimed = await claimed_mail.accepted(ctx, account_id, "ada@example.net", "bob@example.net")
    # Without chance both deliveries have one id, which the table refuses.
    broken = dataclasses.replace(contexts.concrete(ctx.outbox, outbox.Outbox), entropy=bytes)
    with pytest.raises(store.ConstraintViolated):
        async with ctx.store.transaction() as tx:
            await outcomes.record(tx, [all_of(ctx, claimed)], outbox=broken)
    assert await webhook_endpoints.deliveries_for(ctx, webhook) == []
    assert await statuses(ctx, account_id, message_id) == ["queued", "queued"]
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    assert await events_of(ctx, all_of(ctx, claimed)) == 2


async def test_a_recipient_that_an_operator_cancels_has_failed(ctx: context.Context, account_id: str) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    await accepted_mail.allow_sending(ctx, account_id)
    message_id = await accepted_mail.accept(ctx, account_id, to=("ada@example.net", "bob@example.net"))
    assert (await queue_inspection.cancel(ctx, [queue_views.Filter(message_id=message_id)])).changed == 2
    reported = await webhook_endpoints.written_events(ctx, webhook)
    assert {event["data"]["to"] for event in reported} == {"ada@example.net", "bob@example.net"}
    for event in reported:
        assert event["type"] == "email.failed"
        assert event["data"]["smtp_response"] == "canceled by the operator"
        assert "smtp_code" not in event["data"]


async def test_a_result_without_an_attempt_has_no_code_and_says_why(ctx: context.Context, account_id: str) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    _, (claimed,) = await claimed_mail.accepted(ctx, account_id, "ada@example.net")
    why = "not attempted: the address is on the suppression list"
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, claimed, BOUNCED, code=None, response=why, tried=False)]
    )
    (event,) = await webhook_endpoints.written_events(ctx, webhook)
    assert event["type"] == "email.bounced"
    assert event["data"]["smtp_response"] == why
    assert "smtp_code" not in event["data"]
    assert "test" not in event["data"]


@pytest.mark.parametrize("email", ["bob@bücher.example", "jörg@example.net", "用户@例え.jp"])
async def test_the_recipient_is_named_as_the_caller_wrote_it(ctx: context.Context, account_id: str, email: str) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    message_id, (claimed,) = await claimed_mail.accepted(ctx, account_id, email)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, DELIVERED)])
    (event,) = await webhook_endpoints.written_events(ctx, webhook)
    (_, (recipient,)) = await messages.find(ctx, account_id, message_id)
    assert event["data"]["to"] == recipient.email == email


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_whoever_records_waits_for_whoever_changes_the_endpoint(
    ctx: context.Context, other_process: context.Context, account_id: str
) -> None:
    """On SQLite there is one writer at a time, and so nothing to see."""
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    _, claimed = await claimed_mail.accepted(ctx, account_id, "ada@example.net")
    samples.teach(ctx.store, waiting="SELECT 1 FROM pg_locks WHERE NOT granted LIMIT 1")
    async with asyncio.timeout(30):
        async with ctx.store.transaction() as tx:
            await stored_accounts.lock(tx, [account_id])
            await webhooks.update(tx, msgspec.structs.replace(webhook, enabled=0))
            recorder = asyncio.ensure_future(other_process.outcome_commits.submit(all_of(ctx, claimed)))
            while not recorder.done() and not await tx.fetch_one("test.waiting"):
                await asyncio.sleep(0)
        assert (await recorder).events == 0
    assert await webhook_endpoints.deliveries_for(ctx, webhook) == []


async def test_recording_and_changing_endpoints_at_the_same_time_never_dead_locks(
    ctx: context.Context, other_process: context.Context
) -> None:
    """Two processes record batches over the same accounts in all orders, while the endpoints change."""
    made = [(await accounts.create(ctx, f"Shop {number}")).id for number in range(4)]
    for number, account_id in enumerate(made):
        await accepted_mail.allow_sending(ctx, account_id, domain=f"shop{number}.example")
    subscribed = [await webhook_endpoints.subscribe(ctx, account_id) for account_id in made]
    await _send_from_each(ctx, made, times=10)
    claimed = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    assert len(claimed) == 40
    await _send_from_each(ctx, made, times=2)  # for those who cancel

    async def change(account_id: str, turn: int) -> None:
        await webhook_endpoints.subscribe(ctx, account_id, enabled=bool(turn % 2))

    recorder = [
        (ctx, other_process)[turn % 2].outcome_commits.submit(
            [claimed_mail.outcome(ctx, claim, DELIVERED) for claim in claimed[turn * 2 :: 10 if turn % 3 else 7]]
        )
        for turn in range(20)
    ]
    cancelling = [
        queue_inspection.cancel(other_process, [queue_views.Filter(account_id=account_id)]) for account_id in made
    ]
    changing = [change(made[turn % 4], turn) for turn in range(20)]
    async with asyncio.timeout(60):
        await asyncio.gather(*recorder, *changing, *cancelling)
    for webhook in subscribed:
        await webhook_endpoints.subscribe(ctx, webhook.account_id)
    # Everything once more: what is final writes nothing, whoever recorded it.
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, DELIVERED) for claim in claimed])
    reported = [
        one.recipient_id for webhook in subscribed for one in await webhook_endpoints.deliveries_for(ctx, webhook)
    ]
    assert reported
    assert len(reported) == len(set(reported))
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def _send_from_each(ctx: context.Context, account_ids: Sequence[str], *, times: int) -> None:
    for _ in range(times):
        for number, account_id in enumerate(account_ids):
            await accepted_mail.accept(ctx, account_id, sender=f"a@shop{number}.example")


# Several endpoints: each gets the events that it wants, and nothing else.

LIVE = messages_stored.EventDetails("ada@example.net", "shop@example.com", "Hello")
TEST = messages_stored.EventDetails("ada@example.net", "shop@example.com", "Hello", is_test=1)


@pytest.mark.parametrize(
    "fields, about, tags, wanted",
    [
        ({}, LIVE, (), True),
        ({}, LIVE, ("a",), True),
        ({"tags": "a"}, LIVE, ("a", "b"), True),
        ({"tags": "x\na tag"}, LIVE, ("a tag",), True),
        ({"tags": "x\na tag"}, LIVE, ("a", "tag"), False),
        ({"tags": "x"}, LIVE, (), False),
        ({"sender_domains": "example.com"}, LIVE, (), True),
        ({"sender_domains": "example.org\nexample.com"}, LIVE, (), True),
        ({"sender_domains": "mail.example.com\nexample.co"}, LIVE, (), False),
        ({"sender_domains": "example.com", "tags": "x"}, LIVE, ("x",), True),
        ({"sender_domains": "example.com", "tags": "x"}, LIVE, ("y",), False),
        ({"sender_domains": "example.org", "tags": "x"}, LIVE, ("x",), False),
        ({}, TEST, (), False),
        ({"mode": "test"}, TEST, (), True),
        ({"mode": "test"}, LIVE, (), False),
        ({"mode": "test", "tags": "x"}, TEST, (), False),
    ],
)
def test_an_endpoint_wants_events_of_its_mode_tags_and_domains(
    fields: dict[str, str], about: messages_stored.EventDetails, tags: tuple[str, ...], wanted: object
) -> None:
    assert outbox.is_wanted(webhook_samples.webhook(**fields), about, tags) is wanted


async def test_every_endpoint_that_wants_an_event_gets_it(ctx: context.Context, account_id: str) -> None:
    tagged = await webhook_endpoints.subscribe_another(ctx, account_id, tags="invoice\nurgent news")
    _, (unwanted,) = await claimed_mail.accepted(ctx, account_id, "dee@example.net")
    assert await events_of(ctx, [claimed_mail.outcome(ctx, unwanted, DELIVERED)]) == 0
    first = await webhook_endpoints.subscribe(ctx, account_id, "email.bounced", "email.delivered")
    elsewhere = await webhook_endpoints.subscribe_another(ctx, account_id, sender_domains="example.org")
    disabled = await webhook_endpoints.subscribe_another(ctx, account_id, enabled=0)
    test_mode = await webhook_endpoints.subscribe_another(ctx, account_id, mode="test")
    failures = await webhook_endpoints.subscribe_another(ctx, account_id, events="email.failed")
    _, one = await claimed_mail.another(ctx, account_id, "ada@example.net", tags=("urgent news", "other"))
    _, two = await claimed_mail.another(ctx, account_id, "bo@example.net", "cy@example.net")
    assert await events_of(ctx, [claimed_mail.outcome(ctx, claim, DELIVERED) for claim in (*one, *two)]) == 4
    to_first = await webhook_endpoints.deliveries_for(ctx, first)
    (to_tagged,) = await webhook_endpoints.deliveries_for(ctx, tagged)
    assert len(to_first) == 3
    assert {row.event_id for row in to_first if row.message_id == to_tagged.message_id} == {to_tagged.event_id}
    assert len({row.event_id for row in to_first}) == 3
    for other in (elsewhere, disabled, test_mode, failures):
        assert await webhook_endpoints.deliveries_for(ctx, other) == []
    assert (await operator_jobs.check_consistency(ctx)).findings == []
