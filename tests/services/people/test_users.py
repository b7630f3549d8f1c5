"""Users: who is created, invited, changed and removed, by whom, and that an account keeps an owner who can log in."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.services.accounts import account_registry as accounts
from postroad.services.people import logins, password_links
from postroad.services.people import users as account_users
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users
from tests.contexts import PASSWORD, Clock
from tests.services.audit_entries import ADDRESS, as_user, summaries
from tests.services.people.test_schemes import bearer, who_is

OWNER, MEMBER, READ_ONLY = callers.Role.OWNER, callers.Role.DEVELOPER, callers.Role.READ_ONLY
NEW = "another good one"
NO_EMAILS = ("", "jo", "jo@", "jo@example.com\r\nBcc: x@y.z", "Jo <jo@example.com>", "a@b.c, d@e.f", " jo@b.com")
Action = Callable[[context.Context, str, str], Awaitable[object]]


async def demote(ctx: context.Context, account_id: str, user_id: str) -> users.User:
    return await account_users.change(ctx, account_id, user_id, role=MEMBER)


async def set_password(ctx: context.Context, account_id: str, user_id: str) -> users.User:
    return await account_users.set_password(ctx, account_id, user_id, password=NEW)


TAKING_AWAY: tuple[Action, ...] = (account_users.remove, account_users.disable, demote)
CHANGING: tuple[Action, ...] = (*TAKING_AWAY, account_users.enable, account_users.create_password_link)


async def person(ctx: context.Context, account_id: str, name: str, role: callers.Role = MEMBER) -> users.User:
    user, _ = await account_users.create(ctx, account_id, email=f"{name}@example.com", password=PASSWORD, role=role)
    return user


async def log_in(ctx: context.Context, user: users.User, password: str = PASSWORD) -> logins.LoggedIn:
    return await logins.log_in(ctx, user.email, password, client_address=ADDRESS)


async def test_a_user_logs_in_with_the_initial_password_or_a_generated_one(
    ctx: context.Context, account_id: str
) -> None:
    made = [
        await account_users.create(ctx, account_id, email=email, password=password, role=MEMBER)
        for email, password in (("Jo@Example.com", PASSWORD), ("al@example.com", None), ("cy@example.com", None))
    ]
    (jo, given), (_, first), (_, second) = made
    assert (jo.email, jo.role, given) == ("Jo@example.com", "developer", PASSWORD)
    assert first != second
    assert min(len(first), len(second)) >= 20
    for user, password in made:
        known = await log_in(ctx, user, password)
        assert known.user == user
    async with ctx.store.reading() as tx:
        login = await users.login_by_id(tx, jo.login_id or "")
    assert login is not None
    assert login.password_hash is not None
    assert login.password_hash.startswith("$argon2id$")
    assert login.password_hash not in repr(login)


async def test_one_address_is_one_user_in_an_account_and_another_one_in_the_next(
    ctx: context.Context, account_id: str, owner: users.User
) -> None:
    for email in ("owner@example.com", "OWNER@EXAMPLE.COM"):
        assert await account_users.by_email(ctx, email) == owner
        with pytest.raises(errors.Conflict, match="email: this address already belongs to a user of this account"):
            await account_users.create(ctx, account_id, email=email, password=PASSWORD, role=OWNER)
        with pytest.raises(errors.Conflict, match="email"):
            await account_users.invite(ctx, account_id, email=email, role=MEMBER)
    for email in ("nobody@example.com", "owner", ""):
        assert await account_users.by_email(ctx, email) is None
    assert await account_users.of_account(ctx, account_id) == [owner]
    other = await accounts.create(ctx, "Other")
    made, _ = await account_users.create(ctx, other.id, email=owner.email, password=None, role=OWNER)
    first, second = sorted([account_id, other.id])
    with pytest.raises(errors.Conflict, match=f"several accounts: {first}, {second}; name the account"):
        await account_users.by_email(ctx, owner.email)
    assert await account_users.by_email(ctx, owner.email, account_id=other.id) == made


async def test_a_user_needs_a_plain_address_a_good_password_and_a_real_account(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    for email in NO_EMAILS:
        with pytest.raises(errors.InvalidRequest, match="email:"):
            await account_users.create(ctx, account_id, email=email, password=PASSWORD, role=OWNER)
        with pytest.raises(errors.InvalidRequest, match="email:"):
            await account_users.invite(ctx, account_id, email=email, role=MEMBER)
    for password in ("", "short", "x" * 257, "nul \0 nul nul"):
        with pytest.raises(errors.InvalidRequest, match="password:"):
            await account_users.create(ctx, account_id, email="jo@example.com", password=password, role=OWNER)
    assert await account_users.of_account(ctx, account_id) == []
    nowhere = ctx.new_id(identifiers.ACCOUNT, now=clock.now)
    with pytest.raises(errors.NotFound):
        await account_users.create(ctx, nowhere, email="jo@example.com", password=PASSWORD, role=OWNER)
    with pytest.raises(errors.NotFound):
        await account_users.invite(ctx, nowhere, email="jo@example.com", role=MEMBER)


async def test_somebody_of_another_account_does_not_exist(ctx: context.Context, owner: users.User) -> None:
    other = await accounts.create(ctx, "Other")
    theirs = await person(ctx, other.id, "theirs", OWNER)
    texts = set()
    for action in (*CHANGING, account_users.find, set_password):
        for acting in (ctx, as_user(ctx, theirs)):
            for user_id in (owner.id, ctx.new_id(identifiers.USER, now=1), "usr_\0", ""):
                with pytest.raises(errors.NotFound) as refusal:
                    await action(acting, other.id, user_id)
                texts.add(refusal.value.message)
    assert len(texts) == 1
    assert await account_users.find(ctx, owner.account_id, owner.id) == owner


async def test_who_was_locked_out_has_to_log_in_again_and_no_token_of_before_helps(
    ctx: context.Context, account_id: str, owner: users.User
) -> None:
    session = await log_in(ctx, owner)
    disabled = await account_users.disable(ctx, account_id, owner.id)
    assert disabled.disabled_at is not None
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer((await logins.issue_token(ctx, disabled)).token))
    assert (await account_users.enable(ctx, account_id, owner.id)).disabled_at is None
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(session.token))
    again = await log_in(ctx, owner)
    assert (await who_is(ctx, bearer(again.token))).user_id == owner.id
    changed = await set_password(ctx, account_id, owner.id)
    assert changed.tokens_valid_from > owner.tokens_valid_from
    with pytest.raises(errors.Unauthorized):
        await log_in(ctx, owner)
    assert (await log_in(ctx, owner, NEW)).user.id == owner.id


async def test_who_was_invited_cannot_log_in_before_choosing_a_password(
    ctx: context.Context, account_id: str, owner: users.User, clock: Clock
) -> None:
    invited = await account_users.invite(as_user(ctx, owner), account_id, email="Jo@Example.com", role=READ_ONLY)
    assert (invited.user.email, invited.user.role, invited.user.joined_at) == ("Jo@example.com", "read_only", None)
    assert invited.expires_at == clock.now + 72 * 3600 * 1_000_000
    assert invited.link_token not in repr(invited)
    refusals = set()
    for email in ("jo@example.com", "nobody@example.com"):
        with pytest.raises(errors.Unauthorized) as refusal:
            await logins.log_in(ctx, email, PASSWORD, client_address=ADDRESS)
        refusals.add(refusal.value.message)
    assert len(refusals) == 1
    joined = await password_links.redeem(ctx, invited.link_token, password=PASSWORD)
    assert joined.joined_at == clock.now
    assert (await log_in(ctx, joined)).user.id == invited.user.id


async def test_a_role_counts_at_once_and_a_removed_user_is_out_and_the_address_free(
    ctx: context.Context, account_id: str, owner: users.User, clock: Clock
) -> None:
    jo = await person(ctx, account_id, "jo")
    session = await log_in(ctx, jo)
    changed = await account_users.change(as_user(ctx, owner), account_id, jo.id, role=READ_ONLY)
    assert changed.role == "read_only"
    clock.pass_seconds(1)
    assert callers.Permission.CHANGE not in (await who_is(ctx, bearer(session.token))).permissions
    link = await account_users.create_password_link(ctx, account_id, jo.id)
    removed, _ = await account_users.remove(as_user(ctx, owner), account_id, jo.id)
    assert removed == changed
    clock.pass_seconds(1)
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(session.token))
    with pytest.raises(errors.Unauthorized):
        await log_in(ctx, jo)
    with pytest.raises(errors.NotFound):
        await password_links.redeem(ctx, link.token, password=PASSWORD)
    assert (await person(ctx, account_id, "jo")).id != jo.id


@pytest.mark.parametrize("action", TAKING_AWAY)
async def test_the_last_owner_who_can_log_in_stays(
    ctx: context.Context, account_id: str, owner: users.User, action: Action
) -> None:
    await account_users.invite(ctx, account_id, email="invited@example.com", role=OWNER)
    locked = await person(ctx, account_id, "locked", OWNER)
    await account_users.disable(ctx, account_id, locked.id)
    await person(ctx, account_id, "member")
    before = await summaries(ctx, account_id)
    with pytest.raises(errors.Conflict, match="last active owner"):
        await action(as_user(ctx, owner), account_id, owner.id)
    assert await account_users.find(ctx, account_id, owner.id) == owner
    assert await summaries(ctx, account_id) == before
    await account_users.enable(as_user(ctx, owner), account_id, locked.id)
    await action(as_user(ctx, owner), account_id, owner.id)


async def test_an_operator_locks_out_the_last_owner_but_does_not_remove_or_demote_them(
    ctx: context.Context, account_id: str, owner: users.User
) -> None:
    for action in (account_users.remove, demote):
        with pytest.raises(errors.Conflict, match="last active owner"):
            await action(ctx, account_id, owner.id)
    assert (await account_users.disable(ctx, account_id, owner.id)).disabled_at is not None
    service = dataclasses.replace(ctx, actor=callers.SERVICE)
    await account_users.enable(ctx, account_id, owner.id)
    with pytest.raises(errors.Conflict, match="last active owner"):
        await account_users.disable(service, account_id, owner.id)


@pytest.mark.parametrize("action", TAKING_AWAY)
@pytest.mark.parametrize("witnesses", [0, 1])
async def test_of_two_owners_who_turn_on_each_other_at_once_one_stays(
    ctx: context.Context, account_id: str, owner: users.User, action: Action, witnesses: int
) -> None:
    other = await person(ctx, account_id, "other", OWNER)
    for number in range(witnesses):
        await person(ctx, account_id, f"witness{number}", OWNER)
    results = await asyncio.gather(
        action(as_user(ctx, owner), account_id, other.id),
        action(as_user(ctx, other), account_id, owner.id),
        return_exceptions=True,
    )
    refused = [result for result in results if isinstance(result, Exception)]
    assert [type(result) for result in refused] == [errors.Forbidden]
    left = [one for one in await account_users.of_account(ctx, account_id) if one.role == OWNER and not one.disabled_at]
    assert len(left) == 1 + witnesses


async def test_only_an_owner_changes_users_even_with_a_forged_request(
    ctx: context.Context, account: stored_accounts.Account, owner: users.User
) -> None:
    strangers = await accounts.create(ctx, "Strangers")
    for role, place in ((MEMBER, account), (READ_ONLY, account), (OWNER, strangers)):
        someone = as_user(ctx, await person(ctx, place.id, f"{role.value}-{place.name.lower()}", role))
        for action in CHANGING:
            with pytest.raises(errors.Forbidden):
                await action(someone, account.id, owner.id)
        with pytest.raises(errors.Forbidden):
            await account_users.invite(someone, account.id, email="jo@example.com", role=OWNER)
    assert await account_users.find(ctx, account.id, owner.id) == owner
    # An owner who has stepped down is one no more.
    await person(ctx, account.id, "other", OWNER)
    assert (await demote(as_user(ctx, owner), account.id, owner.id)).role == "developer"
    with pytest.raises(errors.Forbidden):
        await account_users.change(as_user(ctx, owner), account.id, owner.id, role=OWNER)


async def test_role_and_lock_change_together_or_not_at_all(
    ctx: context.Context, account_id: str, owner: users.User
) -> None:
    jo = await person(ctx, account_id, "jo")
    changed = await account_users.change(ctx, account_id, jo.id, role=READ_ONLY, enabled=False)
    assert (changed.role, changed.disabled_at is None) == ("read_only", False)
    with pytest.raises(errors.Conflict):
        await account_users.change(as_user(ctx, owner), account_id, owner.id, role=OWNER, enabled=False)
    with pytest.raises(errors.Conflict):
        await account_users.create_password_link(ctx, account_id, jo.id)


async def test_every_change_of_users_is_in_the_audit_log_and_a_repetition_is_not(
    ctx: context.Context, account_id: str, owner: users.User
) -> None:
    mine = as_user(ctx, owner)
    invited = (await account_users.invite(mine, account_id, email="jo@example.com", role=MEMBER)).user
    for _ in range(2):
        await account_users.change(mine, account_id, invited.id, role=READ_ONLY)
        await account_users.disable(mine, account_id, invited.id)
    for _ in range(2):
        await account_users.enable(mine, account_id, invited.id)
    link = await account_users.create_password_link(mine, account_id, invited.id)
    await password_links.redeem(ctx, link.token, password=PASSWORD)
    await set_password(ctx, account_id, invited.id)
    await account_users.remove(mine, account_id, invited.id)
    found = await summaries(ctx, account_id)
    assert [(action, detail) for action, subject, detail in found if subject == "jo@example.com"] == [
        ("user.disabled", ""),
        ("user.enabled", ""),
        ("user.invited", "as developer"),
        ("user.joined", ""),
        ("user.password_changed", ""),
        ("user.password_link_made", ""),
        ("user.removed", ""),
        ("user.role_changed", "developer to read_only"),
    ]
    assert ("user.created", "owner@example.com", "as owner") in found


async def test_while_the_store_takes_nothing_sessions_go_on_and_nobody_logs_in(
    ctx: context.Context, owner: users.User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_arguments: object, **_more: object) -> None:
        raise errors.ServiceUnavailable("the store is full")

    before = await log_in(ctx, owner)
    monkeypatch.setattr(users, "note_login", refuse)
    with pytest.raises(errors.ServiceUnavailable):
        await log_in(ctx, owner)
    assert (await who_is(ctx, bearer(before.token))).user_id == owner.id


async def test_a_login_is_remembered_and_a_failed_one_is_not(
    ctx: context.Context, account_id: str, owner: users.User, clock: Clock
) -> None:
    assert owner.last_login_at is None
    await log_in(ctx, owner)
    first = clock.now
    clock.pass_seconds(60)
    with pytest.raises(errors.Unauthorized):
        await log_in(ctx, owner, "wrong password")
    assert (await account_users.find(ctx, account_id, owner.id)).last_login_at == first
