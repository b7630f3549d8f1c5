"""Logins: one for several accounts, several for one address, and none that another account can reach."""

import contextlib
import dataclasses
from unittest import mock

import pytest
import pytest_asyncio

from postroad import context, errors
from postroad.model.people import callers, login_rules
from postroad.model.units import times
from postroad.services.accounts import account_registry
from postroad.services.people import logins, password_links, passwords, sessions
from postroad.services.people import users as account_users
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import sessions as stored_sessions
from postroad.storage.people import users
from tests import contexts
from tests.contexts import PASSWORD, Clock
from tests.services.audit_entries import as_user, summaries
from tests.services.people.test_schemes import HERE, bearer, who_is

OTHER = "quite another sentence"


@pytest_asyncio.fixture
async def bank(ctx: context.Context) -> stored_accounts.Account:
    return await account_registry.create(ctx, "Bank")


@pytest_asyncio.fixture
async def banker(ctx: context.Context, bank: stored_accounts.Account) -> users.User:
    """The owner of the other account."""
    user, _ = await account_users.create(
        ctx, bank.id, email="banker@example.com", password=PASSWORD, role=callers.Role.OWNER
    )
    return user


async def invited(ctx: context.Context, banker: users.User, email: str = "owner@example.com") -> str:
    """The token of an invitation to the other account."""
    made = await account_users.invite(as_user(ctx, banker), banker.account_id, email=email, role=callers.Role.READ_ONLY)
    return made.link_token


async def enter(ctx: context.Context, password: str, account_id: str | None = None) -> logins.LoggedIn:
    return await logins.log_in(ctx, "owner@example.com", password, client_address=HERE, account_id=account_id)


async def redeem(ctx: context.Context, token: str, password: str) -> users.User:
    return await password_links.redeem(logins.acting(ctx, client_address=HERE), token, password=password)


async def test_whoever_types_the_password_that_they_have_joins_with_the_same_login(
    ctx: context.Context, owner: users.User, banker: users.User, clock: Clock
) -> None:
    joined = await redeem(ctx, await invited(ctx, banker), PASSWORD)
    assert (joined.login_id, joined.account_id) == (owner.login_id, banker.account_id)
    assert await logins.accounts_of(ctx, owner.login_id or "") == {joined.account_id: "Bank", owner.account_id: "Shop"}
    assert (await enter(ctx, PASSWORD, owner.account_id)).user.id == owner.id
    clock.pass_seconds(1)
    assert (await enter(ctx, PASSWORD, joined.account_id)).user.id == joined.id
    clock.pass_seconds(1)
    assert (await enter(ctx, PASSWORD)).user.id == joined.id  # the one used last


async def test_whoever_types_another_password_gets_a_login_of_their_own(
    ctx: context.Context, owner: users.User, banker: users.User
) -> None:
    joined = await redeem(ctx, await invited(ctx, banker), OTHER)
    assert joined.login_id not in {None, owner.login_id}
    assert (await enter(ctx, PASSWORD)).user.id == owner.id
    assert (await enter(ctx, OTHER)).user.id == joined.id
    with pytest.raises(errors.Forbidden, match="account_id: you do not belong to this account"):
        await enter(ctx, PASSWORD, joined.account_id)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """How often Argon2 runs to check a password."""
    watched = mock.Mock(side_effect=passwords._match)
    monkeypatch.setattr(passwords, "_match", watched)
    return watched


async def test_an_invitation_costs_the_same_work_whoever_is_invited(
    ctx: context.Context, owner: users.User, banker: users.User, checks: mock.Mock
) -> None:
    for number, email in enumerate(("owner@example.com", "nobody@example.com"), 1):
        await redeem(ctx, await invited(ctx, banker, email), OTHER)
        assert checks.call_count == number
    # What others see is the same, too.
    seen = [one for one in await account_users.of_account(ctx, banker.account_id) if one.id != banker.id]
    assert len({(one.role, one.disabled_at, one.last_login_at) for one in seen}) == 1
    told = [action for action, _, _ in await summaries(ctx, owner.account_id)]
    assert told == ["account.created", "user.created"]


async def test_logging_in_costs_the_same_work_whoever_else_has_the_email(
    ctx: context.Context, owner: users.User, banker: users.User, checks: mock.Mock
) -> None:
    """The owner of another account makes a login with somebody's email, and measures how long a log-in takes."""
    await redeem(ctx, await invited(ctx, banker), OTHER)
    await redeem(ctx, await invited(ctx, banker, "nobody@example.com"), OTHER)
    contexts.concrete(ctx.passwords, passwords.Passwords)._proofs._values.clear()
    for email in ("owner@example.com", "nobody@example.com"):
        checks.reset_mock()
        for password in (OTHER, "a wrong password"):
            with contextlib.suppress(errors.Unauthorized):
                await logins.log_in(ctx, email, password, client_address=HERE)
        assert checks.call_count == 2


async def test_a_login_with_somebodys_email_gives_no_more_guesses_at_their_password(
    ctx: context.Context, owner: users.User, banker: users.User
) -> None:
    member = await redeem(ctx, await invited(ctx, banker), OTHER)
    for _ in range(3):
        for number in range(4):
            with pytest.raises(errors.Unauthorized):
                await enter(ctx, f"a guess, number {number}")
        assert (await enter(ctx, OTHER)).user.id == member.id
    # Twelve guesses were sent, and five were checked: even the right password is not any more.
    with pytest.raises(errors.Unauthorized):
        await enter(ctx, PASSWORD)
    elsewhere = await logins.log_in(ctx, "owner@example.com", PASSWORD, client_address="203.0.113.9")
    assert elsewhere.user.id == owner.id


async def test_nine_logins_of_one_email_all_log_in(ctx: context.Context, owner: users.User, clock: Clock) -> None:
    for number in range(9):
        account = await account_registry.create(ctx, f"Account {number}")
        email, password = "owner@example.com", f"the sentence of account {number}"
        await account_users.create(ctx, account.id, email=email, password=password, role=callers.Role.OWNER)
    for number in range(9):
        clock.pass_seconds(60)  # each one is a failure of the others
        assert (await enter(ctx, f"the sentence of account {number}")).account.name == f"Account {number}"


async def test_a_mistyped_password_is_not_shown_to_other_accounts_with_the_email(
    ctx: context.Context, owner: users.User, banker: users.User
) -> None:
    async def failures(password: str, address: str) -> list[int]:
        with pytest.raises(errors.Unauthorized):
            await logins.log_in(ctx, "owner@example.com", password, client_address=address)
        await ctx.access_cache.password_checks._wait()  # until it is written
        found = [await summaries(ctx, one.account_id) for one in (owner, banker)]
        return [sum(action == "user.login_failed" for action, _, _ in one) for one in found]

    await enter(ctx, PASSWORD)
    token = await invited(ctx, banker)
    # Whoever is only invited has no login that could fail.
    assert await failures("mistyped", "203.0.113.9") == [1, 0]
    await redeem(ctx, token, OTHER)
    assert await failures("mistyped", HERE) == [2, 0]
    assert await failures("mistyped", "203.0.113.9") == [3, 1]


async def test_a_login_begins_only_so_many_sessions(
    ctx: context.Context, owner: users.User, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a row, and an entry in the audit log: whoever has a password could fill the disk."""
    monkeypatch.setattr(login_rules, "SESSIONS", login_rules.FailureLimit(free=3, interval=10 * times.SECOND))
    for _ in range(3):
        await enter(ctx, PASSWORD)
    with pytest.raises(errors.RateLimited) as refusal:
        await enter(ctx, PASSWORD)
    assert refusal.value.retry_after == 10
    clock.pass_seconds(10)
    await enter(ctx, PASSWORD)


async def test_guessing_by_invitations_is_slowed_like_guessing_at_the_login(
    ctx: context.Context, owner: users.User, banker: users.User
) -> None:
    for number in range(5):
        token = await invited(ctx, banker)
        member = await redeem(ctx, token, f"a guess, number {number}")
        await account_users.remove(ctx, banker.account_id, member.id)
    token = await invited(ctx, banker)
    with pytest.raises(errors.RateLimited):
        await redeem(ctx, token, PASSWORD)


async def test_a_link_of_an_owner_does_not_reach_into_another_account(
    ctx: context.Context, owner: users.User, banker: users.User
) -> None:
    joined = await redeem(ctx, await invited(ctx, banker), PASSWORD)
    session = await enter(ctx, PASSWORD, owner.account_id)
    here = await enter(ctx, PASSWORD, joined.account_id)
    link = await account_users.create_password_link(as_user(ctx, banker), banker.account_id, joined.id)
    changed = await redeem(ctx, link.token, OTHER)
    assert changed.login_id not in {None, owner.login_id}
    # The session in the other account goes on, and its password is what it was.
    assert (await who_is(ctx, bearer(session.token))).user_id == owner.id
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(here.token))
    assert (await enter(ctx, PASSWORD)).user.id == owner.id
    assert (await enter(ctx, OTHER)).user.id == joined.id
    assert await logins.accounts_of(ctx, changed.login_id or "") == {joined.account_id: "Bank"}


async def test_a_link_of_an_operator_and_a_changed_password_change_the_login_in_all_accounts(
    ctx: context.Context, owner: users.User, banker: users.User
) -> None:
    joined = await redeem(ctx, await invited(ctx, banker), PASSWORD)
    session = await enter(ctx, PASSWORD, owner.account_id)
    link = await account_users.create_password_link(ctx, banker.account_id, joined.id)
    assert (await redeem(ctx, link.token, OTHER)).login_id == owner.login_id
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(session.token))
    with pytest.raises(errors.Unauthorized):
        await enter(ctx, PASSWORD)
    for account_id in (owner.account_id, joined.account_id):
        assert ("user.password_changed", "owner@example.com", "") in await summaries(ctx, account_id)
    shop, bank = await enter(ctx, OTHER, owner.account_id), await enter(ctx, OTHER, joined.account_id)
    assert (shop.user.id, bank.user.id) == (owner.id, joined.id)
    fresh = await logins.change_password(
        ctx, await who_is(ctx, bearer(shop.token)), current_password=OTHER, new_password=PASSWORD
    )
    for ended in (shop, bank):
        with pytest.raises(errors.Unauthorized):
            await who_is(ctx, bearer(ended.token))
    assert (await who_is(ctx, bearer(fresh.token))).user_id == owner.id


async def test_disabled_in_or_removed_from_one_account_one_still_enters_the_other(
    ctx: context.Context, owner: users.User, banker: users.User
) -> None:
    joined = await redeem(ctx, await invited(ctx, banker), PASSWORD)
    await account_users.disable(ctx, joined.account_id, joined.id)
    assert (await enter(ctx, PASSWORD)).user.id == owner.id
    with pytest.raises(errors.Forbidden):
        await enter(ctx, PASSWORD, joined.account_id)
    await account_users.enable(ctx, joined.account_id, joined.id)
    session = await enter(ctx, PASSWORD, joined.account_id)
    await account_users.remove(ctx, joined.account_id, joined.id)
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(session.token))
    assert (await enter(ctx, PASSWORD)).user.id == owner.id


async def test_a_password_that_changes_while_one_logs_in_begins_no_session(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    acting = logins.acting(ctx, client_address=HERE)
    checked = await logins.check_password(acting, owner.email, PASSWORD)
    await account_users.set_password(ctx, owner.account_id, owner.id, password=OTHER)
    with pytest.raises(errors.Unauthorized):
        await logins.finish(acting, checked, methods="password")
    async with ctx.store.reading() as tx:
        assert await stored_sessions.of_user(tx, owner.id, now=clock.now) == []


async def test_a_session_says_where_it_comes_from_and_its_use_is_written_later(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    acting = logins.acting(ctx, client_address="192.0.2.7", request_id="req_1")
    assert acting.actor == callers.Actor(callers.ActorKind.PERSON, None, "req_1", "192.0.2.7")
    checked = await logins.check_password(acting, owner.email, PASSWORD)
    known = await logins.finish(acting, checked, methods="password totp", device="Firefox on Linux")
    async with ctx.store.reading() as tx:
        (row,) = await stored_sessions.of_user(tx, owner.id, now=clock.now)
    assert row == known.session.row
    assert row == stored_sessions.Session(
        id=known.session.claims.jti,
        login_id=owner.login_id or "",
        user_id=owner.id,
        account_id=owner.account_id,
        kind="browser",
        name="",
        device="Firefox on Linux",
        network="192.0.2.7",
        methods="password totp",
        created_at=clock.now,
        last_used_at=clock.now,
        expires_at=clock.now + 14 * 24 * 3600 * 1_000_000,
        confirmed_at=clock.now,
    )
    assert ("user.logged_in", owner.email, "by password totp") in await summaries(ctx, owner.account_id)
    clock.pass_seconds(61)
    await sessions.authenticate(ctx, known.token)
    await ctx.access_cache.last_used.flush()
    async with ctx.store.reading() as tx:
        (used,) = await stored_sessions.of_user(tx, owner.id, now=clock.now)
    assert used == dataclasses.replace(row, last_used_at=clock.now)
