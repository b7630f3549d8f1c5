"""Second factors: asked for after the password, each code once, throttled by themselves, audited and told by mail."""

import asyncio
import dataclasses

import pytest

from postroad import config, context, errors
from postroad.model.people import callers
from postroad.services.accounts import account_registry
from postroad.services.people import authentication, credentials, logins, password_links, second_factors, sessions
from postroad.services.people import users as account_users
from postroad.storage.operations import notices
from postroad.storage.people import accounts, users
from postroad.storage.people import second_factors as stored
from tests import contexts
from tests.contexts import PASSWORD, Clock
from tests.services.audit_entries import ADDRESS, as_user, entries
from tests.services.people import authenticator
from tests.services.people.test_schemes import bearer, who_is

ELSEWHERE = "198.51.100.7"
NEW = "another good one"


async def log_in(ctx: context.Context, code: str | None = None, *, address: str = ADDRESS) -> logins.LoggedIn:
    return await logins.log_in(ctx, "owner@example.com", PASSWORD, client_address=address, code=code)


async def actions(ctx: context.Context, account_id: str) -> list[str]:
    """In the order of their names: the clock of a test may stand still."""
    return sorted(entry.action for entry in await entries(ctx, account_id))


async def told(ctx: context.Context) -> list[tuple[str, str]]:
    """The kinds of notices that wait, and whom they are for."""
    async with ctx.store.reading() as tx:
        return [(one.kind, one.user_id) for one in await notices.unresolved(tx, limit=50)]


def at(ctx: context.Context, address: str) -> context.Context:
    return logins.acting(ctx, client_address=address)


async def test_a_login_with_an_app_needs_its_code(ctx: context.Context, owner: users.User, clock: Clock) -> None:
    assert (await log_in(ctx)).session.row.methods == "password"
    secret, _ = await authenticator.set_up(ctx, owner, clock)
    clock.pass_seconds(60)
    with pytest.raises(errors.SecondFactorRequired) as refusal:
        await log_in(ctx)
    assert (refusal.value.code, refusal.value.status) == ("unauthorized", 401)
    assert refusal.value.headers == (("Second-Factor", "required"),)
    with pytest.raises(errors.SecondFactorRequired):
        await log_in(ctx, authenticator.wrong(secret, clock))
    # Who does not know the password learns nothing of it.
    with pytest.raises(errors.Unauthorized) as wrong:
        await logins.log_in(ctx, owner.email, "wrong", client_address=ADDRESS, code=authenticator.code(secret, clock))
    assert (wrong.value.message, wrong.value.headers) == ("wrong email or password", ())
    known = await log_in(ctx, f" {authenticator.code(secret, clock)} ")
    assert known.session.row.methods == "password totp"
    assert (await who_is(ctx, bearer(known.token))).user_id == owner.id


async def test_a_code_works_once_and_none_before_it_afterwards(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    secret, _ = await authenticator.set_up(ctx, owner, clock)
    with pytest.raises(errors.SecondFactorRequired):
        await log_in(ctx, authenticator.code(secret, clock))  # confirmed the app
    clock.pass_seconds(60)
    earlier, code = authenticator.code(secret, clock, steps=-1), authenticator.code(secret, clock)
    await log_in(ctx, code)
    for used in (code, earlier):
        with pytest.raises(errors.SecondFactorRequired):
            await log_in(ctx, used)
    await log_in(ctx, authenticator.code(secret, clock, steps=1))


async def test_a_recovery_code_of_the_own_login_replaces_the_app_once(
    ctx: context.Context, account_id: str, owner: users.User, clock: Clock
) -> None:
    _, codes = await authenticator.set_up(ctx, owner, clock)
    assert len(codes) == 10
    other, _ = await account_users.create(
        ctx, account_id, email="other@example.com", password=PASSWORD, role=callers.Role.OWNER
    )
    secret, other_codes = await authenticator.set_up(ctx, other, clock)
    clock.pass_seconds(60)
    known = await log_in(ctx, codes[3])
    assert known.session.row.methods == "password recovery_code"
    for wrong in (codes[3], other_codes[0], authenticator.code(secret, clock)):
        with pytest.raises(errors.SecondFactorRequired):
            await log_in(ctx, wrong)
    assert (await second_factors.of_login(ctx, owner.login_id or "")).recovery_codes == 9
    assert "user.recovery_code_used" in await actions(ctx, account_id)


async def test_wrong_codes_are_throttled_and_a_right_password_does_not_reset_them(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    secret, codes = await authenticator.set_up(ctx, owner, clock)
    clock.pass_seconds(60)
    wrong = authenticator.wrong(secret, clock)
    for _ in range(10):
        with pytest.raises(errors.SecondFactorRequired):
            await log_in(ctx, wrong)
    # Each of these attempts had a right password.
    for code in (wrong, authenticator.code(secret, clock), codes[0]):
        with pytest.raises(errors.RateLimited) as refusal:
            await log_in(ctx, code)
        assert refusal.value.retry_after == 600
    # Another network has no free attempts: unknown ones count together.
    with pytest.raises(errors.RateLimited):
        await log_in(ctx, wrong, address=ELSEWHERE)
    clock.pass_seconds(600)
    await log_in(ctx, authenticator.code(secret, clock))


async def test_guesses_from_elsewhere_do_not_keep_somebody_out_of_a_known_network(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    await log_in(ctx)
    secret, _ = await authenticator.set_up(ctx, owner, clock)
    clock.pass_seconds(60)
    wrong = authenticator.wrong(secret, clock)
    for _ in range(10):
        with pytest.raises(errors.SecondFactorRequired):
            await log_in(ctx, wrong, address=ELSEWHERE)
    with pytest.raises(errors.RateLimited):
        await log_in(ctx, authenticator.code(secret, clock), address=ELSEWHERE)
    await log_in(ctx, authenticator.code(secret, clock))


async def test_parallel_guesses_are_throttled_like_sequential_ones(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    secret, _ = await authenticator.set_up(ctx, owner, clock)
    found, wrong = await authenticator.login_of(ctx, owner), authenticator.wrong(secret, clock)
    results = await asyncio.gather(
        *(second_factors.check_code(at(ctx, ELSEWHERE), found, wrong) for _ in range(30)), return_exceptions=True
    )
    # One was counted when the app was confirmed, and forgiven where it was: from nowhere.
    checked = [one for one in results if isinstance(one, errors.SecondFactorRequired)]
    assert len(checked) == 10
    assert all(isinstance(one, errors.RateLimited) for one in results if one not in checked)


async def test_an_app_counts_after_its_first_code_only(
    ctx: context.Context, account_id: str, owner: users.User, clock: Clock
) -> None:
    found = await authenticator.login_of(ctx, owner)
    secret = await second_factors.begin_totp(ctx, found)
    await log_in(ctx)
    with pytest.raises(errors.InvalidRequest, match="code: incorrect"):
        await second_factors.confirm_totp(ctx, found, authenticator.wrong(secret, clock))
    await log_in(ctx)
    assert "user.second_factor_added" not in await actions(ctx, account_id)
    assert len(await second_factors.confirm_totp(ctx, found, authenticator.code(secret, clock))) == 10
    with pytest.raises(errors.Conflict, match="remove it first"):
        await second_factors.begin_totp(ctx, found)


async def test_changes_are_audited_in_every_account_and_told_to_the_person(
    ctx: context.Context, account: accounts.Account, owner: users.User, clock: Clock
) -> None:
    other = await account_registry.create(ctx, "Other")
    invited = await account_users.invite(ctx, other.id, email=owner.email, role=callers.Role.DEVELOPER)
    await password_links.redeem(at(ctx, ADDRESS), invited.link_token, password=PASSWORD)
    acting = as_user(ctx, owner)
    found = await authenticator.login_of(ctx, owner)
    await authenticator.set_up(acting, owner, clock)
    await second_factors.renew_codes(acting, found)
    await second_factors.remove_totp(acting, found)
    made = ["user.recovery_codes_renewed", "user.second_factor_added", "user.second_factor_removed"]
    for account_id in (account.id, other.id):
        assert [one for one in await actions(ctx, account_id) if one in made] == made
    assert sorted(await told(ctx)) == [
        ("user.second_factor_added", owner.id),
        ("user.second_factor_removed", owner.id),
    ]


async def test_recovery_codes_go_with_the_last_factor(ctx: context.Context, owner: users.User, clock: Clock) -> None:
    await authenticator.set_up(ctx, owner, clock)
    found = await authenticator.login_of(ctx, owner)
    await second_factors.remove_totp(ctx, found)
    assert await second_factors.of_login(ctx, found.id) == stored.Factors()
    with pytest.raises(errors.NotFound):
        await second_factors.remove_totp(ctx, found)
    with pytest.raises(errors.Conflict, match="set one up first"):
        await second_factors.renew_codes(ctx, found)


async def test_the_password_or_a_code_proves_who_somebody_is_and_guesses_are_throttled(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    secret, codes = await authenticator.set_up(ctx, owner, clock)
    found, here = await authenticator.login_of(ctx, owner), at(ctx, ADDRESS)
    await second_factors.prove(here, found, PASSWORD)
    clock.pass_seconds(30)
    code = authenticator.code(secret, clock)
    await second_factors.prove(here, found, code)
    with pytest.raises(errors.SecondFactorRequired):
        await second_factors.prove(here, found, code)
    for wrong in ("wrong password", "", codes[0]):
        with pytest.raises(errors.InvalidRequest, match="proof: incorrect"):
            await second_factors.prove(here, found, wrong)
    for _ in range(8):
        with pytest.raises((errors.InvalidRequest, errors.RateLimited)):
            await second_factors.prove(here, found, "wrong password")
    with pytest.raises(errors.RateLimited):
        await second_factors.prove(here, found, PASSWORD)


async def test_a_new_password_keeps_the_factors_and_a_recovery_link_removes_them_when_it_is_used(
    ctx: context.Context, account_id: str, owner: users.User, clock: Clock
) -> None:
    secret, _ = await authenticator.set_up(ctx, owner, clock)
    made = await account_users.create_password_link(ctx, account_id, owner.id)
    await password_links.redeem(at(ctx, ADDRESS), made.token, password=NEW)
    clock.pass_seconds(60)
    with pytest.raises(errors.SecondFactorRequired):
        await logins.log_in(ctx, owner.email, NEW, client_address=ADDRESS)
    code = authenticator.code(secret, clock)
    await logins.log_in(ctx, owner.email, NEW, client_address=ADDRESS, code=code)
    made = await account_users.create_password_link(ctx, account_id, owner.id, is_recovery=True)
    assert (await second_factors.of_login(ctx, owner.login_id or "")).exist
    await password_links.redeem(at(ctx, ADDRESS), made.token, password=PASSWORD)
    assert await second_factors.of_login(ctx, owner.login_id or "") == stored.Factors()
    await log_in(ctx)
    assert {"user.recovery_link_made", "user.second_factor_removed"} <= set(await actions(ctx, account_id))
    assert ("user.second_factor_removed", owner.id) in await told(ctx)


async def test_the_recovery_link_of_an_owner_reaches_into_no_other_account(
    ctx: context.Context, account: accounts.Account, owner: users.User, clock: Clock
) -> None:
    """The user gets a login of their own there; the shared one keeps its password and its factor."""
    other = await account_registry.create(ctx, "Other")
    boss, _ = await account_users.create(
        ctx, other.id, email="boss@example.com", password=PASSWORD, role=callers.Role.OWNER
    )
    invited = await account_users.invite(ctx, other.id, email=owner.email, role=callers.Role.DEVELOPER)
    await password_links.redeem(at(ctx, ADDRESS), invited.link_token, password=PASSWORD)
    await authenticator.set_up(ctx, owner, clock)
    made = await account_users.create_password_link(as_user(ctx, boss), other.id, invited.user.id, is_recovery=True)
    await password_links.redeem(at(ctx, ADDRESS), made.token, password=NEW)
    there = await logins.log_in(ctx, owner.email, NEW, client_address=ADDRESS)
    assert there.account.id == other.id
    assert (await second_factors.of_login(ctx, owner.login_id or "")).exist
    with pytest.raises(errors.SecondFactorRequired):
        await log_in(ctx)


async def test_who_may_make_a_recovery_link(ctx: context.Context, account_id: str, owner: users.User) -> None:
    boss, _ = await account_users.create(
        ctx, account_id, email="boss@example.com", password=PASSWORD, role=callers.Role.OWNER
    )
    acting = as_user(ctx, boss)
    await account_users.create_password_link(acting, account_id, owner.id, is_recovery=True)
    with pytest.raises(errors.Conflict, match="use your profile"):
        await account_users.create_password_link(acting, account_id, boss.id, is_recovery=True)
    await account_users.add_operator(ctx, owner.email)
    with pytest.raises(errors.Forbidden, match="only an operator"):
        await account_users.create_password_link(acting, account_id, owner.id, is_recovery=True)
    operator = dataclasses.replace(acting, actor=dataclasses.replace(acting.actor, kind=callers.ActorKind.OPERATOR))
    await account_users.create_password_link(operator, account_id, owner.id, is_recovery=True)


async def test_somebody_who_is_invited_needs_the_factor_of_the_login_that_they_join_with(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    await authenticator.set_up(ctx, owner, clock)
    other = await account_registry.create(ctx, "Other")
    invited = await account_users.invite(ctx, other.id, email=owner.email, role=callers.Role.DEVELOPER)
    with pytest.raises(password_links.FactorNeeded) as needed:
        await password_links.redeem(at(ctx, ADDRESS), invited.link_token, password=PASSWORD)
    assert (await account_users.find(ctx, other.id, invited.user.id)).login_id is None
    joined = await password_links.join(at(ctx, ADDRESS), needed.value.invitation, needed.value.login)
    assert (await account_users.find(ctx, other.id, joined.id)).login_id == owner.login_id
    with pytest.raises(errors.NotFound):
        await password_links.join(at(ctx, ADDRESS), needed.value.invitation, needed.value.login)


# Accounts and the installation require a second factor: who lacks one can only set it up, and others are not asked.


async def test_a_required_factor_must_be_set_up_first(
    ctx: context.Context, account_id: str, owner: users.User, clock: Clock
) -> None:
    token, session = await log_in(ctx), await contexts.begin_session(ctx, owner)
    await account_registry.require_second_factor(ctx, account_id, required=True)
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
    await account_registry.require_second_factor(ctx, account_id, required=True)
    await account_registry.require_second_factor(ctx, account_id, required=False)
    changed = [one for one in await actions(ctx, account_id) if one.startswith("account.second")]
    assert changed == ["account.second_factor_optional", "account.second_factor_required"]


async def test_what_one_account_requires_asks_nothing_of_another(
    ctx: context.Context, account_id: str, owner: users.User
) -> None:
    other = await account_registry.create(ctx, "Other")
    invited = await account_users.invite(ctx, other.id, email=owner.email, role=callers.Role.DEVELOPER)
    await password_links.redeem(at(ctx, ADDRESS), invited.link_token, password=PASSWORD)
    await account_registry.require_second_factor(ctx, other.id, required=True)
    found = await authenticator.login_of(ctx, owner)
    here = await logins.finish(at(ctx, ADDRESS), found, methods="password", account_id=account_id)
    there = await logins.finish(at(ctx, ADDRESS), found, methods="password", account_id=other.id)
    assert [(await sessions.authenticate(ctx, one.token))[1].lacks_factor for one in (here, there)] == [False, True]


@pytest.mark.parametrize("methods", ["passkey", "sso", "password passkey", "operator"])
async def test_other_methods_satisfy_the_requirement(
    ctx: context.Context, account_id: str, owner: users.User, methods: str
) -> None:
    await account_registry.require_second_factor(ctx, account_id, required=True)
    async with ctx.store.transaction() as tx:
        session = await sessions.begin(ctx, tx, owner, methods=methods)
    assert not (await sessions.authenticate(ctx, session.token))[1].lacks_factor


async def test_keys_and_credentials_need_no_second_factor(
    ctx: context.Context, account_id: str, owner: users.User, clock: Clock
) -> None:
    await authenticator.set_up(ctx, owner, clock)
    await account_registry.require_second_factor(ctx, account_id, required=True)
    credential, password = await credentials.create(ctx, account_id, "Shop")
    who = await authentication.authenticate_password(ctx, credential.username, password, client_address=ADDRESS)
    assert who.account_id == account_id


class TestOperators:
    @pytest.fixture
    def settings(self, database_url: str) -> config.Settings:
        return config.load(
            environment={},
            overrides={
                "database": {"url": database_url},
                "security": {"installation_key": contexts.SECRET_KEY, "operator_second_factor": True},
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
