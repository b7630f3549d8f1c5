"""Access: what is cached and for how long, who may do what, the life of a session, and listeners without HTTP."""

import asyncio
import base64
import contextlib

import jwt
import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.model.delivery import throttle
from postroad.model.people import callers, login_rules
from postroad.model.units import times
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.people import api_keys, authentication, credentials, logins, passwords
from postroad.services.people import users as account_users
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users
from tests.contexts import PASSWORD, SECOND, Clock
from tests.services.people.argon_watch import Argon
from tests.services.people.test_schemes import HERE, basic, bearer, who_is

NEW_PASSWORD = "an even better horse"


async def log_in(ctx: context.Context, password: str = PASSWORD, email: str = "owner@example.com") -> logins.LoggedIn:
    return await logins.log_in(ctx, email, password, client_address=HERE)


async def test_a_missing_or_malformed_field_and_another_services_key_are_unauthorized_without_the_store(
    ctx: context.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(type(ctx.store), "reading")
    for field in (None, "", "Basic", "Basic !", "Digest x", "Bearer ", "pr_live_x", "Bearer \xff", "Bearer pr_live_x"):
        with pytest.raises(errors.Unauthorized, match="Authorization"):
            await who_is(ctx, field)
    for key in ("re_3fT7kq_ab12", "6c3f1a3c-9d52-4a1e-8f0b-1f2e3d4c5b6a", "SG.abc"):
        with pytest.raises(errors.Unauthorized, match="not an API key of Postroad, which begins with pr_live_"):
            await who_is(ctx, f"Bearer {key}")


async def test_on_the_hot_path_neither_argon2_nor_the_store_is_asked_and_no_secret_is_kept(
    ctx: context.Context, account_id: str, argon: Argon, monkeypatch: pytest.MonkeyPatch
) -> None:
    credential, password = await credentials.create(ctx, account_id, "main")
    field = basic(credential.username, password)
    found = await asyncio.gather(*(who_is(ctx, field) for _ in range(64)))
    assert {caller.credential_id for caller in found} == {credential.id}
    first = await who_is(ctx, field)
    monkeypatch.delattr(type(ctx.store), "reading")
    for _ in range(10):
        assert await who_is(ctx, field) is first
    assert argon.count == 1
    kept = repr(await ctx.access_cache.refresh(ctx.clock())) + repr(vars(ctx.access_cache))
    assert password not in kept
    assert base64.b64encode(password.encode()).decode()[:20] not in kept


async def test_argon2_does_not_run_again_when_the_memory_was_emptied(
    ctx: context.Context, account_id: str, argon: Argon, clock: Clock
) -> None:
    credential, password = await credentials.create(ctx, account_id, "main")
    for _ in range(3):
        await who_is(ctx, basic(credential.username, password))
        await accounts.suspend(ctx, account_id, "for a moment")
        clock.pass_seconds(1)
    assert argon.count == 1


@pytest.mark.parametrize("kind", ["credential", "api key", "log-out", "disabled", "password"])
async def test_a_revocation_is_felt_within_a_second_in_every_process(
    ctx: context.Context,
    other_process: context.Context,
    account_id: str,
    owner: users.User,
    clock: Clock,
    kind: str,
) -> None:
    credential, password = await credentials.create(ctx, account_id, "main")
    key, secret = await api_keys.create(
        ctx, account_id, credential_id=credential.id, name="key", scopes=frozenset({callers.Permission.SEND})
    )
    session = await log_in(ctx)
    token = bearer(session.token)
    field = {"credential": basic(credential.username, password), "api key": bearer(secret)}.get(kind, token)
    await who_is(ctx, field)
    await who_is(other_process, field)

    match kind:
        case "credential":
            await credentials.revoke(ctx, account_id, credential.id)
        case "api key":
            await api_keys.revoke(ctx, account_id, key.id)
        case "log-out":
            await logins.log_out(ctx, await who_is(ctx, token))
        case "disabled":
            await account_users.disable(ctx, account_id, owner.id)
        case "password":
            await account_users.set_password(ctx, account_id, owner.id, password=NEW_PASSWORD)

    with pytest.raises(errors.Unauthorized):  # here at once
        await who_is(ctx, field)
    clock.pass_seconds(0.5)
    with pytest.raises(errors.Unauthorized):  # and elsewhere half a second later
        await who_is(other_process, field)


async def test_a_credential_revoked_while_its_password_is_checked_is_refused(
    ctx: context.Context,
    other_process: context.Context,
    account_id: str,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    credential, password = await credentials.create(ctx, account_id, "main")
    find = passwords.Passwords.find

    async def slow_find(self: passwords.Passwords, password: str, hashes: list[str], *, party: str) -> int | None:
        result = await find(self, password, hashes, party=party)
        if self is ctx.passwords and clock.now % SECOND == 0:
            await credentials.revoke(other_process, account_id, credential.id)
            clock.pass_seconds(0.9)
        return result

    monkeypatch.setattr(passwords.Passwords, "find", slow_find)
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, basic(credential.username, password))


async def test_a_remembered_token_ends_when_it_expires(ctx: context.Context, owner: users.User, clock: Clock) -> None:
    session = await log_in(ctx)
    await who_is(ctx, bearer(session.token))
    clock.now = session.expires_at - 1
    await who_is(ctx, bearer(session.token))
    clock.now = session.expires_at
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(session.token))


TOKEN_CALLER = callers.Caller("acc", "cred", callers.Scheme.TOKEN, callers.ROLE_PERMISSIONS[callers.Role.READ_ONLY])
PASSWORD_CALLER = callers.Caller("acc", "cred", callers.Scheme.PASSWORD, callers.PASSWORD_PERMISSIONS)
KEY_CALLER = callers.Caller("acc", "cred", callers.Scheme.API_KEY, frozenset({callers.Permission.SEND}))


@pytest.mark.parametrize(
    "who, permission, refusal, hint",
    [
        (TOKEN_CALLER, callers.Permission.READ, None, ""),
        (TOKEN_CALLER, callers.Permission.VIEW, None, ""),
        (PASSWORD_CALLER, callers.Permission.SEND, None, ""),
        (PASSWORD_CALLER, callers.Permission.READ, None, ""),
        (KEY_CALLER, callers.Permission.SEND, None, ""),
        (TOKEN_CALLER, callers.Permission.SEND, errors.Forbidden, "role"),
        (TOKEN_CALLER, callers.Permission.CHANGE, errors.Forbidden, "role"),
        (PASSWORD_CALLER, callers.Permission.VIEW, errors.Unauthorized, "requires a login token"),
        (PASSWORD_CALLER, callers.Permission.CHANGE, errors.Unauthorized, "requires a login token"),
        (KEY_CALLER, callers.Permission.CHANGE, errors.Unauthorized, "requires a login token"),
        (KEY_CALLER, callers.Permission.READ, errors.Unauthorized, "scope 'read'"),
    ],
)
def test_a_right_is_a_right_a_wrong_kind_is_unauthorized_and_a_small_role_forbidden(
    who: callers.Caller, permission: callers.Permission, refusal: type[errors.PostroadError] | None, hint: str
) -> None:
    with pytest.raises(refusal, match=hint) if refusal else contextlib.nullcontext():
        authentication.require(who, permission)


async def test_a_log_in_opens_a_session_of_the_configured_length(
    ctx: context.Context, account: stored_accounts.Account, owner: users.User, clock: Clock
) -> None:
    emails = ("OWNER@EXAMPLE.COM", "The Owner <owner@example.com>", owner.email)
    *others, session = [await log_in(ctx, email=email) for email in emails]
    for opened in (*others, session):
        assert (opened.user.id, opened.account) == (owner.id, account)
    assert session.expires_at == clock.now // SECOND * SECOND + 3600 * SECOND
    claims = jwt.decode(session.token, options={"verify_signature": False})
    assert (claims["sub"], claims["acc"], claims["role"]) == (owner.id, account.id, "owner")
    assert session.token not in repr(session)
    assert "$argon2" not in repr(session)


async def test_an_unknown_email_is_answered_like_a_wrong_password_for_the_same_work(
    ctx: context.Context, owner: users.User, argon: Argon
) -> None:
    with pytest.raises(errors.Unauthorized) as wrong:
        await log_in(ctx, "wrong password")
    odd = ("nobody@example.com", "", "no address", "nul\0@example.com", "x" * 100_000)
    for email in odd:
        with pytest.raises(errors.Unauthorized) as unknown:
            await log_in(ctx, email=email)
        assert wrong.value.message == unknown.value.message
    assert argon.count == 1 + len(odd)


async def test_a_network_that_the_user_logged_in_from_stays_open_during_an_attack_from_everywhere(
    ctx: context.Context, owner: users.User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_rules, "NEWCOMERS", login_rules.FailureLimit(free=1, interval=times.HOUR))
    monkeypatch.setattr(login_rules, "ANYWHERE", login_rules.FailureLimit(free=5, interval=times.HOUR))
    await log_in(ctx)
    for number in range(1 + 5):
        with pytest.raises(errors.Unauthorized):
            await logins.log_in(ctx, owner.email, "wrong horse", client_address=f"198.18.{number}.1")
    with pytest.raises(errors.RateLimited):
        await logins.log_in(ctx, owner.email, PASSWORD, client_address="203.0.113.1")
    assert (await log_in(ctx)).user.id == owner.id


async def test_a_disabled_user_cannot_log_in_and_looks_like_an_unknown_one(
    ctx: context.Context, account_id: str, owner: users.User
) -> None:
    await account_users.disable(ctx, account_id, owner.id)
    with pytest.raises(errors.Unauthorized) as disabled:
        await log_in(ctx)
    with pytest.raises(errors.Unauthorized) as unknown:
        await log_in(ctx, email="nobody@example.com")
    assert disabled.value.message == unknown.value.message


async def change(ctx: context.Context, session: logins.LoggedIn, current: str, new: str) -> logins.LoggedIn:
    who = await who_is(ctx, bearer(session.token))
    return await logins.change_password(ctx, who, current_password=current, new_password=new)


@pytest.mark.parametrize("seconds", [0, 0.000001, 0.3, 5])
async def test_a_new_password_kills_every_older_token_and_the_fresh_one_lives(
    ctx: context.Context, owner: users.User, clock: Clock, seconds: float
) -> None:
    older = [await log_in(ctx), await log_in(ctx)]
    clock.pass_seconds(seconds)
    older.append(await log_in(ctx))
    fresh = await change(ctx, older[0], PASSWORD, NEW_PASSWORD)
    for session in older:
        with pytest.raises(errors.Unauthorized):
            await who_is(ctx, bearer(session.token))
    assert (await who_is(ctx, bearer(fresh.token))).user_id == owner.id
    with pytest.raises(errors.Unauthorized):
        await log_in(ctx, PASSWORD)
    again = await log_in(ctx, NEW_PASSWORD)
    assert (await who_is(ctx, bearer(again.token))).user_id == owner.id


async def test_a_new_password_kills_tokens_of_a_host_whose_clock_is_ahead(
    settings: config.Settings, ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    ahead = Clock()
    ahead.now = clock.now + 30 * SECOND
    async with composition.open_context(settings, clock=ahead) as fast_host:
        older = await log_in(fast_host)
        fresh = await change(ctx, older, PASSWORD, NEW_PASSWORD)
        ahead.pass_seconds(1)
        with pytest.raises(errors.Unauthorized):
            await who_is(fast_host, bearer(older.token))
        assert (await who_is(fast_host, bearer(fresh.token))).user_id == owner.id


async def test_the_new_password_has_to_follow_the_rules_and_the_current_one_is_asked_for_and_slowed(
    ctx: context.Context, owner: users.User
) -> None:
    session = await log_in(ctx)
    for new in ("short", "", "x" * 257, "nul \0 nul nul"):
        with pytest.raises(errors.InvalidRequest, match="new_password"):
            await change(ctx, session, PASSWORD, new)
    for _ in range(5):
        with pytest.raises(errors.Unauthorized, match="current_password"):
            await change(ctx, session, "wrong password", NEW_PASSWORD)
    with pytest.raises(errors.RateLimited):
        await change(ctx, session, PASSWORD, NEW_PASSWORD)
    assert (await who_is(ctx, bearer(session.token))).user_id == owner.id


async def test_of_two_changes_at_once_one_wins(
    ctx: context.Context, owner: users.User, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await log_in(ctx)
    both_proven, hashed = asyncio.Barrier(2), passwords.Passwords.hash

    async def hash_together(self: passwords.Passwords, password: str, *, party: str, like: str | None) -> str:
        await both_proven.wait()
        return await hashed(self, password, party=party, like=like)

    monkeypatch.setattr(passwords.Passwords, "hash", hash_together)
    results = await asyncio.gather(
        *(change(ctx, session, PASSWORD, f"new password {number}") for number in range(2)), return_exceptions=True
    )
    (winner,) = [number for number, result in enumerate(results) if isinstance(result, logins.LoggedIn)]
    assert isinstance(results[1 - winner], errors.Conflict)
    assert (await log_in(ctx, f"new password {winner}")).user.id == owner.id


async def test_a_user_logs_out_of_one_session_and_only_a_user_does_or_has_a_password_to_change(
    ctx: context.Context, owner: users.User
) -> None:
    first, second = await log_in(ctx), await log_in(ctx)
    await logins.log_out(ctx, await who_is(ctx, bearer(first.token)))
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(first.token))
    assert (await who_is(ctx, bearer(second.token))).user_id == owner.id
    with pytest.raises(errors.Unauthorized):
        await logins.log_out(ctx, PASSWORD_CALLER)
    with pytest.raises(errors.Unauthorized, match="requires a login token"):
        await logins.change_password(ctx, PASSWORD_CALLER, current_password=PASSWORD, new_password=NEW_PASSWORD)


# The rate of management: by user and by account, and no limit for sending and reading mail.

EVERYTHING = frozenset(callers.Permission)


def user(user_id: str, account_id: str = "acc_1") -> callers.Caller:
    return callers.Caller(account_id, "cred_1", callers.Scheme.TOKEN, EVERYTHING, user_id=user_id)


def allowed(rate: authentication.ManagementRate, who: callers.Caller, permission: callers.Permission) -> int:
    """How many of 200 requests at once are allowed."""
    count = 0
    for _ in range(200):
        with contextlib.suppress(errors.RateLimited):
            rate.require(who, permission)
            count += 1
    return count


@pytest.fixture
def rate(clock: Clock) -> authentication.ManagementRate:
    return authentication.ManagementRate(throttle.RateLimit(rate=50, burst=100), clock=clock)


@pytest.mark.parametrize("permission", [callers.Permission.VIEW, callers.Permission.CHANGE, callers.Permission.MANAGE])
def test_a_user_has_half_of_what_the_account_has_and_mail_is_not_counted(
    rate: authentication.ManagementRate, clock: Clock, permission: callers.Permission
) -> None:
    key = callers.Caller("acc_1", "cred_1", callers.Scheme.API_KEY, callers.PASSWORD_PERMISSIONS)
    for _ in range(200):  # who lacks the permission is refused first
        with pytest.raises(errors.Unauthorized):
            rate.require(key, permission)
    for uncounted in (callers.Permission.SEND, callers.Permission.READ):
        assert allowed(rate, user("usr_1"), uncounted) == 200
    assert allowed(rate, user("usr_1"), permission) == 50
    assert allowed(rate, user("usr_2"), permission) == 50
    with pytest.raises(errors.RateLimited, match=r"^too many management requests: more than 50 per second$") as refusal:
        rate.require(user("usr_3"), permission)
    assert refusal.value.retry_after == 1
    assert allowed(rate, user("usr_4", "acc_2"), permission) == 50
    clock.pass_seconds(1)
    assert allowed(rate, user("usr_1"), permission) == 25
    assert allowed(rate, user("usr_2"), permission) == 25


# Listeners that get a username and a password: throttled as over HTTP, and revoked with the credential.

WRONG = "not the password"


@pytest_asyncio.fixture
async def pair(ctx: context.Context, account_id: str) -> tuple[str, str]:
    """The username and password of a credential."""
    credential, password = await credentials.create(ctx, account_id, "main")
    return credential.username, password


async def connect(ctx: context.Context, username: str, password: str) -> callers.Caller:
    return await authentication.authenticate_password(ctx, username, password, client_address=HERE)


async def test_a_known_pair_is_the_caller_of_http_and_needs_no_store(
    ctx: context.Context, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    who = await connect(ctx, *pair)
    assert who == await who_is(ctx, basic(*pair))
    assert await authentication.renew(ctx, who) == who
    username, password = pair
    with pytest.raises(errors.Unauthorized):  # part of the password in the name does not help
        await connect(ctx, f"{username}:{password[:4]}", password[4:])
    monkeypatch.delattr(type(ctx.store), "reading")
    assert await connect(ctx, *pair) is who
    assert await authentication.renew(ctx, who) == who


async def test_an_unknown_name_is_answered_like_a_wrong_password(ctx: context.Context, pair: tuple[str, str]) -> None:
    reported = set()
    for name in (pair[0], "nobody", "x" * 5000, "", "a\0b", "smtp_\n"):
        with pytest.raises(errors.Unauthorized) as refused:
            await connect(ctx, name, WRONG)
        reported.add(refused.value.message)
    (message,) = reported
    assert "Authorization" not in message


@pytest.mark.parametrize("is_over_http", [True, False])
async def test_failures_count_for_both_and_a_password_that_nobody_checked_is_not_called_wrong(
    ctx: context.Context, pair: tuple[str, str], clock: Clock, *, is_over_http: bool
) -> None:
    username, _ = pair
    for _ in range(5):
        with pytest.raises(errors.Unauthorized):
            await (who_is(ctx, basic(username, WRONG)) if is_over_http else connect(ctx, username, WRONG))
    with pytest.raises(errors.RateLimited) as slowed:
        await connect(ctx, *pair)
    assert slowed.value.retry_after == 60
    with pytest.raises(errors.Unauthorized, match="wait a minute"):
        await who_is(ctx, basic(*pair))
    clock.pass_seconds(60)
    assert await connect(ctx, *pair) == await who_is(ctx, basic(*pair))


async def test_a_session_ends_within_a_second_of_its_revocation_in_every_process(
    ctx: context.Context, other_process: context.Context, pair: tuple[str, str], clock: Clock
) -> None:
    who = await connect(ctx, *pair)
    await authentication.renew(ctx, who)
    await credentials.revoke(other_process, who.account_id, who.credential_id or "")
    with pytest.raises(errors.Unauthorized, match="revoked"):
        await authentication.renew(other_process, who)
    clock.pass_seconds(1)
    with pytest.raises(errors.Unauthorized, match="revoked"):
        await authentication.renew(ctx, who)
    with pytest.raises(errors.Unauthorized):
        await connect(ctx, *pair)
    with pytest.raises(errors.Unauthorized):  # nor has a caller without a credential a session
        await authentication.renew(ctx, callers.Caller("acc_x", None, callers.Scheme.TOKEN, callers.EVERYTHING))
