"""Accounts are made, found, listed, suspended and resumed; a suspension is felt at once."""

import pytest

from postroad import context, errors
from postroad.services.accounts import account_registry as accounts
from postroad.storage.people import credentials
from tests import accepted_mail, contexts
from tests.services import audit_entries


async def test_a_new_account_is_active_and_has_no_credits(ctx: context.Context, clock: contexts.Clock) -> None:
    made = await accounts.create(ctx, "Shop")
    assert made == await accounts.find(ctx, made.id)
    assert (made.name, made.status, made.available, made.reserved) == ("Shop", "active", 0, 0)
    assert made.created_at == clock.now
    for name in ("", "a\nb", "a\0b", "x" * 101):
        with pytest.raises(errors.InvalidRequest, match=r"^name: "):
            await accounts.create(ctx, name)
    for unknown in ("acc_" + "0" * 28, "", "acc_", "nothing", "acc_" + "0" * 27 + "\0", "cred_" + "0" * 28):
        for attempt in (
            accounts.find(ctx, unknown),
            accounts.suspend(ctx, unknown, "spam"),
            accounts.resume(ctx, unknown),
        ):
            with pytest.raises(errors.NotFound):
                await attempt


async def test_a_name_is_unique_whatever_its_case(ctx: context.Context) -> None:
    shop, bank = await accounts.create(ctx, "Straße"), await accounts.create(ctx, "Bank")
    for name in ("Straße", "STRASSE", "strasse", " Straße ", "Stra\u200bße", "Stra\u00adße"):
        with pytest.raises(errors.Conflict, match=r"^name: another account is named"):
            await accounts.create(ctx, name)
        with pytest.raises(errors.Conflict, match=r"^name: another account is named"):
            await accounts.rename(ctx, bank.id, name)
        assert await accounts.by_name(ctx, name) == shop
    assert (await accounts.rename(ctx, shop.id, "STRASSE")).name == "STRASSE"
    assert (await accounts.rename(ctx, shop.id, "Road")).name == (await accounts.find(ctx, shop.id)).name == "Road"
    assert (await accounts.rename(ctx, bank.id, "straße")).name == "straße"
    changes = [change for change in await audit_entries.summaries(ctx, bank.id) if change[0] == "account.renamed"]
    assert changes == [("account.renamed", "Bank", "now straße")]
    with pytest.raises(errors.InvalidRequest, match=r"^name: "):
        await accounts.rename(ctx, bank.id, "")
    with pytest.raises(errors.InvalidRequest, match=r"^name: looks like the id of an account; choose another name$"):
        await accounts.rename(ctx, bank.id, shop.id)


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
    before = await _version(ctx)
    suspended = await accounts.suspend(ctx, account.id, "too many bounces")
    assert await _version(ctx) == before + 1  # so every process hears of it
    assert suspended == await accounts.find(ctx, account.id)
    assert (suspended.status, suspended.suspended_reason) == ("suspended", "too many bounces")
    with pytest.raises(errors.InvalidRequest, match=r"^reason: "):
        await accounts.suspend(ctx, account.id, "a\nb")
    assert (await accounts.suspend(ctx, account.id, "too many complaints")).suspended_reason == "too many complaints"
    with pytest.raises(errors.AccountSuspended, match="too many complaints"):
        await accepted_mail.accept(ctx, account.id)
    before = await _version(ctx)
    resumed = await accounts.resume(ctx, account.id)
    assert await _version(ctx) == before + 1
    assert (resumed.status, resumed.suspended_reason) == ("active", None)
    assert await accepted_mail.accept(ctx, account.id)


async def _version(ctx: context.Context) -> int:
    async with ctx.store.reading() as tx:
        return await credentials.access_version(tx)
