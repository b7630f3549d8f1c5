"""Holds as the operator sets them: attributed, found again by their scope, and honest about duplicates."""

import pytest

from postroad import context, errors
from postroad.services import audit_log
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import queue_inspection
from postroad.services.queue import holds
from postroad.storage.mail import queue_views
from tests import accepted_mail, queue_steps
from tests.contexts import Clock


async def logged(ctx: context.Context, account_id: str) -> list[str]:
    entries = await audit_log.page(ctx, account_id, before=None, limit=2)
    return [f"{entry.actor} {audit_log.text(entry)}" for entry in reversed(entries)]


async def test_a_hold_is_in_the_audit_log_of_every_account_that_it_concerns(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    other = (await accounts.create(ctx, "Other")).id
    clock.pass_seconds(1)
    assert await holds.hold(ctx, domain="example.net")
    assert not await holds.hold(ctx, domain="example.net")
    (held,) = await holds.in_force(ctx)
    clock.pass_seconds(1)
    await holds.release(ctx, held)
    clock.pass_seconds(1)
    entries = [
        "operator held the delivery of mail to example.net (postroad queue hold)",
        "operator released the delivery of mail to example.net (postroad queue hold)",
    ]
    assert await logged(ctx, shop) == entries
    assert await logged(ctx, other) == entries
    await holds.hold(ctx, account_id=other)
    assert (await logged(ctx, other))[-1] == "operator held the delivery of all mail (postroad queue hold)"
    assert await logged(ctx, shop) == entries


async def test_a_hold_is_found_by_its_scope_only(ctx: context.Context) -> None:
    with pytest.raises(errors.NotFound, match=r"^all mail: not held; nothing is held$"):
        await holds.find(ctx, account_id="", domain="")
    await holds.hold(ctx, domain="example.net")
    with pytest.raises(errors.NotFound, match=r"^all mail: not held; held: mail to example.net$"):
        await holds.find(ctx, account_id="", domain="")
    assert (await holds.find(ctx, account_id="", domain="example.net")).domain == "example.net"


async def test_people_read_that_mail_is_held_and_since_when(ctx: context.Context, shop: str) -> None:
    message_id = await accepted_mail.accept(ctx, shop)
    (key,) = await queue_steps.claim(ctx, shop)
    await queue_steps.defer(ctx, key)
    await holds.hold(ctx)
    found = await queue_inspection.overview(ctx, queue_views.Filter(), state="held", limit=10)
    assert [line.why for line in found.entries] == [
        "held by the operator of this service; since 2027-01-15 08:00:00 UTC: postroad queue hold"
    ]
    entries = await queue_inspection.entries_of_message(ctx, shop, message_id)
    assert [entry.why for entry in entries.values()] == ["held by the operator of this service"]
    with pytest.raises(errors.Conflict, match=r"^delivery is held by the operator of this service"):
        await queue_inspection.retry_of_account(ctx, shop, message_id, None)


async def test_after_a_restore_what_was_queued_before_may_be_a_duplicate(
    ctx: context.Context, shop: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "PAGE", 2)
    to = ("ada@example.net", "bob@example.org", "cy@example.org")
    before = await accepted_mail.accept(ctx, shop, to=to)
    clock.pass_seconds(60)
    await holds.hold(ctx)
    held = await holds.hold_restored(ctx)
    assert held.reason == "restored from a backup whose newest message is from 2027-01-15T08:00:00.000Z"
    assert await holds.in_force(ctx) == [held]
    clock.pass_seconds(60)
    await accepted_mail.accept(ctx, shop)
    counts = [(count.domain, count.recipients) for count in await holds.queued_counts(ctx, held)]
    assert sorted(counts) == [("example.net", 1), ("example.org", 2)]
    listed = [(one.message_id, one.email) async for one in holds.queued_recipients(ctx, held)]
    assert sorted(listed) == [(before, email) for email in to]


async def test_a_restore_ends_the_leases_of_workers_that_it_does_not_have(ctx: context.Context, shop: str) -> None:
    await accepted_mail.accept(ctx, shop)
    (key,) = await queue_steps.claim(ctx, shop)
    await holds.hold_restored(ctx)
    (listed,) = (await queue_inspection.overview(ctx, queue_views.Filter(), state=None, limit=1)).entries
    assert (listed.waiting.state, listed.waiting.worker) == (queue_views.HELD, None)
    # The worker that had it may have sent it.
    assert listed.waiting.lost_leases == 1
    assert await queue_steps.claim(ctx, shop) == [key]
