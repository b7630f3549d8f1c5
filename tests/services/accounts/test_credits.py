"""Credits are given with a ledger entry, and the ledger always sums to the balances."""

import pytest

from postroad import context, errors
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.operations import operator_jobs
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, contexts


async def test_given_credits_are_available_and_in_the_ledger(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    changed = await credits.add(ctx, account.id, 250, "welcome")
    assert (changed.available, changed.reserved) == (250, 0)
    assert changed == await accounts.find(ctx, account.id)
    (entry,) = await credits.ledger(ctx, account.id, None, 10)
    assert (entry.kind, entry.available, entry.reserved, entry.note) == ("grant", 250, 0, "welcome")
    assert entry.created_at == clock.now


async def test_the_ledger_sums_to_the_balances_after_mail(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    await accepted_mail.allow_sending(ctx, account.id, amount=10)
    message_id = await accepted_mail.accept(ctx, account.id, to=("a@example.net", "b@example.net"))
    now = await accounts.find(ctx, account.id)
    assert (now.available, now.reserved) == (8, 2)
    entries = await credits.ledger(ctx, account.id, None, 10)
    assert sum(entry.available for entry in entries) == 8
    assert sum(entry.reserved for entry in entries) == 2
    assert [entry.message_id for entry in entries if entry.kind == "reserve"] == [message_id]
    assert (await operator_jobs.check_consistency(ctx)).findings == []


@pytest.mark.parametrize("amount", [0, -1, -(2**63), (2**53 - 1) + 1, 2**63, 2**100])
async def test_an_impossible_amount_changes_nothing(
    ctx: context.Context, account: stored_accounts.Account, amount: int
) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^amount: "):
        await credits.add(ctx, account.id, amount, None)
    assert (await accounts.find(ctx, account.id)).available == 0
    assert await credits.ledger(ctx, account.id, None, 10) == []


async def test_a_balance_never_leaves_the_exact_numbers(ctx: context.Context, account: stored_accounts.Account) -> None:
    await credits.add(ctx, account.id, 2**53 - 1, None)
    with pytest.raises(errors.InvalidRequest, match=r"^amount: "):
        await credits.add(ctx, account.id, 1, None)


@pytest.mark.parametrize("note", ["", "a\nb", "a\0", "x" * 201])
async def test_a_note_is_one_plain_line(ctx: context.Context, account: stored_accounts.Account, note: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^note: "):
        await credits.add(ctx, account.id, 1, note)


@pytest.mark.parametrize("account_id", ["acc_" + "0" * 28, "", "acc_\0"])
async def test_an_unknown_account_gets_nothing(ctx: context.Context, account_id: str) -> None:
    with pytest.raises(errors.NotFound):
        await credits.add(ctx, account_id, 1, None)


async def test_the_ledger_is_read_in_parts_newest_first(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    for amount in (1, 2, 3, 4, 5):
        await credits.add(ctx, account.id, amount, None)
        clock.pass_seconds(1)
    first = await credits.ledger(ctx, account.id, None, 2)
    rest = await credits.ledger(ctx, account.id, first[-1].id, 10)
    assert [entry.available for entry in first + rest] == [5, 4, 3, 2, 1]


async def test_a_ledger_shows_nothing_of_another_account(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    other = await accounts.create(ctx, "Other")
    await credits.add(ctx, other.id, 7, "secret")
    (foreign,) = await credits.ledger(ctx, other.id, None, 10)
    assert await credits.ledger(ctx, account.id, None, 10) == []
    assert await credits.ledger(ctx, account.id, foreign.id, 10) == []


@pytest.mark.parametrize("before", ["", "led_", "em_" + "0" * 28, "led_\0", "' OR 1=1"])
async def test_a_tampered_cursor_is_refused(
    ctx: context.Context, account: stored_accounts.Account, before: str
) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^before: "):
        await credits.ledger(ctx, account.id, before, 10)
