"""Users of an account: invite, create, list, change, disable and remove.

A user is the member of one account; what they log in with is their login, which they may also use for other accounts
(docs/decisions/0025-logins.md). Disabling and removal end every session of the user in every process within one second,
and a changed password those of the login in all its accounts. What becomes of the API keys and SMTP credentials that
they created: `credentials.py`.

Changes to users lock the account's row, so that two owners who remove each other cannot both succeed: an account keeps
an owner who can log in. Only an operator can disable that one.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from postroad import context, errors
from postroad.keys import installation_keys
from postroad.mail import notice_kinds, notice_outbox
from postroad.model.people import callers, grants
from postroad.model.units import identifiers, labels, times
from postroad.protocol.mime import address
from postroad.services import audit_log, usage_limits
from postroad.services.people import credentials, password_links, passwords
from postroad.services.people import logins as auth_logins
from postroad.storage.engine import store
from postroad.storage.operations import notices
from postroad.storage.people import accounts, sessions, sso, users
from postroad.storage.people import credentials as stored_credentials

# 20 characters of 62 are 119 bits.
GENERATED_CHARACTERS: Final = 20
_HAND_OVER: Final = credentials.SecretsAction.HAND_OVER
_TAKEN: Final = "email: this address already belongs to a user of this account"


@dataclass(frozen=True, slots=True)
class NewInvitation:
    user: users.User
    link_token: str = field(repr=False)
    expires_at: int


async def create(
    ctx: context.Context, account_id: str, *, email: str, password: str | None, role: callers.Role
) -> tuple[users.User, str]:
    """Create a user; the password is generated when none is given."""
    if password is not None:
        passwords.check_new("password", password, email=email)
    chosen = installation_keys.random_text(GENERATED_CHARACTERS) if password is None else password
    mailbox = check_address(email)
    password_hash = await auth_logins.hash_password(ctx, chosen, email=email, party=account_id)
    user = _new(ctx, account_id, mailbox, role=role)
    async with ctx.store.transaction() as tx:
        await _insert(ctx, tx, user, mailbox, members=await _lock_members(ctx, tx, account_id))
        user = await auth_logins.give_new(ctx, tx, user, password_hash=password_hash)
        await audit_log.write(ctx, tx, account_id, "user.created", user.email, f"as {role}")
    return user, chosen


async def invite(ctx: context.Context, account_id: str, *, email: str, role: callers.Role) -> NewInvitation:
    """Create a user without a password, and a link for setting one."""
    grants.check_user(ctx.actor)
    mailbox = check_address(email)
    user = _new(ctx, account_id, mailbox, role=role)
    async with ctx.store.transaction() as tx:
        await _insert(ctx, tx, user, mailbox, members=await _lock_members(ctx, tx, account_id))
        made = await password_links.create(ctx, tx, user)
        await _mail_link(ctx, tx, user, made)
        await audit_log.write(ctx, tx, account_id, "user.invited", user.email, f"as {role}")
    return NewInvitation(user, made.token, made.expires_at)


async def of_account(ctx: context.Context, account_id: str) -> list[users.User]:
    async with ctx.store.scanning(account_id) as tx:
        return await users.of_account(tx, account_id)


async def find(ctx: context.Context, account_id: str, user_id: str) -> users.User:
    async with ctx.store.reading() as tx:
        user = await users.by_id(tx, user_id) if identifiers.is_identifier(user_id, identifiers.USER) else None
    if user is None or user.account_id != account_id:
        raise _not_found()
    return user


async def by_email(ctx: context.Context, email: str, *, account_id: str | None = None) -> users.User | None:
    """The user with this email, in this account or in any; for operators. Refused if several accounts have one."""
    async with ctx.store.reading() as tx:
        return the_only(await users.by_email(tx, auth_logins.email_key(email) or ""), email, account_id=account_id)


def the_only(found: Sequence[users.User], email: str, *, account_id: str | None) -> users.User | None:
    """The user in this account, or the only one there is."""
    if account_id is not None:
        return next((user for user in found if user.account_id == account_id), None)
    if len(found) > 1:
        named = ", ".join(sorted(user.account_id for user in found))
        raise errors.Conflict(f"user {email!r} belongs to several accounts: {named}; name the account")
    return found[0] if found else None


async def set_password(ctx: context.Context, account_id: str, user_id: str, *, password: str) -> users.User:
    """Set a person's password without the old one, in all their accounts; for operators."""
    user = await find(ctx, account_id, user_id)
    passwords.check_new("password", password, email=user.email)
    password_hash = await auth_logins.hash_password(ctx, password, email=user.email, party=account_id)
    async with ctx.store.transaction() as tx:
        await stored_credentials.bump_access_version(tx)
        current = await users.by_id(tx, user.id)
        if current is None:
            raise _not_found()
        await auth_logins.set_password(ctx, tx, current, password_hash=password_hash)
    ctx.access_cache.invalidate()
    return await find(ctx, account_id, user_id)


async def create_password_link(
    ctx: context.Context, account_id: str, user_id: str, *, is_recovery: bool = False
) -> password_links.NewLink:
    """Create a link for setting a new password; earlier links stop working.

    One for recovery also removes the second factors of whoever has lost them.
    """
    grants.check_user(ctx.actor)
    async with ctx.store.transaction() as tx:
        members = await _lock_members(ctx, tx, account_id)
        user = _member(members, user_id)
        _check_owners(ctx, members, user.role)
        _refuse_operator(ctx, user)
        if user.disabled_at is not None:
            raise errors.Conflict("this user is disabled; enable the user first")
        if user.id == ctx.actor.user_id:
            # A stolen session must not suffice to change the password: a link would allow it.
            raise errors.Conflict("to change your own password, use your profile")
        made = await password_links.create(ctx, tx, user, is_recovery=is_recovery)
        await _mail_link(ctx, tx, user, made, is_recovery=is_recovery)
        action = "user.recovery_link_made" if is_recovery else "user.password_link_made"
        await audit_log.write(ctx, tx, account_id, action, user.email)
    return made


async def disable(ctx: context.Context, account_id: str, user_id: str, *, hand_over: bool = False) -> users.User:
    """Disable a user. What they created stops working until they are enabled, unless it is handed over."""
    return await change(ctx, account_id, user_id, enabled=False, hand_over=hand_over)


async def enable(ctx: context.Context, account_id: str, user_id: str) -> users.User:
    """Enable a user; earlier sessions stay revoked."""
    return await change(ctx, account_id, user_id, enabled=True)


async def change(
    ctx: context.Context,
    account_id: str,
    user_id: str,
    *,
    role: callers.Role | None = None,
    enabled: bool | None = None,
    hand_over: bool = False,
) -> users.User:
    """Change a user's role, or whether they are enabled, or take over the API keys and SMTP credentials they created.

    Values that are the same already have no effect.
    """
    grants.check_user(ctx.actor)
    async with ctx.store.transaction() as tx:
        await stored_credentials.bump_access_version(tx)
        members = await _lock_members(ctx, tx, account_id)
        user = _member(members, user_id)
        _check_owners(ctx, members, user.role, role)
        _refuse_operator(ctx, user)
        if role is not None and role != user.role:
            await _set_role(ctx, tx, members, user, role=role)
        if enabled is not None and enabled != (user.disabled_at is None):
            await _set_enabled(ctx, tx, members, user, enabled=enabled)
        if hand_over:
            await credentials.settle_secrets(ctx, tx, user, _HAND_OVER)
    ctx.access_cache.invalidate()
    return await find(ctx, account_id, user_id)


async def set_time_zone(ctx: context.Context, user: users.User, time_zone: str) -> None:
    """Change the time zone in which pages show a user's times."""
    chosen = times.check_time_zone(time_zone)
    if chosen == user.time_zone:
        return
    async with ctx.store.transaction() as tx:
        await users.set_time_zone(tx, user.id, chosen)
        await audit_log.write(ctx, tx, user.account_id, "user.time_zone_changed", user.email, f"to {chosen}")


async def remove(
    ctx: context.Context,
    account_id: str,
    user_id: str,
    *,
    secrets: credentials.SecretsAction | None = None,
) -> tuple[users.User, credentials.CreatedSecrets]:
    """Remove a user, and revoke what they created or hand it over; returns what was revoked. Audit log entries stay.

    By default what works keeps working: that of a disabled user does not.
    """
    async with ctx.store.transaction() as tx:
        await stored_credentials.bump_access_version(tx)
        members = await _lock_members(ctx, tx, account_id)
        user = _member(members, user_id)
        _check_owners(ctx, members, user.role)
        _refuse_operator(ctx, user)
        _refuse_last_owner(members, user)
        if secrets is None:
            secrets = _HAND_OVER if user.disabled_at is None else credentials.SecretsAction.REVOKE
        revoked = await credentials.settle_secrets(ctx, tx, user, secrets)
        is_told = secrets is not _HAND_OVER and (revoked.api_keys or revoked.credentials)
        detail = "and revoked their API keys and SMTP credentials" if is_told else ""
        # Before the removal: users who remove themselves need a name in the log.
        await audit_log.write(ctx, tx, account_id, "user.removed", user.email, detail)
        await sessions.remove_link(tx, user.id)
        await sessions.remove_of_user(tx, user.id)
        await notices.remove_choices(tx, user.id)
        await users.remove(tx, user.id)
        if user.login_id is not None:
            await users.remove_unused_logins(tx, user.login_id)
    ctx.access_cache.invalidate()
    return user, revoked


async def _mail_link(
    ctx: context.Context,
    tx: store.Transaction,
    user: users.User,
    made: password_links.NewLink,
    *,
    is_recovery: bool = False,
) -> None:
    """Send a link to its user too. About an address there is one in a few minutes, whichever account invites it."""
    if not ctx.settings.operator.sender:
        return
    is_operator = ctx.actor.kind is callers.ActorKind.OPERATOR
    values = {
        "email": user.email,
        "inviter": "The operator of this service" if is_operator else "An owner or an admin of the account",
        "sealed_token": password_links.seal(ctx, user.id, made.token),
        "expires_at": times.to_wire(made.expires_at),
    }
    kind = notice_kinds.RECOVERY_LINK if is_recovery else notice_kinds.PASSWORD_LINK
    told = notice_outbox.NewNotice(
        kind=notice_kinds.INVITATION if user.joined_at is None else kind,
        subject=auth_logins.email_key(user.email) or user.id,
        values=values,
        account_id=user.account_id,
        user_id=user.id,
    )
    await notice_outbox.write(tx, [told], now=ctx.clock(), entropy=ctx.entropy)


async def _set_role(
    ctx: context.Context, tx: store.Transaction, members: Sequence[users.User], user: users.User, *, role: callers.Role
) -> None:
    _refuse_last_owner(members, user)
    await users.set_role(tx, user.id, role)
    if role == callers.Role.OWNER:
        # An admin may have made them, who must not become an owner with them.
        await sessions.remove_link(tx, user.id)
    await audit_log.write(ctx, tx, user.account_id, "user.role_changed", user.email, f"{user.role} to {role}")


async def _set_enabled(
    ctx: context.Context, tx: store.Transaction, members: Sequence[users.User], user: users.User, *, enabled: bool
) -> None:
    if not enabled and ctx.actor.kind is not callers.ActorKind.OPERATOR:
        _refuse_last_owner(members, user)
    now = ctx.clock()
    await users.set_disabled(tx, user.id, disabled_at=None if enabled else now, now=now)
    await sessions.remove_of_user(tx, user.id)
    await sessions.remove_link(tx, user.id)
    await audit_log.write(ctx, tx, user.account_id, "user.enabled" if enabled else "user.disabled", user.email)


def _new(ctx: context.Context, account_id: str, mailbox: address.Mailbox, *, role: callers.Role) -> users.User:
    now = ctx.clock()
    return users.User(
        id=ctx.new_id(identifiers.USER, now=now),
        account_id=account_id,
        email=mailbox.address,
        role=role.value,
        tokens_valid_from=now,
        disabled_at=None,
        created_at=now,
    )


async def _insert(
    ctx: context.Context,
    tx: store.Transaction,
    user: users.User,
    mailbox: address.Mailbox,
    *,
    members: Sequence[users.User],
) -> None:
    _check_owners(ctx, members, user.role)
    usage_limits.refuse_beyond_quota(ctx, "users", len(members))
    if not await users.insert(tx, user, email_key=mailbox.key):
        raise errors.Conflict(_TAKEN)


async def _lock_members(ctx: context.Context, tx: store.Transaction, account_id: str) -> list[users.User]:
    """The users of an account, locked until the transaction ends.

    The acting user could manage users when the request arrived; another one may have changed that since.
    """
    if account_id not in await accounts.lock(tx, [account_id]):
        raise errors.NotFound("the account does not exist")
    members = await users.of_account(tx, account_id)
    role = _acting_role(ctx, members)
    if ctx.actor.kind is callers.ActorKind.PERSON and (
        role is None or callers.Permission.MANAGE not in callers.ROLE_PERMISSIONS[callers.Role(role)]
    ):
        raise errors.Forbidden("only an owner or an admin of this account can do this")
    return members


def _acting_role(ctx: context.Context, members: Sequence[users.User]) -> str | None:
    """The role of the acting user, unless disabled; None for whoever is no user of this account."""
    return next(
        (member.role for member in members if member.id == ctx.actor.user_id and member.disabled_at is None), None
    )


def _check_owners(ctx: context.Context, members: Sequence[users.User], *roles: str | None) -> None:
    """Refuse to give or change the role of an owner to those who may not."""
    if callers.Role.OWNER in roles:
        grants.check_owner(ctx.actor, _acting_role(ctx, members))


def _member(members: Sequence[users.User], user_id: str) -> users.User:
    found = next((member for member in members if member.id == user_id), None)
    if found is None:
        raise _not_found()
    return found


def _refuse_last_owner(members: Sequence[users.User], user: users.User) -> None:
    """Refuse to remove, disable or demote the only active owner."""
    able = [
        member.id
        for member in members
        if member.role == callers.Role.OWNER and (member.disabled_at is None and member.joined_at is not None)
    ]
    if able == [user.id]:
        raise errors.Conflict("this is the last active owner; make another user an owner first")


def _refuse_operator(ctx: context.Context, user: users.User) -> None:
    """Refuse to change an operator, unless it is an operator who does: a password link would give the role away."""
    if user.operator_since is not None and ctx.actor.kind is not callers.ActorKind.OPERATOR:
        raise errors.Forbidden("this user operates the installation; only an operator can change this user")


def check_address(email: str) -> address.Mailbox:
    mailbox = labels.parse_mailbox("email", email)
    if mailbox.display_name is not None or mailbox.written != mailbox.written.strip(" "):
        raise errors.InvalidRequest("email: give the address alone, without a name")
    return mailbox


def _not_found() -> errors.NotFound:
    return errors.NotFound("no such user in this account")


# Operators: the people who manage the installation, whichever account they belong to.
#
# An operator is a user with one more role, so that there is one login for everything. The first one comes from
# `postroad init` or `postroad operator add`; operators invite others. Whoever is no longer one loses the console, and
# with it the API keys with the scope `operator` that they created, in every process within one second.


async def operators(ctx: context.Context) -> list[users.User]:
    async with ctx.store.reading() as tx:
        return await users.operators(tx)


async def add_operator(ctx: context.Context, email: str, *, account_id: str | None = None) -> users.User:
    """Make a user an operator; no change for one who is.

    Refused if the user belongs to another account than is given: owners can create users with anybody's address, and
    they have the links that set their passwords. For the same reason links that were made before end.
    """
    grants.check_operator(ctx.actor)
    async with ctx.store.transaction() as tx:
        await stored_credentials.bump_access_version(tx)
        found = await users.by_email(tx, auth_logins.email_key(email) or "")
        user = the_only(found, email, account_id=account_id)
        if user is None and found:
            raise errors.Conflict(
                f"user {email!r} belongs to account {found[0].account_id}; its owners could log in as this user. "
                "If you trust them, name this account as account_id"
            )
        if user is None:
            raise errors.NotFound(f"user {email!r} does not exist; create or invite the user first")
        if user.operator_since is None and user.joined_at is None:
            raise errors.Conflict(
                f"user {email!r} has not accepted the invitation yet, and whoever invited this user has the link; wait "
                "until they have set a password"
            )
        if user.login_id is not None and await sso.is_of_account(tx, user.login_id):
            raise errors.Conflict(
                f"user {email!r} logs in through the single sign-on of their account, whose owners could log in as "
                "this user; use another user"
            )
        since = user.operator_since or ctx.clock()
        await _set_operator(ctx, tx, user, since=since)
        await sessions.remove_link(tx, user.id)
    ctx.access_cache.invalidate()
    return dataclasses.replace(user, operator_since=since)


async def invite_operator(
    ctx: context.Context, account_id: str, *, email: str, role: callers.Role = callers.Role.READ_ONLY
) -> NewInvitation:
    """Create a user of this account, make them an operator, and return their link."""
    grants.check_operator(ctx.actor)
    invited = await invite(ctx, account_id, email=email, role=role)
    since = ctx.clock()
    async with ctx.store.transaction() as tx:
        await stored_credentials.bump_access_version(tx)
        await _set_operator(ctx, tx, invited.user, since=since)
    ctx.access_cache.invalidate()
    return dataclasses.replace(invited, user=dataclasses.replace(invited.user, operator_since=since))


async def remove_operator(ctx: context.Context, user_id: str) -> users.User:
    """Withdraw the role; the user stays a user of their account. One operator who can log in stays."""
    async with ctx.store.transaction() as tx:
        await stored_credentials.bump_access_version(tx)
        user = next((operator for operator in await users.operators(tx) if operator.id == user_id), None)
        if user is None:
            raise errors.NotFound("no such operator")
        able = [operator.id for operator in await users.operators_who_can_log_in(tx)]
        # At the command line, the next one can be added at once.
        if able == [user.id] and ctx.actor is not callers.OPERATOR:
            raise errors.Conflict("this is the last active operator; make another user an operator first")
        await _set_operator(ctx, tx, user, since=None)
    ctx.access_cache.invalidate()
    return user


async def _set_operator(ctx: context.Context, tx: store.Transaction, user: users.User, *, since: int | None) -> None:
    if since == user.operator_since:
        return
    await users.set_operator(tx, user.id, since=since)
    action = "operator.added" if since is not None else "operator.removed"
    await audit_log.write(ctx, tx, audit_log.INSTALLATION, action, user.email)
