"""Sending a message again: who gets it, what is in it, and when it is refused."""

import dataclasses
import re

import msgspec
import pytest

from postroad import context, errors
from postroad.mail.accept import queue_limit, transaction
from postroad.model.bounces import disposition
from postroad.model.mail import send_request
from postroad.model.people import callers
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import lookup, resend
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import suppressions as stored_suppressions
from postroad.storage.operations import retention
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, contexts
from tests.services import claimed_mail

REQUEST = "req_" + "2" * 28
VERDICTS = {
    "ada@example.net": disposition.Verdict.DELIVERED,
    "bob@example.net": disposition.Verdict.BOUNCED,
    "cee@example.net": disposition.Verdict.FAILED,
}


async def ended(ctx: context.Context, account_id: str, *to: str, **fields: object) -> str:
    """A message whose recipients have ended, each in its own way."""
    message_id, claims = await claimed_mail.accepted(ctx, account_id, *(to or VERDICTS), **fields)
    for claim in claims:
        verdict = VERDICTS[claim.email_key]
        await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, verdict, recipient_count=len(claims))])
    return message_id


async def send_again(
    ctx: context.Context,
    account_id: str,
    message_id: str,
    to: resend.Recipients = resend.Recipients.FAILED,
    *,
    recipient_id: str | None = None,
    key: str = "once",
    who: callers.Caller | None = None,
) -> transaction.Accepted:
    who = who or accepted_mail.caller_of(account_id)
    return await resend.resend(ctx, who, message_id, to=to, recipient_id=recipient_id, request_id=REQUEST, key=key)


async def reached(ctx: context.Context, account_id: str, message_id: str) -> list[str]:
    return [one.email for one in (await lookup.find(ctx, account_id, message_id))[1]]


async def test_those_that_failed_get_the_same_content_as_a_new_message_that_names_the_old_one(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    first = await ended(
        ctx,
        account.id,
        sender="Shop <shop@example.com>",
        bcc=("bob@example.net",),
        reply_to="help@example.com",
        headers={"X-Order": "7"},
        tags=("orders",),
        metadata={"order": "7"},
        attachments=(send_request.Attachment("a.txt", "eHg=", "text/plain", None),),
    )
    before = (await accounts.find(ctx, account.id)).available
    clock.pass_seconds(3600)
    accepted = await send_again(ctx, account.id, first)
    receipt = msgspec.json.decode(accepted.response)
    assert receipt == {
        "id": accepted.message_id,
        "status": "queued",
        "source": "api",
        "request_id": REQUEST,
        "from": "Shop <shop@example.com>",
        "to": ["ada@example.net", "bob@example.net", "cee@example.net"],
        "cc": [],
        "bcc": ["bob@example.net"],
        "reply_to": "help@example.com",
        "subject": "Your order",
        "billing_status": "reserved",
        "recipient_count": 2,
        "credits_reserved": 2,
        "headers": {"X-Order": "7"},
        "tags": ["orders"],
        "attachments": [{"filename": "a.txt", "content_type": "text/plain", "size": 2}],
        "metadata": {"order": "7"},
        "resend_of": first,
    }
    assert await reached(ctx, account.id, accepted.message_id) == ["bob@example.net", "cee@example.net"]
    assert (await accounts.find(ctx, account.id)).available == before - 2
    found = await lookup.details(ctx, account.id, first)
    assert (found.resent_as, found.message.status) == ([accepted.message_id], "partial")
    assert (await lookup.details(ctx, account.id, accepted.message_id)).receipt.resend_of == first

    old = (await lookup.raw(ctx, account.id, first)).decode()
    new = (await lookup.raw(ctx, account.id, accepted.message_id)).decode()
    changed = [line for line in new.split("\r\n") if line not in old.split("\r\n")]
    assert changed == [f"Message-ID: <{accepted.message_id}@example.com>", "Date: Fri, 15 Jan 2027 09:00:00 +0000"]
    assert new.count("Message-ID:") == new.count("Date:") == 1
    assert len(old.split("\r\n")) == len(new.split("\r\n"))


async def test_complaints_about_it_name_the_new_message(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    ctx = contexts.with_settings(ctx, "inbound", listen="127.0.0.1:25")
    ctx = contexts.with_settings(ctx, "delivery", return_path_domain="bounces.example.com")
    first = await ended(ctx, account.id, "bob@example.net")
    clock.pass_seconds(3600)
    second = (await send_again(ctx, account.id, first)).message_id
    for message_id in (first, second):
        content = (await lookup.raw(ctx, account.id, message_id)).decode()
        assert re.findall("CFBL-Address: bounces\\+(.{28})", content) == [message_id.removeprefix("em_")]


async def test_one_of_the_sender_stays(ctx: context.Context, account: stored_accounts.Account) -> None:
    ctx = contexts.with_settings(ctx, "inbound", listen="127.0.0.1:25")
    ctx = contexts.with_settings(ctx, "delivery", return_path_domain="bounces.example.com")
    own = {"CFBL-Address": "fbl@example.com; report=arf"}
    first = await ended(ctx, account.id, "bob@example.net", headers=own)
    second = (await send_again(ctx, account.id, first)).message_id
    content = (await lookup.raw(ctx, account.id, second)).decode()
    assert re.findall("(?m)^CFBL-Address: (.*)\\r$", content) == ["fbl@example.com; report=arf"]


async def test_the_same_key_sends_once_whatever_changed_meanwhile(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    first = await ended(ctx, account.id, "bob@example.net")
    accepted = await send_again(ctx, account.id, first)
    source = stored_suppressions.Source.ACCOUNT
    await suppressions.add(ctx, account.id, "bob@example.net", reason="asked", source=source)
    replayed = await send_again(ctx, account.id, first)
    assert (replayed.message_id, replayed.response, replayed.replayed) == (accepted.message_id, accepted.response, True)
    with pytest.raises(errors.IdempotencyConflict):
        await send_again(ctx, account.id, first, resend.Recipients.ALL)
    assert (await lookup.details(ctx, account.id, first)).resent_as == [accepted.message_id]


async def test_all_of_them_or_one_can_get_it_again(ctx: context.Context, account: stored_accounts.Account) -> None:
    first = await ended(ctx, account.id)
    again = await send_again(ctx, account.id, first, resend.Recipients.ALL)
    assert await reached(ctx, account.id, again.message_id) == list(VERDICTS)
    (delivered, *_) = (await lookup.find(ctx, account.id, first))[1]
    one = await send_again(ctx, account.id, first, recipient_id=delivered.id, key="one")
    assert await reached(ctx, account.id, one.message_id) == ["ada@example.net"]
    with pytest.raises(errors.NotFound, match="recipient_id"):
        await send_again(ctx, account.id, first, recipient_id="rcp_" + "0" * 28, key="none")


async def test_suppressed_recipients_are_left_out_and_refused_when_nobody_is_left(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    first = await ended(ctx, account.id)
    source = stored_suppressions.Source.ACCOUNT
    await suppressions.add(ctx, account.id, "bob@example.net", reason="asked", source=source)
    again = await send_again(ctx, account.id, first)
    assert await reached(ctx, account.id, again.message_id) == ["cee@example.net"]
    await suppressions.add(ctx, account.id, "cee@example.net", reason="asked", source=source)
    with pytest.raises(errors.Conflict, match=r"^bob@example\.net, cee@example\.net: on the suppression list"):
        await send_again(ctx, account.id, first, key="two")


async def test_what_is_on_its_way_is_not_sent_twice(ctx: context.Context, account: stored_accounts.Account) -> None:
    first, (claim, _) = await claimed_mail.accepted(ctx, account.id, "ada@example.net", "bob@example.net")
    with pytest.raises(errors.Conflict, match="2 of the recipients are still being delivered"):
        await send_again(ctx, account.id, first, resend.Recipients.ALL)
    delivered = claimed_mail.outcome(ctx, claim, disposition.Verdict.DELIVERED, recipient_count=2)
    await ctx.outcome_commits.submit([delivered])
    with pytest.raises(errors.Conflict, match="no recipient of this message has failed"):
        await send_again(ctx, account.id, first)
    with pytest.raises(errors.Conflict, match="1 of the recipients is still being delivered"):
        await send_again(ctx, account.id, first, resend.Recipients.ALL)


async def test_without_its_content_it_is_refused_and_nothing_is_charged(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    first = await ended(ctx, account.id, "bob@example.net")
    before = (await accounts.find(ctx, account.id)).available
    async with ctx.store.transaction() as tx:
        assert await retention.remove_bodies(tx, ended_before=ctx.clock()) == 1
    with pytest.raises(errors.Conflict, match="no longer retained"):
        await send_again(ctx, account.id, first)
    assert (await accounts.find(ctx, account.id)).available == before


async def test_a_test_message_stays_one_and_an_expiry_counts_from_now(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    first = await accepted_mail.accept(ctx, shop, is_test=True, expires_in=600)
    (claim,) = await claimed_mail.claim_all(ctx, "w1")
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, disposition.Verdict.BOUNCED)])
    clock.pass_seconds(3600)
    again = await send_again(ctx, shop, first)
    found = (await lookup.find(ctx, shop, again.message_id))[0]
    assert (found.is_test, found.credits_reserved) == (1, 0)
    assert found.expires_at == ctx.clock() + 600 * contexts.SECOND


async def test_the_limits_of_a_key_hold(ctx: context.Context, account: stored_accounts.Account) -> None:
    first = await ended(ctx, account.id)
    who = accepted_mail.caller_of(account.id)
    for limits, told in (
        (callers.KeyLimits(templates=("welcome",)), "may only send the templates welcome"),
        (callers.KeyLimits(domains=("other.example",)), "may not send from example.com"),
        (callers.KeyLimits(approval_above=1), "needs approval"),
    ):
        key = callers.ApiKey("key_1", "shop", frozenset({callers.Scope.SEND}), limits)
        with pytest.raises(errors.Forbidden, match=told):
            await send_again(ctx, account.id, first, who=dataclasses.replace(who, key=key))


async def test_credits_and_the_account_are_checked_as_for_any_message(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    first = await ended(ctx, account.id)
    left = (await accounts.find(ctx, account.id)).available
    await accepted_mail.accept(ctx, account.id, to=tuple(f"x{number}@example.net" for number in range(left - 1)))
    with pytest.raises(errors.InsufficientCredits):
        await send_again(ctx, account.id, first)


async def test_it_counts_towards_the_storage_quota(ctx: context.Context, account: stored_accounts.Account) -> None:
    mark = contexts.concrete(ctx.queue_limit, queue_limit.QueueLimit)
    mark._refresh_at = mark._refresh_near_at = float("inf")
    first = await ended(ctx, account.id, "bob@example.net", text="x" * 700_000)
    quotas = msgspec.structs.replace(ctx.settings.quotas, stored_megabytes=2)
    msgspec.structs.force_setattr(ctx.settings, "quotas", quotas)
    await send_again(ctx, account.id, first)
    with pytest.raises(errors.RateLimited, match=r"uses 1\.4 of 2 MiB"):
        await send_again(ctx, account.id, first, key="another")
