"""Logins that wait for their second factor: for five minutes, once, and only as they were."""

import pytest

from postroad import context, errors
from postroad.services.operations import cleanup
from postroad.services.people import logins, password_links, second_factors
from postroad.services.people import users as account_users
from postroad.storage.people import users
from tests.contexts import Clock
from tests.services.audit_entries import ADDRESS
from tests.services.people import authenticator
from tests.storage import samples


@pytest.fixture
async def token(ctx: context.Context, owner: users.User) -> str:
    return await second_factors.begin_pending(ctx, await authenticator.login_of(ctx, owner), methods="password")


async def refused(ctx: context.Context, token: str | None) -> None:
    for attempt in (second_factors.find_pending(ctx, token), second_factors.consume_pending(ctx, token)):
        with pytest.raises(errors.Unauthorized, match="log in again"):
            await attempt


async def test_a_pending_login_is_completed_once(ctx: context.Context, owner: users.User, token: str) -> None:
    for _ in range(2):
        assert (await second_factors.find_pending(ctx, token)).login.id == owner.login_id
    found = await second_factors.consume_pending(ctx, token)
    assert (found.login.id, found.methods, found.invitation) == (owner.login_id, "password", None)
    await refused(ctx, token)


async def test_forged_and_missing_tokens_are_refused(ctx: context.Context, token: str) -> None:
    for forged in (None, "", "x", token[:-1], token[:-1] + "!", "0" * 43, "\ud800"):
        await refused(ctx, forged)
    await second_factors.consume_pending(ctx, token)


async def test_it_lasts_for_five_minutes(ctx: context.Context, token: str, clock: Clock) -> None:
    clock.pass_seconds(299)
    await second_factors.find_pending(ctx, token)
    clock.pass_seconds(1)
    with pytest.raises(errors.Unauthorized):
        await second_factors.find_pending(ctx, token)
    swept = await cleanup.sweep(ctx)
    assert swept.pending_logins == 1
    assert await samples.count(ctx.store, "pending_logins") == 0


async def test_a_new_password_ends_it(ctx: context.Context, owner: users.User, token: str) -> None:
    made = await account_users.create_password_link(ctx, owner.account_id, owner.id)
    acting = logins.acting(ctx, client_address=ADDRESS)
    await password_links.redeem(acting, made.token, password="another good one")
    await refused(ctx, token)


async def test_the_database_does_not_have_the_token(ctx: context.Context, token: str) -> None:
    assert len(token) == 43
    async with ctx.store.reading() as tx:
        (row,) = await tx.fetch_composed("SELECT token_hash FROM pending_logins")
    assert token.encode() not in bytes(row[0])
