"""Operators: the people who manage the installation, whichever account they belong to.

An operator is a user with one more role, so that there is one login for everything. The first one comes from
`postroad init` or `postroad operator add`; operators invite others. Whoever is no longer one loses the console, and
with it the API keys with the scope `operator` that they created, in every process within one second.
"""

import dataclasses

from postroad import context, errors
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.services.people import grants
from postroad.services.people import logins as auth_logins
from postroad.services.people import users as account_users
from postroad.storage.engine import store
from postroad.storage.people import credentials, sessions, sso, users


async def of_installation(ctx: context.Context) -> list[users.User]:
    async with ctx.store.reading() as tx:
        return await users.operators(tx)


async def add(ctx: context.Context, email: str, *, account_id: str | None = None) -> users.User:
    """Make a user an operator; no change for one who is.

    Refused if the user belongs to another account than is given: owners can create users with anybody's address, and
    they have the links that set their passwords. For the same reason links that were made before end.
    """
    grants.check_operator(ctx.actor)
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        found = await users.by_email(tx, auth_logins.email_key(email) or "")
        user = account_users.the_only(found, email, account_id=account_id)
        if user is None and found:
            raise errors.Conflict(
                f"user {email!r} belongs to account {found[0].account_id}; its owners could log in as this user. "
                "If you trust them, name this account as account_id"
            )
        if user is None:
            raise errors.NotFound(f"user {email!r} does not exist; create or invite the user first")
        if user.operator_since is None and user.joined_at is None:
            raise errors.Conflict(
                f"user {email!r} has not joined yet, and whoever invited this user has the link; wait until they have "
                "set a password"
            )
        if user.login_id is not None and await sso.is_of_account(tx, user.login_id):
            raise errors.Conflict(
                f"user {email!r} comes by the single sign-on of their account, whose owners could log in as this user; "
                "use another user"
            )
        since = user.operator_since or ctx.clock()
        await _set(ctx, tx, user, since=since)
        await sessions.remove_link(tx, user.id)
    ctx.access_cache.invalidate()
    return dataclasses.replace(user, operator_since=since)


async def invite(
    ctx: context.Context, account_id: str, *, email: str, role: callers.Role = callers.Role.READ_ONLY
) -> account_users.NewInvitation:
    """Create a user of this account, make them an operator, and return their link."""
    grants.check_operator(ctx.actor)
    invited = await account_users.invite(ctx, account_id, email=email, role=role)
    since = ctx.clock()
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        await _set(ctx, tx, invited.user, since=since)
    ctx.access_cache.invalidate()
    return dataclasses.replace(invited, user=dataclasses.replace(invited.user, operator_since=since))


async def remove(ctx: context.Context, user_id: str) -> users.User:
    """Withdraw the role; the user stays a user of their account. One operator who can log in stays."""
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        found = await users.operators(tx)
        user = next((one for one in found if one.id == user_id), None)
        if user is None:
            raise errors.NotFound("no such operator")
        able = [one.id for one in await users.operators_who_can_log_in(tx)]
        # At the command line, the next one can be added at once.
        if able == [user.id] and ctx.actor is not callers.OPERATOR:
            raise errors.Conflict("this is the last active operator; make another user an operator first")
        await _set(ctx, tx, user, since=None)
    ctx.access_cache.invalidate()
    return user


async def _set(ctx: context.Context, tx: store.Transaction, user: users.User, *, since: int | None) -> None:
    if since == user.operator_since:
        return
    await users.set_operator(tx, user.id, since=since)
    action = "operator.added" if since is not None else "operator.removed"
    await audit_log.write(ctx, tx, audit_log.INSTALLATION, action, user.email)
