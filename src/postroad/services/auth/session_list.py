"""The sessions and tokens of a person: listed with device, network and last use, ended, and made by name.

A person sees those of their login in all their accounts; whoever manages an account sees those of its users in this
account. Each end is in the audit log of the account that the session was in. A token that is made in a session ends
with it, unless it has a name and a date.
"""

from collections.abc import Sequence
from typing import Final

from postroad import errors
from postroad.model import labels, times
from postroad.services import audit_log, context
from postroad.services.auth import sessions as auth_sessions
from postroad.storage import access_version, sessions, users

# A year, to the end of its last day.
MAX_TOKEN_DAYS: Final = 366


async def of_person(ctx: context.Context, login_id: str) -> list[sessions.Session]:
    """The sessions of a login in all its accounts, the latest used first."""
    async with ctx.store.reading() as tx:
        return _alive(ctx, await sessions.of_login(tx, login_id, now=ctx.clock()))


async def of_user(ctx: context.Context, user: users.User) -> list[sessions.Session]:
    """The sessions of a user in the account of that user, the latest used first."""
    async with ctx.store.reading() as tx:
        return _alive(ctx, await sessions.of_user(tx, user.id, now=ctx.clock()))


async def end_own(ctx: context.Context, login_id: str, session_id: str) -> sessions.Session:
    """End a session of a person, whichever account it is in."""
    return await auth_sessions.end(ctx, session_id, login_id=login_id)


async def end_of_user(ctx: context.Context, user: users.User, session_id: str) -> sessions.Session:
    """End a session of a user, in the account of that user only."""
    return await auth_sessions.end(ctx, session_id, user_id=user.id)


async def end_others(ctx: context.Context, current: sessions.Session) -> int:
    """End all sessions and tokens of a person but this one; returns how many."""
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        others = [one for one in await sessions.of_login(tx, current.login_id, now=0) if one.id != current.id]
        ended = await sessions.remove_others(tx, current.login_id, but=current.id)
        for one in others:
            await auth_sessions.audit_end(ctx, tx, one)
    ctx.access_cache.invalidate()
    return ended


async def make_token(
    ctx: context.Context,
    user: users.User,
    session: auth_sessions.Session,
    *,
    name: str = "",
    expires_at: int | None = None,
) -> auth_sessions.Session:
    """An API token of a user, which ends with the session that it is made in, or has a name and ends on a date."""
    now = ctx.clock()
    if bool(name) != (expires_at is not None):
        raise errors.InvalidRequest("name: a token that outlives this session has both a name and a last day")
    if expires_at is not None:
        labels.check("name", name)
        if not now < expires_at <= now + MAX_TOKEN_DAYS * times.DAY:
            raise errors.InvalidRequest("last_day: must be in the future, at most a year from now")
    # The session may be renewed, or not: until its present end it lives in any case, unless somebody ends it.
    ending = min(session.expires_at, now + ctx.settings.security.token_seconds * times.SECOND)
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        await auth_sessions.refuse_ended(tx, session.row.id)
        made = await auth_sessions.begin(
            ctx,
            tx,
            user,
            methods=session.row.methods,
            kind=sessions.Kind.TOKEN,
            device=session.row.device,
            name=name,
            seconds=((expires_at or ending) - now) // times.SECOND,
            parent=session,
            outlives_parent=expires_at is not None,
        )
        await audit_log.write(ctx, tx, user.account_id, "user.token_made", user.email, name)
    ctx.access_cache.invalidate()
    return made


def _alive(ctx: context.Context, rows: Sequence[sessions.Session]) -> list[sessions.Session]:
    return [one for one in rows if not auth_sessions.is_idle(ctx, one)]
