"""Whose login it is that a provider vouches for, in which account, and in which role.

A subject of a provider is bound to a login when it first comes, by its verified email; from then on the email decides
nothing, so a changed email makes nobody somebody else, and an email that changes hands opens nothing.

The provider of an account is trusted with that account only: its owners can make it say anything. What it opens is a
login that reaches this account and no other; a user whose login reaches further gets a new one. It never opens the
login of an operator of the installation.

The provider of the installation is trusted with everybody: all users with the verified email are one person, who from
then on needs no password, and so nobody else's password counts. It alone makes operators.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import config, context, errors
from postroad.model.people import callers, identity_providers
from postroad.model.units import identifiers
from postroad.protocol.mime import address
from postroad.services import audit_log, usage_limits
from postroad.services.people import logins as auth_logins
from postroad.services.people import sso_connections
from postroad.storage.engine import store
from postroad.storage.people import accounts, credentials, sessions, sso, users

INSTALLATION: Final = sso.INSTALLATION
BY_SSO: Final = "by single sign-on"


class Plan(msgspec.Struct, frozen=True):
    """What a connection does with the people who come: the account, its domains, and the roles."""

    account_id: str
    domains: Sequence[str]
    role: str
    roles: Mapping[str, str]
    creates_users: bool


class _Arrival(msgspec.Struct, frozen=True):
    """Somebody who comes: by which connection, and with which verified email."""

    plan: Plan
    person: identity_providers.Person
    email: address.Mailbox


def plan_of(connection: sso_connections.Connection) -> Plan:
    """What the connection of an account does."""
    row = connection.row
    return Plan(row.account_id, connection.domains, row.role, row.roles, bool(row.creates_users))


def plan_of_installation(settings: config.Settings) -> Plan:
    """What the connection of the installation does."""
    sso = settings.sso
    names = [address.parse_domain(name) for name in sso.email_domains]
    return Plan(sso.account, names, sso.role, sso.groups, bool(sso.account))


def mailbox(plan: Plan, person: identity_providers.Person) -> address.Mailbox:
    """The email that the provider vouches for, and may. Raises Forbidden, which says what to change."""
    if person.email is None:
        raise errors.Forbidden(
            "the provider does not say that your email is verified (email_verified)"
            if person.has_email
            else "the provider did not send your email; the ID token must have the claims email and email_verified"
        )
    try:
        found = address.parse(person.email)
    except address.AddressError:
        raise errors.Forbidden("the provider sent an email that is not an address") from None
    if found.display_name is not None or (plan.domains and found.domain not in plan.domains):
        raise errors.Forbidden("your email is not in a domain that this single sign-on is for")
    return found


def role_of(plan: Plan, person: identity_providers.Person) -> callers.Role:
    """The role that a person's groups give, or else that of newcomers."""
    named = (role for group, role in plan.roles.items() if group in person.groups and role != config.OPERATOR)
    return callers.Role(next(named, plan.role))


async def enter_account(ctx: context.Context, plan: Plan, person: identity_providers.Person) -> users.Login:
    """The login of somebody for whom the provider of an account vouches."""
    arrival = _Arrival(plan, person, mailbox(plan, person))
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        await accounts.lock(tx, [plan.account_id])
        members = await users.of_account(tx, plan.account_id)
        user = await _known_member(tx, plan, person, members)
        is_new = user is None
        if user is None:
            user = next((one for one in members if address.key_of(one.email) == arrival.email.key), None)
            user = await _newcomer(ctx, tx, arrival, members) if user is None else user
            await _refuse_taken(tx, plan.account_id, person, user)
        if user.operator_since is not None:
            raise errors.Forbidden("operators of the installation cannot use the single sign-on of an account")
        if user.disabled_at is not None:
            raise errors.Forbidden("this user is disabled")
        before = user.login_id
        user = await _with_own_login(ctx, tx, user)
        if is_new or user.login_id != before:
            await _bind(ctx, tx, plan.account_id, person, user)
        await _follow_groups(ctx, tx, arrival, user, members)
        login = await users.login_by_id(tx, user.login_id or "")
    ctx.access_cache.invalidate()
    return _existing(login)


async def enter_installation(ctx: context.Context, plan: Plan, person: identity_providers.Person) -> users.Login:
    """The login of somebody for whom the provider of the installation vouches."""
    arrival = _Arrival(plan, person, mailbox(plan, person))
    if sso_connections.is_break_glass(ctx, arrival.email.address):
        raise errors.Forbidden("this login is for emergencies; use its password and second factor")
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        if plan.account_id and not await accounts.lock(tx, [plan.account_id]):
            raise errors.NotFound("sso.account names an account that does not exist")
        login = await _installation_login(ctx, tx, arrival)
        await _adopt(ctx, tx, arrival.email, login)
        if plan.creates_users:
            await _member_of_installation(ctx, tx, arrival, login)
        if not await users.of_login(tx, login.id):
            raise errors.Forbidden("you are not a user of an account here; ask an owner to invite you")
        found = await users.login_by_id(tx, login.id)
    ctx.access_cache.invalidate()
    return _existing(found)


async def _known_member(
    tx: store.Transaction, plan: Plan, person: identity_providers.Person, members: Sequence[users.User]
) -> users.User | None:
    """The user that the subject was bound to, if they still belong to the account."""
    known = await sso.find_identity(tx, plan.account_id, issuer=person.issuer, subject=person.subject)
    return None if known is None else next((one for one in members if one.login_id == known.login_id), None)


async def _newcomer(
    ctx: context.Context, tx: store.Transaction, arrival: _Arrival, members: Sequence[users.User]
) -> users.User:
    """A new user of the account of a connection."""
    plan, email = arrival.plan, arrival.email
    if not plan.creates_users:
        raise errors.Forbidden("you are not a user of this account; ask an owner to invite you")
    usage_limits.refuse_beyond_quota(ctx, "users", len(members))
    now = ctx.clock()
    user = users.User(
        id=ctx.new_id(identifiers.USER, now=now),
        account_id=plan.account_id,
        email=email.address,
        role=role_of(plan, arrival.person).value,
        tokens_valid_from=now,
        disabled_at=None,
        created_at=now,
    )
    if not await users.insert(tx, user, email_key=email.key):
        raise errors.Conflict("a user with this email was created at the same time; try again")
    await audit_log.write(ctx, tx, plan.account_id, "user.created", user.email, f"as {user.role}, {BY_SSO}")
    return user


async def _refuse_taken(
    tx: store.Transaction, connection: str, person: identity_providers.Person, user: users.User
) -> None:
    """Refuse an email whose user somebody else at the same provider is."""
    known = await sso.identities_of_login(tx, user.login_id) if user.login_id is not None else []
    if any(one.account_id == connection and one.issuer == person.issuer for one in known):
        raise errors.Forbidden("somebody else at your provider has logged in with this email before; ask an owner")


async def _with_own_login(ctx: context.Context, tx: store.Transaction, user: users.User) -> users.User:
    """The user with a login that reaches this account only."""
    login = await users.login_by_id(tx, user.login_id) if user.login_id is not None else None
    if login is not None and await users.lock_login(tx, login):
        is_elsewhere = any(not one.account_id for one in await sso.identities_of_login(tx, login.id))
        if not is_elsewhere and len(await users.of_login(tx, login.id)) == 1:
            return user
    await sessions.remove_link(tx, user.id)
    return await auth_logins.give_new(ctx, tx, user, password_hash=None)


async def _bind(
    ctx: context.Context, tx: store.Transaction, connection: str, person: identity_providers.Person, user: users.User
) -> None:
    identity = sso.Identity(connection, person.issuer, person.subject, user.login_id or "", ctx.clock())
    await sso.put_identity(tx, identity)
    await audit_log.write(_acting(ctx, user), tx, user.account_id, "user.sso_bound", user.email)


async def _follow_groups(
    ctx: context.Context,
    tx: store.Transaction,
    arrival: _Arrival,
    user: users.User,
    members: Sequence[users.User],
) -> None:
    """The role that the groups give now, if groups give roles. The last owner stays one."""
    role = role_of(arrival.plan, arrival.person)
    if not arrival.plan.roles or role == user.role:
        return
    owners = [one.id for one in members if one.role == callers.Role.OWNER and one.disabled_at is None and one.joined_at]
    if owners == [user.id]:
        return
    await users.set_role(tx, user.id, role.value)
    await sessions.remove_link(tx, user.id)
    detail = f"{user.role} to {role}, {BY_SSO}"
    await audit_log.write(_acting(ctx, user), tx, user.account_id, "user.role_changed", user.email, detail)


async def _installation_login(ctx: context.Context, tx: store.Transaction, arrival: _Arrival) -> users.Login:
    """The login that the subject was bound to, or a new one."""
    person, email = arrival.person, arrival.email
    known = await sso.find_identity(tx, INSTALLATION, issuer=person.issuer, subject=person.subject)
    login = await users.login_by_id(tx, known.login_id) if known is not None else None
    if login is not None:
        return login
    for user in await users.by_email(tx, email.key):
        await _refuse_taken(tx, INSTALLATION, person, user)
    now = ctx.clock()
    login = users.Login(ctx.new_id(identifiers.LOGIN, now=now), email.address, email.key, None, now, now)
    await users.insert_login(tx, login)
    await sso.put_identity(tx, sso.Identity(INSTALLATION, person.issuer, person.subject, login.id, now))
    return login


async def _adopt(ctx: context.Context, tx: store.Transaction, email: address.Mailbox, login: users.Login) -> None:
    """Give all users with this email to the person, also those who were invited. One of another provider stays."""
    for user in await users.by_email(tx, email.key):
        if user.login_id == login.id or user.disabled_at is not None:
            continue
        if user.login_id is not None and await sso.identities_of_login(tx, user.login_id):
            continue
        await sessions.remove_link(tx, user.id)
        await auth_logins.give(ctx, tx, user, login_id=login.id)
        await audit_log.write(_acting(ctx, user), tx, user.account_id, "user.sso_bound", user.email)


async def _member_of_installation(
    ctx: context.Context, tx: store.Transaction, arrival: _Arrival, login: users.Login
) -> None:
    """The person as a user of the account that newcomers join, with the roles that their groups give."""
    plan, email = arrival.plan, arrival.email
    members = await users.of_account(tx, plan.account_id)
    user = next((one for one in members if one.login_id == login.id), None)
    if user is None:
        if any(address.key_of(one.email) == email.key for one in members):
            return  # disabled, or somebody else's
        user = await _newcomer(ctx, tx, arrival, members)
        await auth_logins.give(ctx, tx, user, login_id=login.id)
    if user.disabled_at is None:
        await _follow_groups(ctx, tx, arrival, user, members)
        await _follow_operator_groups(ctx, tx, arrival, user)


async def _follow_operator_groups(
    ctx: context.Context, tx: store.Transaction, arrival: _Arrival, user: users.User
) -> None:
    """Make the user an operator, or end it, if groups do. The last operator stays one."""
    groups = [group for group, role in arrival.plan.roles.items() if role == config.OPERATOR]
    is_operator = any(group in arrival.person.groups for group in groups)
    if not groups or is_operator == (user.operator_since is not None):
        return
    able = [one.id for one in await users.operators(tx) if one.disabled_at is None and one.joined_at is not None]
    if able == [user.id]:
        return
    await users.set_operator(tx, user.id, since=ctx.clock() if is_operator else None)
    action = "operator.added" if is_operator else "operator.removed"
    await audit_log.write(_acting(ctx, user), tx, audit_log.INSTALLATION, action, user.email, BY_SSO)


def _acting(ctx: context.Context, user: users.User) -> context.Context:
    """Whoever comes acts as their user."""
    return dataclasses.replace(
        ctx, actor=dataclasses.replace(ctx.actor, kind=callers.ActorKind.PERSON, user_id=user.id)
    )


def _existing(login: users.Login | None) -> users.Login:
    if login is None:
        raise errors.Conflict("this login was removed at the same time; try again")
    return login
