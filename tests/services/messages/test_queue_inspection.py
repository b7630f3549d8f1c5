"""The queue for operators, on both engines: what is shown, what is changed, and that leases are respected."""

import dataclasses

import msgspec
import pytest

from postroad import config, context, errors
from postroad.services import audit_log
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import lookup as messages
from postroad.services.messages import queue_changes, queue_inspection
from postroad.services.operations import operator_jobs
from postroad.storage.mail import queue, queue_views
from postroad.storage.operations import processes
from tests import accepted_mail, contexts, queue_steps
from tests.contexts import SECOND, Clock

ALL = queue_views.Filter()


async def deferred(ctx: context.Context, account_id: str) -> str:
    """A message whose only recipient waits for its second attempt."""
    message_id = await accepted_mail.accept(ctx, account_id)
    (key,) = await queue_steps.claim(ctx, account_id)
    await queue_steps.defer(ctx, key)
    return message_id


async def states(ctx: context.Context, chosen: queue_views.Filter = ALL) -> list[str]:
    overview = await queue_inspection.overview(ctx, chosen, state=None, limit=100)
    return [line.waiting.state for line in overview.entries]


async def test_everything_that_is_not_final_is_shown_oldest_first(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    first = await deferred(ctx, shop)
    clock.pass_seconds(10)
    second = await accepted_mail.accept(ctx, shop, to=("bob@example.org", "eve@example.org"))
    clock.pass_seconds(10)
    third = await accepted_mail.accept(ctx, shop)
    await queue_steps.claim(ctx, shop)
    found = await queue_inspection.overview(ctx, ALL, state=None, limit=10)
    assert [line.waiting.message_id for line in found.entries] == [first, second, second, third]
    assert [line.waiting.state for line in found.entries] == ["waiting", "ready", "ready", "sending"]
    assert [line.provider_queue for line in found.entries] == ["google", None, None, None]
    assert found.entries[0].why.startswith(
        "Google asked us to try later (4.7.1); next attempt at 2027-01-15 08:04:00 UTC; "
    )
    assert found.entries[3].why.startswith("being sent; by mail-1:42, ")
    assert {state: count.recipients for state, count in found.counts.items()} == {
        "waiting": 1,
        "ready": 2,
        "sending": 1,
    }
    assert min(count.queued_at for count in found.counts.values()) == clock.now - 20 * SECOND
    assert found.domains == [("example.net", 2), ("example.org", 2)]


async def test_a_choice_is_by_account_domain_message_recipient_and_state(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    await accepted_mail.allow_sending(ctx, other.id, domain="other.example")
    mine = await accepted_mail.accept(ctx, shop, to=("ada@example.net", "bob@example.org"))
    clock.pass_seconds(1)
    await accepted_mail.accept(ctx, other.id, sender="shop@other.example", to=("ada@example.net",))

    async def shown(state: str | None = None, limit: int = 10, **fields: str) -> list[tuple[str, str]]:
        chosen = queue_views.Filter(**fields)
        found = await queue_inspection.overview(ctx, chosen, state=state, limit=limit)
        return [(line.waiting.account_id, line.waiting.email) for line in found.entries]

    ada, bob, theirs = (shop, "ada@example.net"), (shop, "bob@example.org"), (other.id, "ada@example.net")
    assert await shown() == [ada, bob, theirs]
    assert await shown(limit=1) == [ada]
    assert await shown(account_id=other.id) == [theirs]
    assert await shown(domain="example.net") == [ada, theirs]
    assert await shown(domain="example") == []
    assert await shown(message_id=mine) == [ada, bob]
    assert await shown(message_id=mine, domain="example.org") == [bob]
    assert await shown(state="ready", account_id=shop) == [ada, bob]
    assert await shown(state="waiting") == []


async def test_an_id_leads_to_its_message_or_recipient_in_whatever_account(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    addresses = tuple(f"person{number}@example.net" for number in range(50))
    message_id = await accepted_mail.accept(ctx, shop, to=addresses)
    clock.pass_seconds(1)
    await accepted_mail.accept(ctx, shop)
    _, reached = await messages.find(ctx, shop, message_id)
    assert await queue_inspection.filter_by_id(ctx, message_id) == queue_views.Filter(
        account_id=shop, message_id=message_id
    )
    for recipient in (reached[0], reached[-1]):
        assert await queue_inspection.filter_by_id(ctx, recipient.id) == queue_views.Filter(
            account_id=shop, message_id=message_id, recipient_id=recipient.id
        )


async def test_an_id_that_names_nothing_is_refused_with_a_sentence(ctx: context.Context) -> None:
    for unknown in ("em_" + "0" * 28, "rcp_" + "0" * 28, "rcp_" + "f" * 28):
        with pytest.raises(errors.NotFound, match=unknown):
            await queue_inspection.filter_by_id(ctx, unknown)
    for wrong in ("em_1", "acc_" + "0" * 28, ""):
        with pytest.raises(errors.InvalidRequest, match="is not the id of a message"):
            await queue_inspection.filter_by_id(ctx, wrong)


async def test_a_trace_has_each_recipient_with_its_attempts(ctx: context.Context, shop: str, clock: Clock) -> None:
    message_id = await accepted_mail.accept(ctx, shop, to=("ada@example.net", "bob@example.org"))
    (key,) = await queue_steps.claim(ctx, shop)
    await queue_steps.defer(ctx, key)
    clock.pass_seconds(5)
    found = await queue_inspection.trace(ctx, message_id)
    ada, bob = found.courses
    assert found.message.id == message_id
    assert (ada.recipient.email, ada.recipient.status, len(ada.attempts)) == ("ada@example.net", "deferred", 1)
    assert ada.attempts[0].response == "4.7.1 greylisted"
    assert (bob.recipient.status, bob.attempts, bob.why[:6]) == ("queued", [], "ready;")
    (alone,) = (await queue_inspection.trace(ctx, bob.recipient.id)).courses
    assert alone.recipient.email == "bob@example.org"


async def test_a_blocked_provider_queue_is_the_reason_for_those_that_went_to_it_before(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    await deferred(ctx, shop)
    await queue_inspection.retry(ctx, [ALL])
    async with ctx.store.transaction() as tx:
        blocked = processes.QueueStatus(
            queue_steps.WORKER, "google", "blocked", "connection refused", clock.now + 60 * SECOND, clock.now
        )
        await processes.put_queues(tx, [blocked])
    (line,) = (await queue_inspection.overview(ctx, ALL, state=None, limit=1)).entries
    assert line.why == (
        "the mail servers of Google do not answer; next attempt at 2027-01-15 08:01:00 UTC; "
        "last error: connection refused"
    )
    clock.pass_seconds(600)  # whoever said so has not been heard of since
    (line,) = (await queue_inspection.overview(ctx, ALL, state=None, limit=1)).entries
    assert line.why.startswith("ready; ")


async def test_where_all_mail_goes_one_way_its_provider_queue_is_known_before_the_first_attempt(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    await accepted_mail.accept(ctx, shop)
    name = "upstream:relay"
    async with ctx.store.transaction() as tx:
        await processes.put_queues(
            tx, [processes.QueueStatus(queue_steps.WORKER, name, "paused", "421 later", clock.now, clock.now)]
        )
    upstream = config.Upstream(name="relay", host="relay.example.com")
    ctx = dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, upstreams=(upstream,)))
    (line,) = (await queue_inspection.overview(ctx, ALL, state=None, limit=1)).entries
    assert line.provider_queue == "upstream:relay"
    assert line.why.endswith(": 421 later")


async def test_retrying_makes_ready_what_waits_and_nothing_else(ctx: context.Context, shop: str, clock: Clock) -> None:
    waiting = await deferred(ctx, shop)
    clock.pass_seconds(1)
    await accepted_mail.accept(ctx, shop)
    await queue_steps.claim(ctx, shop)
    clock.pass_seconds(1)
    await accepted_mail.accept(ctx, shop)
    assert await states(ctx) == ["waiting", "sending", "ready"]
    assert await queue_inspection.retry(ctx, [ALL]) == queue_inspection.QueueChange(changed=1, held=1)
    assert await states(ctx) == ["ready", "sending", "ready"]
    # The attempt that was made still counts, and the next one is the second.
    (line, *_) = (await queue_inspection.overview(ctx, ALL, state=None, limit=10)).entries
    assert (line.waiting.message_id, line.waiting.attempt_count) == (waiting, 1)
    assert await queue_inspection.retry(ctx, [ALL]) == queue_inspection.QueueChange(changed=0, held=1)


async def test_retrying_takes_only_the_choice_and_any_number(
    ctx: context.Context, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_inspection, "BATCH", 2)
    await accepted_mail.accept(ctx, shop, to=tuple(f"p{n}@example.net" for n in range(5)))
    await accepted_mail.accept(ctx, shop, to=("bob@example.org",))
    for key in [*await queue_steps.claim(ctx, shop, most=5), *await queue_steps.claim(ctx, shop, domain="example.org")]:
        await queue_steps.defer(ctx, key)
    done = await queue_inspection.retry(ctx, [queue_views.Filter(domain="example.net")])
    assert done.changed == 5
    assert sorted(await states(ctx)) == ["ready"] * 5 + ["waiting"]


async def test_cancelling_ends_recipients_as_failed_and_settles_their_credits(
    ctx: context.Context, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_inspection, "BATCH", 2)
    message_id = await accepted_mail.accept(ctx, shop, to=tuple(f"p{n}@example.net" for n in range(5)))
    waiting = await queue_steps.claim(ctx, shop)
    await queue_steps.defer(ctx, waiting[0])
    assert await queue_inspection.cancel(
        ctx, [queue_views.Filter(message_id=message_id)]
    ) == queue_inspection.QueueChange(changed=5, held=0)
    message, reached = await messages.find(ctx, shop, message_id)
    assert (message.status, message.billing_status) == ("failed", "settled")
    assert {one.status for one in reached} == {"failed"}
    assert {one.last_smtp_response for one in reached} == {"canceled by the operator"}
    assert {one.last_smtp_code for one in reached} == {None}
    assert sorted(one.attempt_count for one in reached) == [0, 0, 0, 0, 1]
    assert await states(ctx) == []
    account = await accounts.find(ctx, shop)
    assert (account.available, account.reserved) == (995, 0)
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_what_is_being_sent_is_not_cancelled_and_ends_as_its_worker_says(ctx: context.Context, shop: str) -> None:
    message_id = await accepted_mail.accept(ctx, shop, to=("ada@example.net", "bob@example.net"))
    (held,) = await queue_steps.claim(ctx, shop)
    assert await queue_inspection.cancel(ctx, [ALL]) == queue_inspection.QueueChange(changed=1, held=1)
    assert await states(ctx) == ["sending"]
    assert (await messages.find(ctx, shop, message_id))[0].status == "queued"
    await queue_steps.defer(ctx, held)
    assert await queue_inspection.cancel(ctx, [ALL]) == queue_inspection.QueueChange(changed=1, held=0)
    assert (await messages.find(ctx, shop, message_id))[0].status == "failed"
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_one_that_was_claimed_after_the_look_is_left_to_its_worker(ctx: context.Context, shop: str) -> None:
    await accepted_mail.accept(ctx, shop)
    async with ctx.store.scanning() as tx:
        looked = await queue_views.unleased(tx, ALL, limit=10)
    await queue_steps.claim(ctx, shop)
    assert await queue_changes.cancel_unleased(ctx, looked) == 0
    assert await states(ctx) == ["sending"]


async def test_an_account_has_its_own_message_tried_now(ctx: context.Context, shop: str, clock: Clock) -> None:
    waiting = await deferred(ctx, shop)
    clock.pass_seconds(1)
    other = await deferred(ctx, shop)
    clock.pass_seconds(31)
    ctx.mail_wakeup.clear()
    assert await queue_inspection.retry_of_account(ctx, shop, waiting, None) == queue_inspection.QueueChange(
        changed=1, held=0
    )
    assert ctx.mail_wakeup.is_set()
    lines = {
        line.waiting.message_id: line
        for line in (await queue_inspection.overview(ctx, ALL, state=None, limit=9)).entries
    }
    assert (lines[waiting].waiting.state, lines[waiting].waiting.due_at) == ("ready", clock.now)
    assert lines[other].waiting.state == "waiting"
    with pytest.raises(errors.Conflict, match="no recipient is waiting: the rest is being sent or about to be"):
        await queue_inspection.retry_of_account(ctx, shop, waiting, None)
    (entry,) = [one for one in await audit_log.page(ctx, shop, before=None, limit=9) if one.action == "message.retried"]
    assert entry.subject == waiting


async def test_an_account_has_one_recipient_tried_now_and_leaves_alone_what_is_being_sent(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    message_id = await accepted_mail.accept(ctx, shop, to=tuple(f"p{n}@example.net" for n in range(3)))
    first, second, third = await queue_steps.claim(ctx, shop, most=3)
    for key in (first, second):
        await queue_steps.defer(ctx, key)
    clock.pass_seconds(31)
    assert await queue_inspection.retry_of_account(ctx, shop, message_id, first[2]) == queue_inspection.QueueChange(
        changed=1, held=0
    )
    with pytest.raises(errors.Conflict):
        await queue_inspection.retry_of_account(ctx, shop, message_id, third[2])
    assert await queue_inspection.retry_of_account(ctx, shop, message_id, None) == queue_inspection.QueueChange(
        changed=1, held=1
    )
    lines = await queue_inspection.entries_of_message(ctx, shop, message_id)
    assert {key: line.waiting.state for key, line in lines.items()} == {
        first[2]: "ready",
        second[2]: "ready",
        third[2]: "sending",
    }


async def ask(ctx: context.Context, account_id: str, message_id: str, *, by_operator: bool) -> None:
    if by_operator:
        assert (await queue_inspection.retry(ctx, [queue_views.Filter(message_id=message_id)])).changed == 1
    else:
        assert (await queue_inspection.retry_of_account(ctx, account_id, message_id, None)).changed == 1


@pytest.mark.parametrize("by_operator", [True, False], ids=["operator", "account"])
async def test_attempts_that_are_asked_for_keep_the_place_in_the_schedule_and_are_counted(
    ctx: context.Context, shop: str, clock: Clock, *, by_operator: bool
) -> None:
    message_id = await deferred(ctx, shop)
    for number in range(2, 14):
        clock.pass_seconds(31)
        await ask(ctx, shop, message_id, by_operator=by_operator)
        async with ctx.store.transaction() as tx:
            wanted = [queue.ClaimRequest(queue.queue_key_of("example.net", shop), 1)]
            (claimed,) = await queue.claim(tx, wanted, lease_until=clock.now + 60 * SECOND, worker=queue_steps.WORKER)
        assert claimed.attempt_count == 0
        await queue_steps.defer(ctx, claimed.key)
        (line,) = (await queue_inspection.overview(ctx, ALL, state=None, limit=9)).entries
        assert line.waiting.attempt_count == number
    (course,) = (await queue_inspection.trace(ctx, message_id)).courses
    assert (course.recipient.status, course.recipient.attempt_count, len(course.attempts)) == ("deferred", 13, 13)
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_an_account_waits_a_while_after_an_attempt_and_an_operator_does_not(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    message_id = await deferred(ctx, shop)
    clock.pass_seconds(10.25)  # the attempt took a quarter of a second
    with pytest.raises(errors.RateLimited, match="attempted a moment ago; wait 30 seconds after an attempt") as refused:
        await queue_inspection.retry_of_account(ctx, shop, message_id, None)
    assert refused.value.retry_after == 20
    assert await states(ctx) == ["waiting"]
    assert "message.retried" not in [one.action for one in await audit_log.page(ctx, shop, before=None, limit=9)]
    clock.pass_seconds(19.999)
    with pytest.raises(errors.RateLimited) as refused:
        await queue_inspection.retry_of_account(ctx, shop, message_id, None)
    assert refused.value.retry_after == 1
    clock.pass_seconds(0.001)
    assert (await queue_inspection.retry_of_account(ctx, shop, message_id, None)).changed == 1
    (key,) = await queue_steps.claim(ctx, shop)
    await queue_steps.defer(ctx, key)
    assert (await queue_inspection.retry(ctx, [ALL])).changed == 1


async def test_recipients_that_were_tried_a_moment_ago_go_on_waiting_while_others_are_tried(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    message_id = await accepted_mail.accept(ctx, shop, to=("ada@example.net", "bob@example.net", "eve@example.net"))
    ada, bob, eve = await queue_steps.claim(ctx, shop, most=3)
    await queue_steps.defer(ctx, ada)
    clock.pass_seconds(25)
    await queue_steps.defer(ctx, bob)
    async with ctx.store.transaction() as tx:  # without an attempt there is nothing to wait after
        await queue.postpone(tx, [(eve, clock.now + 60 * SECOND)], worker=queue_steps.WORKER)
    clock.pass_seconds(6)
    assert await queue_inspection.retry_of_account(ctx, shop, message_id, None) == queue_inspection.QueueChange(
        changed=2, held=0
    )
    lines = await queue_inspection.entries_of_message(ctx, shop, message_id)
    assert [lines[key[2]].waiting.state for key in (ada, bob, eve)] == ["ready", "waiting", "ready"]
    for recipient_id in (None, bob[2]):
        with pytest.raises(errors.RateLimited) as refused:
            await queue_inspection.retry_of_account(ctx, shop, message_id, recipient_id)
        assert refused.value.retry_after == 25


@pytest.mark.parametrize("first_delay, pause", [(1, 0), (2, 1), (60, 30), (3600, 30)])
async def test_the_pause_leaves_time_to_ask_in_the_first_wait(
    ctx: context.Context, shop: str, clock: Clock, first_delay: int, pause: int
) -> None:
    brisk = contexts.with_settings(ctx, "delivery", retry_seconds=(first_delay, 7200))
    message_id = await deferred(ctx, shop)
    clock.pass_seconds(0.25 + pause)
    if pause:
        clock.now -= 1
        with pytest.raises(errors.RateLimited, match=r"wait (a second|30 seconds) after"):
            await queue_inspection.retry_of_account(brisk, shop, message_id, None)
        clock.now += 1
    assert (await queue_inspection.retry_of_account(brisk, shop, message_id, None)).changed == 1


async def test_what_is_final_is_not_tried_again(ctx: context.Context, shop: str) -> None:
    message_id = await accepted_mail.accept(ctx, shop)
    await queue_inspection.cancel(ctx, [ALL])
    with pytest.raises(errors.Conflict, match="all have a final result"):
        await queue_inspection.retry_of_account(ctx, shop, message_id, None)
    assert await queue_inspection.entries_of_message(ctx, shop, message_id) == {}


async def test_the_lines_of_a_message_say_how_many_of_the_account_at_the_same_domain_are_ahead(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    await accepted_mail.allow_sending(ctx, other.id, domain="other.example")
    await accepted_mail.accept(ctx, other.id, sender="shop@other.example")  # counts for nobody else
    for to in (("ada@example.net", "bob@example.net"), ("eve@example.org",)):
        clock.pass_seconds(1)
        await accepted_mail.accept(ctx, shop, to=to)
    clock.pass_seconds(1)
    message_id = await accepted_mail.accept(ctx, shop, to=("ada@example.net",))
    clock.pass_seconds(1)
    both = await accepted_mail.accept(ctx, shop, to=("ada@example.net", "bob@example.net", "eve@example.org"))

    async def reasons(of: str) -> list[str]:
        return [line.why for line in (await queue_inspection.entries_of_message(ctx, shop, of)).values()]

    assert await reasons(message_id) == ["waiting for its turn; 2 recipients ahead"]
    three = "waiting for its turn; 3 recipients ahead"
    assert await reasons(both) == [three, three, "waiting for its turn; 1 recipient ahead"]
    assert [course.why for course in (await queue_inspection.trace(ctx, both)).courses] == await reasons(both)
    await queue_steps.claim(ctx, shop, most=2)
    assert await reasons(message_id) == ["ready; waiting for a free worker"]
