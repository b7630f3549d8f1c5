"""What a test key sends is accepted like live mail, and costs and counts nothing."""

import json
from typing import Any

import pytest

from postroad import context, errors
from postroad.mail.accept import submit, transaction
from postroad.model.mail import send_request, statuses
from postroad.model.mail.simulated_outcomes import ProviderBehaviour, SimulatedProvider
from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import domain_registry as domains
from postroad.storage.mail import domains as warmups
from postroad.storage.mail import mail_counts, messages, queue
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail


async def send(
    ctx: context.Context, account_id: str, *, is_test: bool, key: str | None = None, **fields: Any
) -> transaction.Accepted:
    given = {"sender": "shop@example.com", "to": "ada@gmail.com", "subject": "Hi", "text": "x", **fields}
    request = send_request.SendRequest(**given)
    who = accepted_mail.caller_of(account_id, is_test=is_test)
    return await submit.submit(ctx, who, request, request_id="req_1", source=statuses.Source.API, key=key)


async def test_a_test_message_is_marked_and_free_and_no_warm_up(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    # Neither credits nor a warm domain.
    await domains.add(ctx, account.id, "example.com", verified=True)
    accepted = await send(ctx, account.id, is_test=True)
    receipt = json.loads(accepted.response)
    assert (receipt["test"], receipt["credits_reserved"], receipt["status"]) == (True, 0, "queued")
    found = await accounts.find(ctx, account.id)
    assert (found.available, found.reserved) == (0, 0)
    async with ctx.store.reading() as tx:
        stored = await messages.by_id(tx, account.id, accepted.message_id)
        assert stored is not None
        assert stored.is_test == 1
        assert await warmups.warmups(tx, {(account.id, "example.com")}) == {}
        hour = mail_counts.hour_of(ctx.clock())
        assert await mail_counts.hourly_sums(tx, account.id, from_hour=hour, until_hour=hour + 1, hours=1) == []
    with pytest.raises(errors.InsufficientCredits):
        await send(ctx, account.id, is_test=False)


async def test_live_and_test_mail_may_use_the_same_idempotency_key(ctx: context.Context, sender: str) -> None:
    live = await send(ctx, sender, is_test=False, key="order-1")
    test = await send(ctx, sender, is_test=True, key="order-1", text="another body")
    again = await send(ctx, sender, is_test=True, key="order-1", text="another body")
    assert len({live.message_id, test.message_id}) == 2
    assert (again.message_id, again.response, again.replayed) == (test.message_id, test.response, True)
    with pytest.raises(errors.IdempotencyConflict):
        await send(ctx, sender, is_test=True, key="order-1", text="x")


async def test_a_test_key_is_held_to_the_same_rules(ctx: context.Context, account: stored_accounts.Account) -> None:
    with pytest.raises(errors.Forbidden, match=r"example\.com"):
        await send(ctx, account.id, is_test=True)
    await domains.add(ctx, account.id, "example.com", verified=True)
    await accounts.suspend(ctx, account.id, "abuse")
    with pytest.raises(errors.AccountSuspended):
        await send(ctx, account.id, is_test=True)


async def test_only_a_test_key_may_simulate_and_what_it_simulates_is_part_of_the_body(
    ctx: context.Context, sender: str
) -> None:
    limited = send_request.Simulate(SimulatedProvider.GOOGLE, ProviderBehaviour.RATE_LIMITED)
    with pytest.raises(errors.InvalidRequest, match=r"^simulate: only allowed with a test key .* really be sent$"):
        await send(ctx, sender, is_test=False, simulate=limited)
    found = await accounts.find(ctx, sender)
    assert (found.available, found.reserved) == (1000, 0)
    first = await send(ctx, sender, is_test=True, key="1", simulate=limited)
    again = await send(ctx, sender, is_test=True, key="1", simulate=limited)
    assert (again.message_id, again.replayed) == (first.message_id, True)
    for other in (None, send_request.Simulate(SimulatedProvider.YAHOO, ProviderBehaviour.RATE_LIMITED)):
        with pytest.raises(errors.IdempotencyConflict):
            await send(ctx, sender, is_test=True, key="1", simulate=other)
    async with ctx.store.reading() as tx:
        assert await queue.queue_keys(tx, after="", limit=9) == [f"simulator.invalid {sender} !google/rate_limited"]
