"""A send above the approval limit of a key waits for a person, and is done once."""

import asyncio
import dataclasses
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec
import pytest

from postroad import context, errors
from postroad.mail.accept import approval_limit, submit, submit_batch
from postroad.model.delivery import throttle
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.services.messages import approvals, lookup
from postroad.services.operations import cleanup
from postroad.services.people import api_keys, credentials
from postroad.services.templates import templates
from postroad.storage.people import accounts
from postroad.storage.people import approvals as stored
from tests import accepted_mail, contexts

REQUEST = "req_" + "0" * 28


async def key_of(
    ctx: context.Context, account_id: str, *, above: int = 1, only: tuple[str, ...] = ("welcome",)
) -> callers.Caller:
    await accepted_mail.allow_sending(ctx, account_id)
    await templates.put(ctx, account_id, "welcome", subject="Hi {{name}}", text="x", html=None)
    credential, _ = await credentials.create(ctx, account_id, "agent")
    limits = callers.KeyLimits(approval_above=above, templates=only)
    key, _ = await api_keys.create(
        ctx, account_id, credential_id=credential.id, name="agent", scopes=frozenset({"send"}), limits=limits
    )
    known = callers.ApiKey(key.id, key.name, frozenset({callers.Scope.SEND}), key.limits)
    permissions = frozenset({callers.Permission.SEND})
    return callers.Caller(account_id, credential.id, callers.Scheme.API_KEY, permissions, key=known)


@pytest.fixture
async def who(ctx: context.Context, account: accounts.Account) -> callers.Caller:
    return await key_of(ctx, account.id)


def batch(*names: str) -> msgspec.Struct:
    recipients = [{"to": f"{name}@example.net", "variables": {"name": name}} for name in names]
    wire = {"from": "shop@example.com", "template": "welcome", "recipients": recipients}
    read: msgspec.Struct = msgspec.convert(wire, send_request.BatchRequest)
    return read


async def ask(ctx: context.Context, who: callers.Caller, *names: str, key: str = "k") -> list[str]:
    accepted = await submit_batch.submit_batch(ctx, who, batch(*names), request_id=REQUEST, key=key)
    return [item["id"] for item in msgspec.json.decode(accepted.response)["results"]]


async def waiting(ctx: context.Context, who: callers.Caller, *names: str) -> stored.Approval:
    with pytest.raises(approval_limit.ApprovalRequired):
        await ask(ctx, who, *names)
    return (await approvals.latest(ctx, who.account_id))[0]


async def sent(ctx: context.Context, account_id: str) -> int:
    return len((await lookup.page(ctx, account_id, lookup.Filters(), limit=50, cursor=None)).messages)


async def actions(ctx: context.Context, account_id: str) -> list[str]:
    entries = await audit_log.page(ctx, account_id, before=None, limit=50)
    return [entry.action for entry in entries if entry.action.startswith("approval.")]


async def test_a_send_above_the_limit_waits_and_is_done_once_when_approved(
    ctx: context.Context, who: callers.Caller
) -> None:
    assert len(await ask(ctx, who, "ada", key="small")) == 1
    one = await waiting(ctx, who, "ada", "grace")
    assert (one.recipients, one.state) == (2, "pending")
    assert (await waiting(ctx, who, "ada", "grace")).id == one.id
    assert len(await approvals.latest(ctx, who.account_id)) == 1
    assert await sent(ctx, who.account_id) == 1
    # Two people click at the same time.
    clicks = [approvals.approve(ctx, who.account_id, one.id) for _ in range(2)]
    done = await asyncio.gather(*clicks, return_exceptions=True)
    assert any(isinstance(result, stored.Approval) for result in done)
    assert await sent(ctx, who.account_id) == 3
    # Repeating the request gives the response of the send.
    assert len(await ask(ctx, who, "ada", "grace")) == 2
    assert await sent(ctx, who.account_id) == 3
    assert await actions(ctx, who.account_id) == ["approval.approved"]
    with pytest.raises(errors.Conflict):
        await approvals.reject(ctx, who.account_id, one.id)


async def test_a_single_message_waits_too(ctx: context.Context, account: accounts.Account) -> None:
    who = await key_of(ctx, account.id, above=0)
    request = send_request.SendRequest(
        sender="shop@example.com", to=("ada@example.net",), template="welcome", variables={"name": "Ada"}
    )
    for _ in range(2):
        with pytest.raises(approval_limit.ApprovalRequired, match="waits for approval in the dashboard"):
            await submit.submit(ctx, who, request, request_id=REQUEST, source=statuses.Source.API, key="k")
    (one,) = await approvals.latest(ctx, account.id)
    await approvals.approve(ctx, account.id, one.id)
    again = await submit.submit(ctx, who, request, request_id=REQUEST, source=statuses.Source.API, key="k")
    assert again.replayed
    with pytest.raises(errors.Forbidden, match="Idempotency-Key"):
        await submit.submit(ctx, who, request, request_id=REQUEST, source=statuses.Source.API, key=None)


async def test_nobody_is_asked_about_what_the_key_may_not_send(ctx: context.Context, who: callers.Caller) -> None:
    to = ("ada@example.net", "bob@example.net")
    request = send_request.SendRequest(sender="shop@example.com", to=to, subject="Hello", text="Not the template")
    with pytest.raises(errors.Forbidden, match="may only send the templates welcome"):
        await submit.submit(ctx, who, request, request_id=REQUEST, source=statuses.Source.API, key="k")
    assert await approvals.latest(ctx, who.account_id) == []


async def test_a_rejected_send_is_refused_for_good(ctx: context.Context, who: callers.Caller) -> None:
    one = await waiting(ctx, who, "ada", "grace")
    await approvals.reject(ctx, who.account_id, one.id)
    with pytest.raises(errors.Forbidden, match="was rejected"):
        await ask(ctx, who, "ada", "grace")
    for decide in (approvals.approve, approvals.reject):
        with pytest.raises(errors.Conflict, match="already approved or rejected"):
            await decide(ctx, who.account_id, one.id)
    assert await sent(ctx, who.account_id) == 0
    assert await actions(ctx, who.account_id) == ["approval.rejected"]


async def test_after_a_day_it_is_too_late_and_after_a_month_forgotten(
    ctx: context.Context, who: callers.Caller, clock: contexts.Clock
) -> None:
    one = await waiting(ctx, who, "ada", "grace")
    clock.pass_seconds(24 * 3600)
    with pytest.raises(errors.Conflict, match="has expired"):
        await approvals.approve(ctx, who.account_id, one.id)
    with pytest.raises(errors.Forbidden, match="not approved in time"):
        await ask(ctx, who, "ada", "grace")
    clock.pass_seconds(30 * 24 * 3600)
    assert (await cleanup.sweep(ctx)).approvals == 1
    assert await approvals.latest(ctx, who.account_id) == []


async def test_another_body_is_not_what_was_approved(ctx: context.Context, who: callers.Caller) -> None:
    one = await waiting(ctx, who, "ada", "grace")
    with pytest.raises(errors.IdempotencyConflict):
        await ask(ctx, who, "eve", "mallory")
    await approvals.approve(ctx, who.account_id, one.id)
    with pytest.raises(errors.IdempotencyConflict):
        await ask(ctx, who, "eve", "mallory")
    assert await sent(ctx, who.account_id) == 2


async def refusals_at_once(
    requests: Sequence[Coroutine[Any, Any, object]], ctx: context.Context, who: callers.Caller
) -> Sequence[object]:
    """What becomes of requests that all look for an earlier one before the first of them is stored."""
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [who.account_id])
        asked = asyncio.gather(*requests, return_exceptions=True)
        await asyncio.sleep(0.05)
    return await asked


async def test_requests_at_once_with_one_key_wait_as_one(
    ctx: context.Context, other_process: context.Context, who: callers.Caller
) -> None:
    refusals = await refusals_at_once([ask(each, who, "ada", "grace") for each in (ctx, other_process) * 3], ctx, who)
    (one,) = await approvals.latest(ctx, who.account_id)
    assert {type(refusal) for refusal in refusals} == {approval_limit.ApprovalRequired}
    assert all(one.id in str(refusal) for refusal in refusals), refusals


async def test_of_requests_at_once_with_one_key_and_other_bodies_the_first_waits(
    ctx: context.Context, other_process: context.Context, who: callers.Caller
) -> None:
    each = zip((ctx, other_process) * 3, ("ada", "bob", "eve", "joe", "kim", "liz"), strict=True)
    refusals = await refusals_at_once([ask(at, who, name, "grace") for at, name in each], ctx, who)
    (one,) = await approvals.latest(ctx, who.account_id)
    (waits,) = [refusal for refusal in refusals if not isinstance(refusal, errors.IdempotencyConflict)]
    assert isinstance(waits, approval_limit.ApprovalRequired)
    assert one.id in waits.message


async def test_approving_checks_what_holds_then(ctx: context.Context, who: callers.Caller) -> None:
    one = await waiting(ctx, who, "ada", "grace")
    assert who.key is not None
    await api_keys.change(ctx, who.account_id, who.key.id, limits={"recipients_per_day": 1})
    await approvals.approve(ctx, who.account_id, one.id)  # one of the two is refused, as without approval
    assert await sent(ctx, who.account_id) == 1
    with pytest.raises(approval_limit.ApprovalRequired):
        await ask(ctx, who, "ada", "grace", key="second")
    (second,) = [each for each in await approvals.latest(ctx, who.account_id) if each.idempotency_key == "second"]
    await api_keys.revoke(ctx, who.account_id, who.key.id)
    with pytest.raises(errors.Conflict, match="was revoked"):
        await approvals.approve(ctx, who.account_id, second.id)
    await approvals.reject(ctx, who.account_id, second.id)


async def crash(ctx: context.Context, account_id: str, approval_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Approve it, as if the process had died between the send and its mark."""

    async def die(*_: object, **__: object) -> bool:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(stored, "decide", die)
        with pytest.raises(ZeroDivisionError):
            await approvals.approve(ctx, account_id, approval_id)


async def test_what_a_crash_left_is_continued(
    ctx: context.Context, who: callers.Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await waiting(ctx, who, "ada", "grace")
    await crash(ctx, who.account_id, one.id, monkeypatch)
    with pytest.raises(errors.Conflict):
        await approvals.reject(ctx, who.account_id, one.id)
    await approvals.approve(ctx, who.account_id, one.id)
    assert await sent(ctx, who.account_id) == 2


async def test_new_requests_that_need_approval_have_a_rate(ctx: context.Context, who: callers.Caller) -> None:
    ctx.rate_limiter.policy = throttle.RateLimit(rate=1, burst=2)
    for key in ("first", "second"):
        with pytest.raises(approval_limit.ApprovalRequired):
            await ask(ctx, who, "ada", "grace", key=key)
    with pytest.raises(errors.RateLimited):
        await ask(ctx, who, "ada", "grace", key="third")
    # To ask for the result is no new request.
    with pytest.raises(approval_limit.ApprovalRequired):
        await ask(ctx, who, "ada", "grace", key="first")


async def test_decided_sends_leave_no_room_for_more_waiting_ones(
    ctx: context.Context, who: callers.Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_limit, "MAX_PENDING", 2)
    for key in ("first", "second"):
        with pytest.raises(approval_limit.ApprovalRequired):
            await ask(ctx, who, "ada", "grace", key=key)
    await approvals.reject(ctx, who.account_id, (await approvals.latest(ctx, who.account_id))[0].id)
    with pytest.raises(approval_limit.ApprovalRequired):
        await ask(ctx, who, "ada", "grace", key="third")
    # The latest two are one that waits and one that is decided; but two wait.
    with pytest.raises(errors.Conflict, match="2 requests of this account wait"):
        await ask(ctx, who, "ada", "grace", key="fourth")
    monkeypatch.setattr(approval_limit, "MAX_BODY_BYTES", 10)
    with pytest.raises(errors.PayloadTooLarge):
        await ask(ctx, who, "ada", "grace", key="fifth")


async def test_a_key_leaves_room_for_others(
    ctx: context.Context, who: callers.Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert who.key is not None
    other = dataclasses.replace(who, key=callers.ApiKey("key_other", "x", who.key.scopes, who.key.limits))
    monkeypatch.setattr(approval_limit, "MAX_PENDING_OF_KEY", 1)
    await waiting(ctx, who, "ada", "grace")
    with pytest.raises(errors.Conflict, match="of this key wait"):
        await ask(ctx, who, "ada", "grace", key="second")
    with pytest.raises(approval_limit.ApprovalRequired):
        await ask(ctx, other, "ada", "grace", key="second")


async def test_counting_and_listing_read_no_content(ctx: context.Context, who: callers.Caller) -> None:
    """A hundred bodies of a megabyte took a quarter of a second of every refused request, in a writing transaction."""
    one = await waiting(ctx, who, "ada", "grace")
    assert one.body == b""
    assert (await approvals.content(ctx, who.account_id, one.id))["template"] == "welcome"


async def test_a_click_that_is_refused_does_not_let_go_of_what_another_is_sending(
    ctx: context.Context, account: accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await waiting(ctx, await key_of(ctx, account.id), "ada", "grace")
    submit_now, goes_on = submit_batch.submit_batch, asyncio.Event()

    async def slow(*arguments: Any, **options: Any) -> object:
        monkeypatch.setattr(submit_batch, "submit_batch", refused)
        await goes_on.wait()
        return await submit_now(*arguments, **options)

    async def refused(*_: object, **__: object) -> object:
        raise errors.RateLimited("wait", retry_after=1)

    monkeypatch.setattr(submit_batch, "submit_batch", slow)
    first = asyncio.create_task(approvals.approve(ctx, account.id, one.id))
    while submit_batch.submit_batch is not refused:
        await asyncio.sleep(0.01)
    with pytest.raises(errors.RateLimited):
        await approvals.approve(ctx, account.id, one.id)
    with pytest.raises(errors.Conflict, match="already approved or rejected"):
        await approvals.reject(ctx, account.id, one.id)
    goes_on.set()
    await first
    assert await sent(ctx, account.id) == 2
    assert [each.state for each in await approvals.latest(ctx, account.id)] == ["approved"]


async def test_what_a_crash_left_is_not_sent_twice_when_its_idempotency_key_is_gone(
    ctx: context.Context, who: callers.Caller, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await waiting(ctx, who, "ada", "grace")
    await crash(ctx, who.account_id, one.id, monkeypatch)
    clock.pass_seconds(25 * 3600)
    await cleanup.sweep(ctx)
    with pytest.raises(errors.Conflict, match="has expired"):
        await approvals.approve(ctx, who.account_id, one.id)
    assert await sent(ctx, who.account_id) == 2


async def test_a_template_that_was_changed_after_the_request_is_not_what_was_approved(
    ctx: context.Context, account: accounts.Account, clock: contexts.Clock
) -> None:
    one = await waiting(ctx, await key_of(ctx, account.id), "ada", "grace")
    clock.pass_seconds(1)
    await templates.put(ctx, account.id, "welcome", subject="Your password, {{name}}", text="x", html=None)
    with pytest.raises(errors.Conflict, match="template welcome was changed"):
        await approvals.approve(ctx, account.id, one.id)
    assert await sent(ctx, account.id) == 0
    await approvals.reject(ctx, account.id, one.id)


async def test_what_was_asked_for_is_kept_until_the_decision_only(
    ctx: context.Context, who: callers.Caller, clock: contexts.Clock
) -> None:
    """A rejected send may hold a stranger's secrets, and rejected ones without end would fill the disk."""
    for decide in (approvals.approve, approvals.reject):
        with pytest.raises(approval_limit.ApprovalRequired):
            await ask(ctx, who, "ada", "grace", key=decide.__name__)
        (one,) = [one for one in await approvals.latest(ctx, who.account_id) if one.state == "pending"]
        assert await approvals.content(ctx, who.account_id, one.id) != {}
        await decide(ctx, who.account_id, one.id)
        assert await approvals.content(ctx, who.account_id, one.id) == {}
    await waiting(ctx, who, "ada", "grace")
    (one,) = [one for one in await approvals.latest(ctx, who.account_id) if one.state == "pending"]
    assert (await cleanup.sweep(ctx)).approval_bodies == 0
    clock.pass_seconds(24 * 3600 + 1)
    assert (await cleanup.sweep(ctx)).approval_bodies == 1
    assert await approvals.content(ctx, who.account_id, one.id) == {}
    with pytest.raises(errors.Forbidden, match="not approved in time"):
        await ask(ctx, who, "ada", "grace")
    assert (await cleanup.sweep(ctx)).approval_bodies == 0
