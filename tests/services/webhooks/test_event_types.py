"""Events about recipients that an endpoint gets only by name, and version 2 of all of them, on both engines."""

from typing import Any

import msgspec
import pytest

from postroad import context
from postroad.mail.results import async_bounces, complaints
from postroad.model.bounces import disposition
from postroad.model.events import events
from postroad.model.mail import statuses
from postroad.protocol.reports import arf
from postroad.services.webhooks import delivery_log
from postroad.storage.mail import queue, webhooks
from postroad.storage.people import accounts
from tests import accepted_mail, reports, webhook_endpoints
from tests.contexts import Clock
from tests.protocol.reports import complaints as samples
from tests.services import claimed_mail

DELIVERED, BOUNCED, RETRY, FAILED = disposition.Verdict
METADATA = {"order": "1042"}


async def written(ctx: context.Context, webhook: webhooks.Webhook) -> list[tuple[str, dict[str, Any]]]:
    """Types and data by time, then by type, address and cause: events of one moment have no order of their own."""
    found = await webhook_endpoints.written_events(ctx, webhook)
    found.sort(key=lambda one: (one["created_at"], one["type"], one["data"]["to"], one["data"].get("cause")))
    return [(event["type"], event["data"]) for event in found]


async def types(ctx: context.Context, webhook: webhooks.Webhook) -> list[str]:
    return [kind for kind, _ in await written(ctx, webhook)]


async def subscribed_events(ctx: context.Context, account_id: str) -> set[str]:
    async with ctx.store.reading() as tx:
        found = await accounts.by_id(tx, account_id)
    assert found is not None
    return {kind for kind in events.EventType if found.names_event(kind)}


async def test_an_accepted_message_is_told_for_each_recipient_with_its_tags(
    ctx: context.Context, account_id: str
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "email.accepted")
    await accepted_mail.allow_sending(ctx, account_id)
    message_id = await accepted_mail.accept(
        ctx, account_id, to=("Ada@example.net", "bob@example.net"), tags=("orders", "eu")
    )
    told = await written(ctx, webhook)
    assert [(kind, data["to"]) for kind, data in told] == [
        ("email.accepted", "Ada@example.net"),
        ("email.accepted", "bob@example.net"),
    ]
    for _, data in told:
        assert data["email_id"] == message_id
        assert (data["tags"], data["header_from"]) == (["eu", "orders"], "shop@example.com")
        assert data.keys() == {"email_id", "recipient_id", "to", "from", "subject", "tags", "header_from"}


async def test_what_nobody_names_is_written_for_nobody(ctx: context.Context, account_id: str) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    message_id, claimed = await claimed_mail.accepted(ctx, account_id, "ada@example.net", "bob@example.net")
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed[0], RETRY)])
    bounced = claimed_mail.outcome(ctx, claimed[1], BOUNCED, recipient_count=2, code=550, suppress=True)
    await ctx.outcome_commits.submit([bounced])
    report = reports.report(reports.group("bob@example.net", words="gone"))
    await async_bounces.receive(ctx, await reports.named(ctx, message_id, "bob@example.net"), report)
    assert await types(ctx, webhook) == ["email.bounced"]


async def test_the_account_notes_what_its_endpoints_name(ctx: context.Context, account_id: str) -> None:
    first = await webhook_endpoints.subscribe(ctx, account_id, "email.failed", "credits.low", enabled=False)
    assert await subscribed_events(ctx, account_id) == {"email.failed", "credits.low"}
    second = await webhook_endpoints.subscribe_another(ctx, account_id, events="email.accepted")
    assert await subscribed_events(ctx, account_id) == {"email.failed", "credits.low", "email.accepted"}
    await webhook_endpoints.subscribe(ctx, account_id, "email.failed")
    await webhook_endpoints.unsubscribe(ctx, second)
    assert await subscribed_events(ctx, account_id) == {"email.failed"}
    await webhook_endpoints.unsubscribe(ctx, first)
    assert await subscribed_events(ctx, account_id) == set()


async def defer(ctx: context.Context, clock: Clock, *, after: float) -> None:
    """Let time pass, and defer everything that is due."""
    clock.pass_seconds(after)
    async with ctx.store.transaction() as tx:
        await queue.promote(tx, now=ctx.clock(), limit=10)
    claimed = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    assert claimed
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, one, RETRY, code=450, response="4.7.1 later") for one in claimed]
    )


async def test_a_deferral_is_told_with_its_cause_and_at_most_once_an_hour(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "email.deferred", "email.delivered")
    await accepted_mail.allow_sending(ctx, account_id)
    await accepted_mail.accept(ctx, account_id, to=("ada@example.net", "bob@example.net"))
    await defer(ctx, clock, after=0)
    (ada, bob) = await written(ctx, webhook)
    assert (ada[1]["to"], bob[1]["to"]) == ("ada@example.net", "bob@example.net")
    assert ada[0] == "email.deferred"
    assert (
        ada[1].items()
        >= {
            "smtp_code": 450,
            "smtp_response": "4.7.1 later",
            "cause": "because",
            "next_attempt_at": "2027-01-15T08:00:01.000Z",
            "attempt": 1,
            "mx_host": "mx.example.net",
            "enhanced_code": "2.0.0",
        }.items()
    )
    await defer(ctx, clock, after=60)
    await defer(ctx, clock, after=3600 - 61)
    assert len(await written(ctx, webhook)) == 2
    await defer(ctx, clock, after=1)
    again = (await written(ctx, webhook))[2:]
    assert [(kind, data["attempt"]) for kind, data in again] == [("email.deferred", 4)] * 2
    clock.pass_seconds(1)
    async with ctx.store.transaction() as tx:
        await queue.promote(tx, now=ctx.clock(), limit=10)
    claimed = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed[0], DELIVERED, recipient_count=2)])
    assert (await types(ctx, webhook))[4:] == ["email.delivered"]


async def test_a_replayed_deferral_does_not_hide_the_next_one(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "email.deferred")
    await accepted_mail.allow_sending(ctx, account_id)
    await accepted_mail.accept(ctx, account_id)
    await defer(ctx, clock, after=0)
    clock.pass_seconds(3000)
    (first,) = await webhook_endpoints.deliveries_for(ctx, webhook)
    await delivery_log.replay(ctx, account_id, first.id)
    await defer(ctx, clock, after=600)
    assert await types(ctx, webhook) == ["email.deferred"] * 3


async def test_an_address_is_suppressed_once_and_told_with_its_bounce(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "email.suppressed", "email.bounced", version=2)
    _, first = await claimed_mail.accepted(ctx, account_id, "ada@example.net")
    _, second = await claimed_mail.another(ctx, account_id, "ada@example.net")
    for one in (*first, *second):
        bounced = claimed_mail.outcome(ctx, one, BOUNCED, code=550, response="5.1.1 unknown", suppress=True)
        await ctx.outcome_commits.submit([bounced])
        clock.pass_seconds(1)
    told = await written(ctx, webhook)
    assert [(kind, data.get("source"), data["email_id"]) for kind, data in told] == [
        ("email.bounced", None, first[0].message_id),
        ("email.suppressed", "bounce", first[0].message_id),
        ("email.bounced", None, second[0].message_id),
    ]
    assert {data["cause"] for _, data in told} == {"because"}


@pytest.mark.parametrize(
    "status, kind, cause",
    [
        (statuses.RecipientStatus.CANCELED, "email.canceled", None),
        (statuses.RecipientStatus.EXPIRED, "email.expired", "deadline_passed"),
    ],
)
async def test_what_is_canceled_or_expires_is_told_by_name_only(
    ctx: context.Context, account_id: str, status: statuses.RecipientStatus, kind: str, cause: str | None
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "email.failed", kind)
    _, (claimed,) = await claimed_mail.accepted(ctx, account_id, "ada@example.net")
    outcome = claimed_mail.outcome(ctx, claimed, FAILED, code=None, response="over", tried=False)
    await ctx.outcome_commits.submit([msgspec.structs.replace(outcome, status=status)])
    ((told, data),) = await written(ctx, webhook)
    assert (told, data["to"], data["smtp_response"]) == (kind, "ada@example.net", "over")
    assert data.get("cause") == cause


async def test_an_asynchronous_bounce_is_told_and_so_is_the_suppression(ctx: context.Context, account_id: str) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "email.bounced_later", "email.suppressed")
    message_id, _ = await claimed_mail.accepted(ctx, account_id, "ada@example.net")
    await reports.settle(ctx)
    content = reports.report(
        reports.group("ada@example.net", status="5.2.2", words="mailbox full"), reports.group("ada@example.net")
    )
    for _ in range(2):  # the second time nothing is recorded
        await async_bounces.receive(ctx, await reports.named(ctx, message_id), content)
    told = await written(ctx, webhook)
    assert [(kind, data["smtp_code"], data["enhanced_code"], data["cause"]) for kind, data in told] == [
        ("email.bounced_later", 550, "5.2.2", "mailbox_full"),
        ("email.bounced_later", 550, "5.1.1", "unknown_address"),
        ("email.suppressed", 550, "5.1.1", "unknown_address"),
    ]
    assert told[0][1]["smtp_response"] == "550 5.2.2 mailbox full"
    assert told[2][1]["source"] == "late_bounce"


async def test_a_complaint_is_told_once_and_so_is_the_suppression(ctx: context.Context, account_id: str) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "email.complained", "email.suppressed")
    message_id, _ = await claimed_mail.accepted(ctx, account_id, "ada@example.net")
    await reports.settle(ctx)
    content = samples.report(samples.FULL, await reports.path(ctx, message_id))
    report = arf.read(content)
    assert report is not None
    for _ in range(2):
        await complaints.receive(ctx, report, content, sent_to="complaints@return.example.com")
    assert [(kind, data.get("feedback_type"), data.get("source")) for kind, data in await written(ctx, webhook)] == [
        ("email.complained", "abuse", None),
        ("email.suppressed", None, "complaint"),
    ]


async def test_version_2_adds_what_version_1_leaves_out(ctx: context.Context, account_id: str) -> None:
    first = await webhook_endpoints.subscribe(ctx, account_id)
    second = await webhook_endpoints.subscribe_another(ctx, account_id, version=2)
    _, (claimed,) = await claimed_mail.accepted(ctx, account_id, "ada@example.net", tags=("orders",), metadata=METADATA)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, BOUNCED, code=550, response="5.1.1 unknown")])
    ((_, old),), ((_, new),) = await written(ctx, first), await written(ctx, second)
    assert {name: value for name, value in new.items() if name not in old} == {
        "tags": ["orders"],
        "metadata": METADATA,
        "cause": "because",
        "enhanced_code": "2.0.0",
        "header_from": "shop@example.com",
        "attempt": 1,
        "mx_host": "mx.example.net",
    }
    assert {name: new[name] for name in old} == old
    assert old.keys() == {"email_id", "recipient_id", "to", "from", "subject", "smtp_code", "smtp_response"}
    # What is not attempted because its address is suppressed says so.
    _, (claimed,) = await claimed_mail.another(ctx, account_id, "bob@example.net")
    listed = claimed_mail.outcome(ctx, claimed, BOUNCED, code=None, response="not attempted", tried=False)
    await ctx.outcome_commits.submit([listed])
    ((kind, data),) = [event for event in await written(ctx, second) if event[1]["to"] == "bob@example.net"]
    assert (kind, data["cause"], "attempt" in data, "mx_host" in data) == ("email.bounced", "suppressed", False, False)


async def test_events_of_test_messages_say_so_and_go_to_endpoints_of_test_mode(
    ctx: context.Context, account_id: str
) -> None:
    kinds = ("email.accepted", "email.delivered", "email.suppressed")
    live = await webhook_endpoints.subscribe(ctx, account_id, *kinds)
    test = await webhook_endpoints.subscribe_another(ctx, account_id, mode="test", events=" ".join(kinds))
    _, (claimed,) = await claimed_mail.accepted(ctx, account_id, "ada@example.net", is_test=True)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, DELIVERED)])
    assert await written(ctx, live) == []
    assert [(kind, data["test"]) for kind, data in await written(ctx, test)] == [
        ("email.accepted", True),
        ("email.delivered", True),
    ]
