"""Users: created once for each address, found in their account only, disabled and enabled."""

import functools

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.services.accounts import account_registry as accounts
from postroad.services.people import logins
from postroad.services.people import users as account_users
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users
from tests.contexts import PASSWORD, Clock
from tests.services.people.test_schemes import HERE, bearer, who_is


async def log_in(ctx: context.Context, email: str, password: str) -> logins.LoggedIn:
    return await logins.log_in(ctx, email, password, client_address=HERE)


async def test_a_user_logs_in_with_the_initial_password(ctx: context.Context, account: stored_accounts.Account) -> None:
    user, password = await account_users.create(
        ctx, account.id, email="Jo@Example.com", password=PASSWORD, role=callers.Role.DEVELOPER
    )
    assert (user.email, user.role, password) == ("Jo@example.com", "developer", PASSWORD)
    assert (await log_in(ctx, "jo@example.com", PASSWORD)).user == user


async def test_a_password_is_generated_when_none_is_given(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    made = [
        await account_users.create(ctx, account.id, email=f"{name}@example.com", password=None, role=callers.Role.OWNER)
        for name in ("jo", "al")
    ]
    assert made[0][1] != made[1][1]
    for user, password in made:
        assert len(password) >= 20
        assert (await log_in(ctx, user.email, password)).user.id == user.id


async def test_one_address_is_one_user_in_an_account_and_another_one_in_the_next(
    ctx: context.Context, account: stored_accounts.Account, owner: users.User
) -> None:
    for email in ("owner@example.com", "OWNER@EXAMPLE.COM"):
        with pytest.raises(errors.Conflict, match="email: this address already belongs to a user of this account"):
            await account_users.create(ctx, account.id, email=email, password=PASSWORD, role=callers.Role.OWNER)
    assert [user.id for user in await account_users.of_account(ctx, account.id)] == [owner.id]
    other = await accounts.create(ctx, "Other")
    made, _ = await account_users.create(ctx, other.id, email=owner.email, password=None, role=callers.Role.OWNER)
    first, second = sorted([account.id, other.id])
    with pytest.raises(errors.Conflict, match=f"several accounts: {first}, {second}; name the account"):
        await account_users.by_email(ctx, owner.email)
    assert await account_users.by_email(ctx, owner.email, account_id=other.id) == made


async def test_a_user_is_found_by_every_spelling_of_their_address(ctx: context.Context, owner: users.User) -> None:
    for email in ("owner@example.com", "OWNER@Example.com"):
        assert await account_users.by_email(ctx, email) == owner
    for email in ("nobody@example.com", "owner", ""):
        assert await account_users.by_email(ctx, email) is None


async def test_an_email_is_one_plain_address(ctx: context.Context, account: stored_accounts.Account) -> None:
    for email in ("", "jo", "jo@", "jo@example.com\r\nBcc: x@y.z", "Jo <jo@example.com>", "a@b.c, d@e.f", " jo@b.com"):
        with pytest.raises(errors.InvalidRequest, match="email:"):
            await account_users.create(ctx, account.id, email=email, password=PASSWORD, role=callers.Role.OWNER)


async def test_a_given_password_has_to_follow_the_rules(ctx: context.Context, account: stored_accounts.Account) -> None:
    for password in ("", "short", "x" * 257, "nul \0 nul nul"):
        with pytest.raises(errors.InvalidRequest, match="password:"):
            await account_users.create(
                ctx, account.id, email="jo@example.com", password=password, role=callers.Role.OWNER
            )
    assert await account_users.of_account(ctx, account.id) == []


async def test_nobody_is_made_in_an_account_that_does_not_exist(ctx: context.Context, clock: Clock) -> None:
    nowhere = ctx.new_id(identifiers.ACCOUNT, now=clock.now)
    with pytest.raises(errors.NotFound):
        await account_users.create(ctx, nowhere, email="jo@example.com", password=PASSWORD, role=callers.Role.OWNER)


async def test_the_users_of_an_account_are_listed_in_order(
    ctx: context.Context, account: stored_accounts.Account, clock: Clock
) -> None:
    made = []
    for name in ("jo", "al", "cy"):
        clock.pass_seconds(1)
        user, _ = await account_users.create(
            ctx, account.id, email=f"{name}@example.com", password=PASSWORD, role=callers.Role.DEVELOPER
        )
        made.append(user)
    assert await account_users.of_account(ctx, account.id) == made


async def test_a_user_of_another_account_does_not_exist(ctx: context.Context, owner: users.User) -> None:
    other = await accounts.create(ctx, "Other")
    set_password = functools.partial(account_users.set_password, password=PASSWORD)
    texts = set()
    for action in (account_users.find, account_users.disable, account_users.enable, set_password):
        for user_id in (owner.id, ctx.new_id(identifiers.USER, now=1), "usr_\0", ""):
            with pytest.raises(errors.NotFound) as refusal:
                await action(ctx, other.id, user_id)
            texts.add(refusal.value.message)
    assert len(texts) == 1
    assert await account_users.find(ctx, owner.account_id, owner.id) == owner


async def test_somebody_who_was_let_in_again_has_to_log_in_again(
    ctx: context.Context, account: stored_accounts.Account, owner: users.User
) -> None:
    session = await log_in(ctx, owner.email, PASSWORD)
    assert (await account_users.disable(ctx, account.id, owner.id)).disabled_at is not None
    assert (await account_users.enable(ctx, account.id, owner.id)).disabled_at is None
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(session.token))
    again = await log_in(ctx, owner.email, PASSWORD)
    assert (await who_is(ctx, bearer(again.token))).user_id == owner.id


async def test_a_set_password_replaces_the_old_one(
    ctx: context.Context, account: stored_accounts.Account, owner: users.User
) -> None:
    changed = await account_users.set_password(ctx, account.id, owner.id, password="another good one")
    assert changed.tokens_valid_from > owner.tokens_valid_from
    with pytest.raises(errors.Unauthorized):
        await log_in(ctx, owner.email, PASSWORD)
    assert (await log_in(ctx, owner.email, "another good one")).user.id == owner.id


async def test_a_login_shows_no_password_hash(ctx: context.Context, owner: users.User) -> None:
    async with ctx.store.reading() as tx:
        found = await users.login_by_id(tx, owner.login_id or "")
    assert found is not None
    assert found.password_hash is not None
    assert found.password_hash.startswith("$argon2id$")
    assert found.password_hash not in repr(found)


async def test_no_token_helps_somebody_who_is_locked_out(
    ctx: context.Context, account: stored_accounts.Account, owner: users.User
) -> None:
    disabled = await account_users.disable(ctx, account.id, owner.id)
    session = await logins.issue_token(ctx, disabled)
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(session.token))
