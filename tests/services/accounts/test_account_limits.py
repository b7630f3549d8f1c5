"""Limits that an operator sets for an account: stored, told by its audit log, and used by the next request."""

import pytest

from postroad import context, errors
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.people import api_keys, authentication, credentials
from postroad.storage.people import accounts
from tests import contexts


async def test_limits_are_stored_and_told_by_the_audit_log(
    ctx: context.Context, clock: contexts.Clock, account: accounts.Account
) -> None:
    await account_registry.change_limits(ctx, account.id, request_rate=20, recipients_per_day=5_000)
    await account_registry.change_limits(ctx, account.id, request_rate=20, recipients_per_day=5_000)
    found = await account_registry.find(ctx, account.id)
    assert (found.request_rate, found.recipients_per_day) == (20, 5_000)
    clock.pass_seconds(1)
    await account_registry.change_limits(ctx, account.id, request_rate=None, recipients_per_day=None)
    found = await account_registry.find(ctx, account.id)
    assert (found.request_rate, found.recipients_per_day) == (None, None)
    written = await audit_log.page(ctx, account.id, before=None, limit=9)
    assert [audit_log.text(one) for one in written if one.action == "account.limits_changed"] == [
        "changed the limits of the account Shop (the default rate and no daily limit)",
        ("changed the limits of the account Shop (20 sends per second and 5,000 recipients per day)"),
    ]


@pytest.mark.parametrize("amount", [0, -1, 1_000_000_001])
async def test_impossible_limits_are_refused(ctx: context.Context, account: accounts.Account, amount: int) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^request_rate: must be from 1 to 1000000$"):
        await account_registry.change_limits(ctx, account.id, request_rate=amount, recipients_per_day=None)
    with pytest.raises(errors.InvalidRequest, match=r"^recipients_per_day: must be from 1 to 1000000000$"):
        await account_registry.change_limits(ctx, account.id, request_rate=None, recipients_per_day=amount)


async def test_callers_know_the_rate_of_their_account_at_once(ctx: context.Context, account: accounts.Account) -> None:
    credential, password = await credentials.create(ctx, account.id, "shop")
    _, secret = await api_keys.create(ctx, account.id, name="shop", credential_id=None, scopes=frozenset({"send"}))

    async def rates() -> list[int | None]:
        with_key = await authentication.authenticate(ctx, f"Bearer {secret}", client_address="192.0.2.1")
        with_password = await authentication.authenticate_password(
            ctx, credential.username, password, client_address="192.0.2.1"
        )
        return [with_key.request_rate, (await authentication.renew(ctx, with_password)).request_rate]

    assert await rates() == [None, None]
    await account_registry.change_limits(ctx, account.id, request_rate=7, recipients_per_day=None)
    assert await rates() == [7, 7]
    await account_registry.change_limits(ctx, account.id, request_rate=None, recipients_per_day=None)
    assert await rates() == [None, None]
