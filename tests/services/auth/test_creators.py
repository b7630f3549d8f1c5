"""What a person made is shown before they are removed, and revoked or handed over."""

import pytest

from postroad import errors
from postroad.model import caller
from postroad.services import context
from postroad.services.auth import api_keys, creators, credentials, operators
from postroad.services.auth import users as account_users
from postroad.storage import accounts, users
from tests.contexts import PASSWORD
from tests.services.audit_entries import as_user, summaries
from tests.services.auth.test_schemes import basic, bearer, who_is

SEND = frozenset({caller.Scope.SEND})


@pytest.fixture
async def member(ctx: context.Context, account: accounts.Account) -> users.User:
    user, _ = await account_users.create(
        ctx, account.id, email="jo@example.com", password=PASSWORD, role=caller.Role.OWNER
    )
    return user


async def make(ctx: context.Context, user: users.User) -> tuple[str, str]:
    """A credential and a key of a user; what to authenticate with."""
    acting = as_user(ctx, user)
    credential, password = await credentials.create(acting, user.account_id, "Web shop")
    _, secret = await api_keys.create(acting, user.account_id, credential_id=credential.id, name="Shop", scopes=SEND)
    return basic(credential.username, password), bearer(secret)


async def test_what_a_person_made_is_listed_as_long_as_it_works(
    ctx: context.Context, owner: users.User, member: users.User
) -> None:
    await make(ctx, member)
    await make(ctx, owner)
    made = await creators.made_by(ctx, member)
    assert [one.name for one in made.api_keys] == ["Shop"]
    assert [one.name for one in made.credentials] == ["Web shop"]
    await credentials.revoke(ctx, member.account_id, made.credentials[0].id)
    assert await creators.made_by(ctx, member) == creators.Made([], [])


async def test_what_is_revoked_stops_working_and_is_told(
    ctx: context.Context, owner: users.User, member: users.User
) -> None:
    presented = await make(ctx, member)
    kept = await make(ctx, owner)
    for one in (*presented, *kept):
        await who_is(ctx, one)
    await account_users.remove(as_user(ctx, owner), member.account_id, member.id, secrets=creators.SecretsAction.REVOKE)
    for one in presented:
        with pytest.raises(errors.Unauthorized):
            await who_is(ctx, one)
    for one in kept:
        await who_is(ctx, one)
    told = [(action, subject) for action, subject, _ in await summaries(ctx, owner.account_id)]
    for entry in (("user.removed", member.email), ("api_key.revoked", "Shop"), ("credential.revoked", "Web shop")):
        assert entry in told


async def test_what_is_handed_over_goes_on_and_is_the_acting_owners(
    ctx: context.Context, owner: users.User, member: users.User
) -> None:
    presented = await make(ctx, member)
    await account_users.remove(as_user(ctx, owner), member.account_id, member.id)
    for one in presented:
        await who_is(ctx, one)
    made = await creators.made_by(ctx, owner)
    assert ([one.name for one in made.api_keys], [one.name for one in made.credentials]) == (["Shop"], ["Web shop"])


async def test_at_the_command_line_nobody_takes_it_over(
    ctx: context.Context, owner: users.User, member: users.User
) -> None:
    presented = await make(ctx, member)
    await account_users.remove(ctx, member.account_id, member.id)
    for one in presented:
        await who_is(ctx, one)
    assert [one.created_by for one in await api_keys.of_account(ctx, owner.account_id)] == [member.id]


async def test_a_key_that_operates_the_installation_is_never_handed_over(
    ctx: context.Context, owner: users.User, member: users.User
) -> None:
    for user in (owner, member):
        await operators.add(ctx, user.email)
    await credentials.create(ctx, owner.account_id, "main")
    _, secret = await api_keys.create(
        as_user(ctx, member), member.account_id, credential_id=None, name="Console", scopes=frozenset({"operator"})
    )
    await operators.remove(ctx, member.id)
    await account_users.remove(as_user(ctx, owner), member.account_id, member.id)
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(secret))
