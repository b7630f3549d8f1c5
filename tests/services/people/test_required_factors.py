"""Accounts and the installation require a second factor: who lacks one can only set it up, and others are not asked."""

import pytest

from postroad import config, context, errors
from postroad.model.people import callers
from postroad.services.accounts import account_registry
from postroad.services.people import authentication, credentials, logins, password_links, sessions
from postroad.services.people import users as account_users
from postroad.storage.people import accounts, users
from tests import contexts
from tests.contexts import PASSWORD, Clock
from tests.services.audit_entries import ADDRESS
from tests.services.people import authenticator
from tests.services.people.test_schemes import bearer, who_is
from tests.services.people.test_second_factors import actions, at, log_in


async def test_a_required_factor_must_be_set_up_first(
    ctx: context.Context, account: accounts.Account, owner: users.User, clock: Clock
) -> None:
    token, session = await log_in(ctx), await contexts.begin_session(ctx, owner)
    await account_registry.require_second_factor(ctx, account.id, required=True)
    with pytest.raises(errors.SecondFactorMissing) as refusal:
        await who_is(ctx, bearer(token.token))
    assert (refusal.value.code, refusal.value.status) == ("forbidden", 403)
    assert refusal.value.headers == (("Second-Factor", "missing"),)
    with pytest.raises(errors.SecondFactorMissing):
        await who_is(ctx, bearer((await log_in(ctx)).token))
    _, known = await sessions.authenticate(ctx, session.token)
    assert known.lacks_factor
    secret, codes = await authenticator.set_up(ctx, owner, clock)
    # Those that began without it have to log in again, unless they have proved it.
    with pytest.raises(errors.Unauthorized):
        await sessions.authenticate(ctx, session.token)
    await sessions.confirm(ctx, known, methods="password totp")
    _, known = await sessions.authenticate(ctx, session.token)
    assert not known.lacks_factor
    clock.pass_seconds(60)
    for code in (authenticator.code(secret, clock), codes[0]):
        await who_is(ctx, bearer((await log_in(ctx, code)).token))
    await account_registry.require_second_factor(ctx, account.id, required=True)
    await account_registry.require_second_factor(ctx, account.id, required=False)
    changed = [one for one in await actions(ctx, account.id) if one.startswith("account.second")]
    assert changed == ["account.second_factor_optional", "account.second_factor_required"]


async def test_what_one_account_requires_asks_nothing_of_another(
    ctx: context.Context, account: accounts.Account, owner: users.User
) -> None:
    other = await account_registry.create(ctx, "Other")
    invited = await account_users.invite(ctx, other.id, email=owner.email, role=callers.Role.DEVELOPER)
    await password_links.redeem(at(ctx, ADDRESS), invited.link_token, password=PASSWORD)
    await account_registry.require_second_factor(ctx, other.id, required=True)
    found = await authenticator.login_of(ctx, owner)
    here = await logins.finish(at(ctx, ADDRESS), found, methods="password", account_id=account.id)
    there = await logins.finish(at(ctx, ADDRESS), found, methods="password", account_id=other.id)
    assert [(await sessions.authenticate(ctx, one.token))[1].lacks_factor for one in (here, there)] == [False, True]


@pytest.mark.parametrize("methods", ["passkey", "sso", "password passkey", "operator"])
async def test_other_methods_satisfy_the_requirement(
    ctx: context.Context, account: accounts.Account, owner: users.User, methods: str
) -> None:
    await account_registry.require_second_factor(ctx, account.id, required=True)
    async with ctx.store.transaction() as tx:
        session = await sessions.begin(ctx, tx, owner, methods=methods)
    assert not (await sessions.authenticate(ctx, session.token))[1].lacks_factor


async def test_keys_and_credentials_need_no_second_factor(
    ctx: context.Context, account: accounts.Account, owner: users.User, clock: Clock
) -> None:
    await authenticator.set_up(ctx, owner, clock)
    await account_registry.require_second_factor(ctx, account.id, required=True)
    credential, password = await credentials.create(ctx, account.id, "Shop")
    who = await authentication.authenticate_password(ctx, credential.username, password, client_address=ADDRESS)
    assert who.account_id == account.id


class TestOperators:
    @pytest.fixture
    def settings(self, database_url: str) -> config.Settings:
        return config.load(
            environment={},
            overrides={
                "database": {"url": database_url},
                "security": {"secret_key": contexts.SECRET_KEY, "operator_second_factor": True},
            },
        )

    async def test_the_installation_can_require_it_of_operators_only(
        self, ctx: context.Context, account: accounts.Account, owner: users.User
    ) -> None:
        token = (await log_in(ctx)).token
        await who_is(ctx, bearer(token))
        await account_users.add_operator(ctx, owner.email)
        with pytest.raises(errors.SecondFactorMissing):
            await who_is(ctx, bearer(token))
