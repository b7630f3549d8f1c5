"""Logins: what a user logs in with, and the way from a proof to a session in one of the person's accounts."""

import contextlib
import dataclasses
import functools
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.mail import notice_kinds, notice_outbox
from postroad.mail.accept import approval_limit
from postroad.model.people import callers, login_rules
from postroad.model.units import identifiers, times
from postroad.protocol.mime import address
from postroad.services import audit_log
from postroad.services.people import authentication, passwords, second_factors, tokens
from postroad.services.people import sessions as people_sessions
from postroad.services.people import sso_connections as sso_rules
from postroad.storage.engine import store
from postroad.storage.people import accounts, credentials, rates, sessions, sso, users
from postroad.storage.people import sessions as storage_sessions


def email_key(email: str) -> str | None:
    """The lookup key of an email: the same for every spelling, None when it is not an address."""
    try:
        return address.parse(email).key
    except address.AddressError:
        return None


async def give_new(
    ctx: context.Context, tx: store.Transaction, user: users.User, *, password_hash: str | None
) -> users.User:
    """Give a user a new login of their own; one that they had stays with its other users, who keep their sessions."""
    now = ctx.clock()
    key = email_key(user.email) or user.email
    made = users.Login(ctx.new_id(identifiers.LOGIN, now=now), user.email, key, None, now, now)
    await users.insert_login(tx, made)
    await give(ctx, tx, user, login_id=made.id)
    await users.set_password(tx, made.id, password_hash=password_hash, now=now)
    return await users.by_id(tx, user.id) or user


async def give(ctx: context.Context, tx: store.Transaction, user: users.User, *, login_id: str) -> None:
    """Let a user log in with this login, and no longer with the one before. The first one makes them join."""
    await users.set_login(tx, user.id, login_id=login_id, now=ctx.clock())
    if user.login_id is not None:
        await sessions.remove_of_user(tx, user.id)
        await users.remove_unused_logins(tx, user.login_id)


async def hash_password(ctx: context.Context, password: str, *, email: str, party: str) -> str:
    """The hash of a password for a login with this email.

    All of them have one salt, so that logging in costs one check of a password, however many there are: its time tells
    nobody whether the person belongs to other accounts.
    """
    async with ctx.store.reading() as tx:
        like = await users.any_password_hash(tx, email_key(email) or email)
    return await ctx.passwords.hash(password, party=party, like=like)


async def is_shared(tx: store.Transaction, user: users.User) -> bool:
    """Whether the login of a user belongs to other accounts, too, or to somebody whom a provider vouches for."""
    if user.login_id is None:
        return False
    return len(await users.of_login(tx, user.login_id)) > 1 or bool(await sso.identities_of_login(tx, user.login_id))


async def set_password(ctx: context.Context, tx: store.Transaction, user: users.User, *, password_hash: str) -> None:
    """Set the password of a person, in all their accounts, and end all their sessions."""
    login_id = user.login_id or (await give_new(ctx, tx, user, password_hash=password_hash)).login_id or ""
    await users.set_password(tx, login_id, password_hash=password_hash, now=ctx.clock())
    await after_change(ctx, tx, login_id)


async def after_change(ctx: context.Context, tx: store.Transaction, login_id: str) -> None:
    """What a new password ends in all accounts of a login: sessions and password links. It is audited in each."""
    await sessions.remove_of_login(tx, login_id)
    for user in await users.of_login(tx, login_id):
        await sessions.remove_link(tx, user.id)
        await audit_log.write(ctx, tx, user.account_id, "user.password_changed", user.email)


# Logging in: from an email and a password, or another proof, to a session in one of the person's accounts.
#
# `check_password` and `finish` are two steps, so that a second factor can be asked for between them; whoever proves who
# they are another way begins with `finish`. The context acts for nobody yet, from the client's address (`acting`).
#
# The email alone identifies nobody: it may have several logins. An unknown email, a wrong password and a user who is
# disabled get the same response; an email without a login costs one check of a password, too.


class LoggedIn(msgspec.Struct, frozen=True):
    session: people_sessions.Session
    user: users.User
    account: accounts.Account

    @property
    def token(self) -> str:
        return self.session.token

    @property
    def expires_at(self) -> int:
        """When the token expires, in microseconds."""
        return self.session.expires_at


def acting(ctx: context.Context, *, client_address: str, request_id: str = "") -> context.Context:
    """The context of somebody who has not yet proved who they are."""
    return dataclasses.replace(ctx, actor=callers.Actor(callers.ActorKind.PERSON, None, request_id, client_address))


async def check_password(ctx: context.Context, email: str, password: str) -> users.Login:
    """The login with this email and password. Raises Unauthorized, or RateLimited after several failures."""
    passwords.refuse_impossible("password", password)
    key = email_key(email) or ""
    async with ctx.store.reading() as tx:
        found = await _with_password(tx, key)
        people = await _accountable(tx, key, ctx.actor.client_address)
    matched = await _find(ctx, key, found, password)
    if matched is None:
        audit_failure(ctx, people)
        raise refusal()
    return matched


async def find_for_invitation(ctx: context.Context, email: str, password: str) -> users.Login | None:
    """The login of somebody who is invited with this email and types the password that they already have.

    Tries are throttled like logging in, and told to nobody: whoever invited does not learn whether the person belongs
    to other accounts. A login that the provider of an account can open stays with that account.
    """
    passwords.refuse_impossible("password", password)
    key = email_key(email) or ""
    async with ctx.store.reading() as tx:
        with_password = await _with_password(tx, key)
        found = [login for login in with_password if not await sso.is_of_account(tx, login.id)]
    return await _find(ctx, key, found, password)


async def check_own_password(ctx: context.Context, login: users.Login, password: str) -> bool:
    """Whether this is the password of a login; throttled like logging in. A failure is for the caller to record."""
    return await _find(ctx, login.email_key, [login], password) is not None


async def finish(
    ctx: context.Context,
    login: users.Login,
    *,
    methods: str,
    kind: storage_sessions.Kind = storage_sessions.Kind.BROWSER,
    device: str = "",
    account_id: str | None = None,
) -> LoggedIn:
    """Begin a session of a login, which has been proved by `methods`, in this account or in the one used last.

    It is recorded in the account's audit log. The person hears of a network that is new to them, unless it is near a
    known one, or all are new.
    """
    async with ctx.store.reading() as tx:
        user, account = await _membership(ctx, tx, login, account_id=account_id, methods=methods)
    await ctx.access_cache.login_failures.check(login_rules.of_sessions(login.id), now=ctx.clock(), what="logins")
    acting_user = dataclasses.replace(ctx, actor=dataclasses.replace(ctx.actor, user_id=user.id))
    network = login_rules.network_of(ctx.actor.client_address)
    async with ctx.store.transaction() as tx:
        # Both rows stay locked: whatever ends the sessions of this login or this user ends the new one, too.
        if not await users.lock_login(tx, login) or not await users.note_login(tx, user, now=ctx.clock()):
            raise refusal()
        known = await rates.networks_of(tx, login.id)
        await rates.put_network(tx, login.id, network, now=ctx.clock())
        begun = await people_sessions.begin(acting_user, tx, user, methods=methods, kind=kind, device=device)
        await audit_log.write(acting_user, tx, user.account_id, "user.logged_in", user.email, f"by {methods}")
        if known and network not in known and not login_rules.is_near(ctx.actor.client_address, known):
            await notice_outbox.write(
                tx, [_new_network(acting_user, user, network)], now=ctx.clock(), entropy=ctx.entropy
            )
    return LoggedIn(begun, user, account)


async def switch(ctx: context.Context, session: people_sessions.Session, account_id: str) -> LoggedIn:
    """Continue a session in another account of its login, with a new token and what was proved before."""
    async with ctx.store.reading() as tx:
        login = await users.login_by_id(tx, session.row.login_id)
        if login is None:
            raise tokens.refusal()
        user, account = await _membership(ctx, tx, login, account_id=account_id, methods=session.row.methods)
    acting_user = dataclasses.replace(ctx, actor=dataclasses.replace(ctx.actor, user_id=user.id, who=None))
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        if not await users.lock_login(tx, login) or not await users.note_login(tx, user, now=ctx.clock()):
            raise tokens.refusal()
        continued = await people_sessions.continue_as(ctx, tx, session, user)
        await audit_log.write(acting_user, tx, account.id, "user.logged_in", user.email, f"by {session.row.methods}")
    ctx.access_cache.invalidate()
    return LoggedIn(continued, user, account)


async def uses_approvals(ctx: context.Context, account_id: str) -> bool:
    """Whether a key of the account has a limit above which sends wait for an approval, or one still waits."""
    async with ctx.store.reading() as tx:
        return await accounts.uses_approvals(tx, account_id, after=ctx.clock() - approval_limit.LIFETIME)


async def accounts_of(ctx: context.Context, login_id: str) -> dict[str, str]:
    """The accounts of a login that its person can enter, with their names, sorted by name."""
    async with ctx.store.reading() as tx:
        return await users.accounts_of_login(tx, login_id)


def audit_failure(ctx: context.Context, people: Sequence[users.User]) -> None:
    """Record a failed login of these users, after the response: its time must not reveal whether there is one."""
    for user in people:
        with contextlib.suppress(errors.ServiceUnavailable):
            ctx.access_cache.password_checks.start(object(), functools.partial(_write_failure, ctx, user))


def refusal() -> errors.Unauthorized:
    return errors.Unauthorized("wrong email or password")


async def _with_password(tx: store.Transaction, email_key: str) -> list[users.Login]:
    return [login for login in await users.logins_by_email(tx, email_key) if login.password_hash is not None]


async def _find(
    ctx: context.Context, email_key: str, found: Sequence[users.Login], password: str
) -> users.Login | None:
    """The login whose password it is; an email without a login takes the same time."""
    client_address = ctx.actor.client_address
    pairs = [(login.id, login.password_hash) for login in found] or [(email_key, None)]
    async with ctx.store.reading() as tx:
        known = await users.logins_used_from(tx, email_key, login_rules.network_of(client_address))
    targets = [passwords.Target(name, password_hash, name in known) for name, password_hash in pairs]
    place = await passwords.check_user_password(ctx, password, targets, client_address=client_address)
    return None if place is None or not found else found[place]


async def _accountable(tx: store.Transaction, email_key: str, client_address: str) -> list[users.User]:
    """The users whose accounts hear of a failed login: those of the logins that were used from this network.

    From a network that none was used from, it is all of them. So whoever mistypes their password where they are used to
    log in does not show their address to an account that has invited them, or made a login with their email.
    """
    known = await users.logins_used_from(tx, email_key, login_rules.network_of(client_address))
    joined = [user for user in await users.by_email(tx, email_key) if user.login_id is not None]
    return [user for user in joined if user.login_id in known] or joined


async def _membership(
    ctx: context.Context, tx: store.Transaction, login: users.Login, *, account_id: str | None, methods: str
) -> tuple[users.User, accounts.Account]:
    """The user to act for, and the account: the one that is named, or the one that was used last."""
    found = await _enterable(tx, login.id)
    if account_id is not None:
        found = [pair for pair in found if pair[0].account_id == account_id]
        if not found:
            raise errors.Forbidden("account_id: you do not belong to this account, or it is closed")
    if not found:
        if any(user.disabled_at is None for user in await users.of_login(tx, login.id)):
            raise errors.AccountClosed(authentication.CLOSED)
        raise refusal()
    admitted = [pair for pair in found if await sso_rules.admits(ctx, tx, pair[0], methods)]
    if not admitted:
        audit_failure(ctx, [user for user, _ in found])
        raise sso_rules.sso_required()
    return max(admitted, key=lambda pair: (pair[0].last_login_at or 0, pair[0].id))


async def _enterable(tx: store.Transaction, login_id: str) -> list[tuple[users.User, accounts.Account]]:
    found = []
    for user in await users.of_login(tx, login_id):
        account = await accounts.by_id(tx, user.account_id) if user.disabled_at is None else None
        if account is not None and account.closed_at is None:
            found.append((user, account))
    return found


def _new_network(ctx: context.Context, user: users.User, network: str) -> notice_outbox.NewNotice:
    return notice_outbox.NewNotice(
        kind=notice_kinds.NEW_NETWORK,
        subject=f"{user.id} {network}",
        values={"email": user.email, "address": ctx.actor.client_address, "at": times.to_wire(ctx.clock())},
        account_id=user.account_id,
        user_id=user.id,
    )


async def _write_failure(ctx: context.Context, user: users.User) -> None:
    if await ctx.access_cache.login_failures.attempt(login_rules.of_audit(user.id), now=ctx.clock()):
        return
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, user.account_id, "user.login_failed", user.email)


# How a person proved who they are.
PASSWORD: Final = "password"  # noqa: S105 - the name of a method
OPERATOR: Final = "operator"


async def log_in(
    ctx: context.Context,
    email: str,
    password: str,
    *,
    client_address: str,
    request_id: str = "",
    kind: storage_sessions.Kind = storage_sessions.Kind.TOKEN,
    device: str = "",
    account_id: str | None = None,
    code: str | None = None,
) -> LoggedIn:
    """Start a session. An unknown email and a wrong password get the same response in the same time.

    A login with a second factor needs its code.
    """
    unproven = acting(ctx, client_address=client_address, request_id=request_id)
    found = await check_password(unproven, email, password)
    methods = PASSWORD
    if (await second_factors.of_login(ctx, found.id)).exist:
        if code is None:
            raise second_factors.required()
        methods = f"{PASSWORD} {await second_factors.check_code(unproven, found, code)}"
    return await finish(unproven, found, methods=methods, kind=kind, device=device, account_id=account_id)


async def issue_token(ctx: context.Context, user: users.User, *, methods: str = OPERATOR) -> LoggedIn:
    """A new API token for a user, for whom the caller may act."""
    async with ctx.store.transaction() as tx:
        account = await accounts.by_id(tx, user.account_id)
        if account is None:
            raise errors.NotFound("the account does not exist")
        if account.closed_at is not None:
            raise errors.AccountClosed(authentication.CLOSED)
        begun = await people_sessions.begin(ctx, tx, user, methods=methods, kind=storage_sessions.Kind.TOKEN)
    return LoggedIn(begun, user, account)


async def log_out(ctx: context.Context, who: callers.Caller) -> None:
    """End the session of the caller's token in every process."""
    if who.token_id is None:
        raise authentication.needs_token()
    await people_sessions.end(ctx, who.token_id)


async def change_password(
    ctx: context.Context,
    who: callers.Caller,
    *,
    current_password: str,
    new_password: str,
    kind: storage_sessions.Kind = storage_sessions.Kind.TOKEN,
    device: str = "",
) -> LoggedIn:
    """Change a person's password, in all their accounts. All earlier sessions end; the returned one is new."""
    passwords.refuse_impossible("current_password", current_password)
    passwords.refuse_impossible("new_password", new_password)
    user, account = await me(ctx, who)
    async with ctx.store.reading() as tx:
        found = await users.login_by_id(tx, user.login_id) if user.login_id is not None else None
    if found is None:
        raise authentication.needs_token()
    if not await check_own_password(ctx, found, current_password):
        audit_failure(ctx, [user])
        raise errors.Unauthorized("current_password: incorrect")
    passwords.check_new("new_password", new_password, email=user.email)
    new_hash = await hash_password(ctx, new_password, email=found.email, party=user.account_id)
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        now = ctx.clock()
        old_hash = found.password_hash or ""
        if not await users.replace_password(tx, found.id, old_hash=old_hash, new_hash=new_hash, now=now):
            raise errors.Conflict("current_password: was changed by another request at the same time")
        before = await storage_sessions.by_id(tx, who.token_id or "")
        await after_change(ctx, tx, found.id)
        changed = await users.by_id(tx, user.id) or user
        methods = before.methods if before is not None else PASSWORD
        begun = await people_sessions.begin(ctx, tx, changed, methods=methods, kind=kind, device=device)
    ctx.access_cache.invalidate()
    return LoggedIn(begun, changed, account)


async def me(ctx: context.Context, who: callers.Caller) -> tuple[users.User, accounts.Account]:
    async with ctx.store.reading() as tx:
        user = await users.by_id(tx, who.user_id) if who.user_id is not None else None
        account = await accounts.by_id(tx, who.account_id)
    if user is None or account is None:
        raise authentication.needs_token()
    return user, account
