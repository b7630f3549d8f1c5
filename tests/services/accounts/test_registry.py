"""Accounts are made, found, listed, suspended and resumed; a suspension is felt at once."""

import pytest

from postroad import errors
from postroad.services import context
from postroad.services.accounts import registry as accounts
from postroad.storage import access_version
from tests import accepted_mail, contexts

UNKNOWN_IDS = ["acc_" + "0" * 28, "", "acc_", "nothing", "acc_" + "0" * 27 + "\0", "cred_" + "0" * 28]


async def test_a_new_account_is_active_and_has_no_credits(ctx: context.Context, clock: contexts.Clock) -> None:
    made = await accounts.create(ctx, "Shop")
    assert made == await accounts.find(ctx, made.id)
    assert (made.name, made.status, made.available, made.reserved) == ("Shop", "active", 0, 0)
    assert made.created_at == clock.now


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "x" * 101])
async def test_a_name_is_one_plain_line(ctx: context.Context, name: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^name: "):
        await accounts.create(ctx, name)


@pytest.mark.parametrize("account_id", UNKNOWN_IDS)
async def test_an_unknown_account_is_not_found(ctx: context.Context, account_id: str) -> None:
    for attempt in (
        accounts.find(ctx, account_id),
        accounts.suspend(ctx, account_id, "spam"),
        accounts.resume(ctx, account_id),
    ):
        with pytest.raises(errors.NotFound):
            await attempt


async def test_accounts_of_one_name_are_found_as_far_as_they_are_asked_for(ctx: context.Context) -> None:
    made = [await accounts.create(ctx, name) for name in ("Shop", "Shop", "Bank")]
    assert {one.id for one in await accounts.by_name(ctx, "Shop", limit=9)} == {one.id for one in made[:2]}
    assert len(await accounts.by_name(ctx, "Shop", limit=1)) == 1
    assert await accounts.by_name(ctx, "shop", limit=9) == []


async def test_accounts_are_listed_in_parts(ctx: context.Context, clock: contexts.Clock) -> None:
    made = []
    for number in range(5):
        made.append(await accounts.create(ctx, f"Shop {number}"))
        clock.pass_seconds(1)
    first = await accounts.page(ctx, "", 3)
    assert first + await accounts.page(ctx, first[-1].id, 3) == made


async def test_a_suspended_account_does_not_send_until_it_is_resumed(ctx: context.Context) -> None:
    account = await accounts.create(ctx, "Shop")
    await accepted_mail.allow_sending(ctx, account.id)
    suspended = await accounts.suspend(ctx, account.id, "too many bounces")
    assert suspended == await accounts.find(ctx, account.id)
    assert (suspended.status, suspended.suspended_reason) == ("suspended", "too many bounces")
    with pytest.raises(errors.AccountSuspended, match="too many bounces"):
        await accepted_mail.accept(ctx, account.id)
    resumed = await accounts.resume(ctx, account.id)
    assert (resumed.status, resumed.suspended_reason) == ("active", None)
    assert await accepted_mail.accept(ctx, account.id)


async def test_the_reason_of_a_suspension_can_be_changed(ctx: context.Context) -> None:
    account = await accounts.create(ctx, "Shop")
    await accounts.suspend(ctx, account.id, "first")
    assert (await accounts.suspend(ctx, account.id, "second")).suspended_reason == "second"
    with pytest.raises(errors.InvalidRequest, match=r"^reason: "):
        await accounts.suspend(ctx, account.id, "a\nb")
    assert (await accounts.find(ctx, account.id)).suspended_reason == "second"


async def test_every_process_hears_of_a_suspension_and_of_its_end(ctx: context.Context) -> None:
    account = await accounts.create(ctx, "Shop")
    before = await _version(ctx)
    await accounts.suspend(ctx, account.id, "spam")
    assert await _version(ctx) == before + 1
    await accounts.resume(ctx, account.id)
    assert await _version(ctx) == before + 2


async def _version(ctx: context.Context) -> int:
    async with ctx.store.reading() as tx:
        return await access_version.version(tx)
