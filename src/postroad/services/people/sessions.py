"""Sessions of users: a token in the cookie of a browser, or one for the API; begun, listed and ended."""

import dataclasses
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.people import callers, login_rules
from postroad.model.units import identifiers, labels, times
from postroad.services import audit_log
from postroad.services.people import authentication, last_used, tokens
from postroad.storage.engine import store
from postroad.storage.people import credentials, sessions, users

HOUR_SECONDS = 3_600
# Even an active session ends after this long: nobody stays logged in on a computer that they have left for good.
MAX_SESSION_DAYS: Final = 14
# Of a token without a name: a script that runs longer uses a named one, or an API key.
TOKEN_SECONDS: Final = 3_600
# A session is renewed when it has used this part of its time, not with every request.
RENEWED_PARTS = 8
# That of SHA-256.
_CSRF_TOKEN_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Session:
    """A token, its claims, and what is stored of its session."""

    token: str = field(repr=False)
    claims: tokens.Claims
    row: sessions.Session
    # A second factor is required of its person, who can do nothing else before it is set up.
    lacks_factor: bool = False

    @property
    def expires_at(self) -> int:
        """When the token expires, in microseconds."""
        return self.claims.expires_at


async def begin(
    ctx: context.Context,
    tx: store.Transaction,
    user: users.User,
    *,
    methods: str,
    kind: sessions.Kind = sessions.Kind.BROWSER,
    device: str = "",
    name: str = "",
    seconds: int | None = None,
    parent: Session | None = None,
    outlives_parent: bool = False,
) -> Session:
    """A new session for a user who has proved who they are, by `methods`, from where the context acts.

    A token lives for so many seconds, or as long as configured. One that is made in another session proves no more than
    that, and ends with it unless it outlives it.
    """
    if user.login_id is None:
        raise errors.Conflict(f"{user.email} has not accepted the invitation yet")
    now = ctx.clock()
    is_browser = kind is sessions.Kind.BROWSER
    if seconds is None:
        seconds = _idle_seconds(ctx) if is_browser else TOKEN_SECONDS
    claims = tokens.claims_for(user, now=now, seconds=seconds, token_id=ctx.new_id(identifiers.TOKEN, now=now))
    row = sessions.Session(
        id=claims.jti,
        login_id=user.login_id,
        user_id=user.id,
        account_id=user.account_id,
        kind=kind,
        name=name,
        device=device,
        network=login_rules.network_of(ctx.actor.client_address),
        methods=methods,
        created_at=now,
        last_used_at=now,
        expires_at=claims.iat * times.SECOND + MAX_SESSION_DAYS * times.DAY if is_browser else claims.expires_at,
        confirmed_at=now if parent is None else parent.row.confirmed_at,
        parent_id=None if parent is None or outlives_parent else parent.row.id,
    )
    await sessions.insert(tx, row)
    return _signed(ctx, claims, row)


async def continue_as(ctx: context.Context, tx: store.Transaction, session: Session, user: users.User) -> Session:
    """The session of a browser, continued for another user of its login: another id, the same end."""
    now, row = ctx.clock(), session.row
    claims = tokens.claims_for(
        user, now=now, seconds=_idle_seconds(ctx), token_id=ctx.new_id(identifiers.TOKEN, now=now)
    )
    claims = msgspec.structs.replace(claims, exp=min(claims.exp, row.expires_at // times.SECOND))
    continued = dataclasses.replace(row, id=claims.jti, user_id=user.id, account_id=user.account_id, last_used_at=now)
    if not await sessions.replace(tx, row.id, continued):
        raise tokens.refusal()
    return _signed(ctx, claims, continued)


async def authenticate(ctx: context.Context, token: str) -> tuple[callers.Caller, Session]:
    """The caller of a browser's session; Unauthorized when it has ended."""
    previous = [keys.session for keys in ctx.keys.previous]
    claims = tokens.read(token, ctx.keys.session, now=ctx.clock(), previous=previous)
    facts = await ctx.access_cache.refresh(ctx.clock())
    # All claims, so that only what was checked is cached.
    fact = ("session", claims)
    known: authentication.AuthenticatedCaller | None = facts.get(fact)
    if known is None:
        known = facts[fact] = await authentication.by_claims(ctx, claims)
    if known.session is None:
        raise tokens.refusal()
    ctx.access_cache.last_used.note((last_used.SESSION, claims.jti), now=ctx.clock())
    return known.caller, Session(token, claims, known.session, known.lacks_factor)


def renewed(ctx: context.Context, session: Session) -> Session | None:
    """The session with more time, when it is due for renewal and may have more."""
    claims, now = session.claims, ctx.clock() // times.SECOND
    until = min(now + _idle_seconds(ctx), session.row.expires_at // times.SECOND)
    if until - claims.exp < _idle_seconds(ctx) // RENEWED_PARTS:
        return None
    return _signed(ctx, msgspec.structs.replace(claims, exp=until), session.row)


async def confirm(ctx: context.Context, session: Session, *, methods: str) -> None:
    """Record that the person has proved again who they are; `methods` are all that the session has now."""
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        if not await sessions.confirm(tx, session.row.id, methods=methods, now=ctx.clock()):
            raise tokens.refusal()
    ctx.access_cache.invalidate()


async def refuse_ended(tx: store.Transaction, session_id: str) -> None:
    """Refuse to make something that lasts, in a session that has ended.

    A process learns of the end within a second. Whatever ends sessions raises the access version first, as the
    transaction must have done: the end is before it, and seen here, or after it, and finds what was made.
    """
    if await sessions.by_id(tx, session_id) is None:
        raise tokens.refusal()


async def end(
    ctx: context.Context, session_id: str, *, login_id: str | None = None, user_id: str | None = None
) -> sessions.Session:
    """End a session in every process, whichever of its tokens is presented, and the tokens that were made in it.

    NotFound for one that has ended, or is not of this login or this user.
    """
    if not identifiers.is_identifier(session_id, identifiers.TOKEN):
        raise _not_found()
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        row = await sessions.by_id(tx, session_id)
        if row is None or login_id not in {None, row.login_id} or user_id not in {None, row.user_id}:
            raise _not_found()
        await sessions.remove(tx, row.id)
        await audit_end(ctx, tx, row)
    ctx.access_cache.invalidate()
    return row


async def audit_end(ctx: context.Context, tx: store.Transaction, row: sessions.Session) -> None:
    """Record the end of a session in the audit log of its account."""
    user = await users.by_id(tx, row.user_id)
    action = "user.token_revoked" if row.kind == sessions.Kind.TOKEN else "user.session_ended"
    await audit_log.write(ctx, tx, row.account_id, action, user.email if user else "", row.name or row.device)


def csrf_token(ctx: context.Context, session: Session) -> str:
    """The CSRF token of a session, which nobody else can compute.

    It is masked with a random pad, which precedes it: the same token twice, in compressed pages, could be guessed from
    their lengths (BREACH).
    """
    pad = ctx.entropy(_CSRF_TOKEN_BYTES)
    return (pad + _xor(pad, _csrf_token(ctx.keys.session, session))).hex()


def is_csrf_token(ctx: context.Context, session: Session, given: str) -> bool:
    try:
        masked = bytes.fromhex(given)
    except ValueError:
        return False
    if len(masked) != 2 * _CSRF_TOKEN_BYTES:
        return False
    token = _xor(masked[:_CSRF_TOKEN_BYTES], masked[_CSRF_TOKEN_BYTES:])
    keys = (ctx.keys.session, *(previous.session for previous in ctx.keys.previous))
    return any(hmac.compare_digest(_csrf_token(key, session), token) for key in keys)


def _csrf_token(key: bytes, session: Session) -> bytes:
    return hmac.digest(key, b"form " + session.claims.jti.encode(), "sha256")


def _xor(pad: bytes, token: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(pad, token, strict=True))


def _not_found() -> errors.NotFound:
    return errors.NotFound("no such session; it may have ended")


def _signed(ctx: context.Context, claims: tokens.Claims, row: sessions.Session) -> Session:
    key = ctx.keys.session if row.kind == sessions.Kind.BROWSER else ctx.keys.token
    return Session(tokens.sign(claims, key), claims, row)


def is_idle(ctx: context.Context, row: sessions.Session) -> bool:
    """Whether the browser of a session has lost it, because it was not used for so long."""
    idle_at = row.last_used_at + _idle_seconds(ctx) * times.SECOND
    return row.kind == sessions.Kind.BROWSER and idle_at <= ctx.clock()


def _idle_seconds(ctx: context.Context) -> int:
    return ctx.settings.dashboard.session_hours * HOUR_SECONDS


# The sessions and tokens of a person: listed with device, network and last use, ended, and made by name.
#
# A person sees those of their login in all their accounts; whoever manages an account sees those of its users in this
# account. Each end is in the audit log of the account that the session was in. A token that is made in a session ends
# with it, unless it has a name and a date.

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


async def end_others(ctx: context.Context, current: sessions.Session) -> int:
    """End all sessions and tokens of a person but this one; returns how many."""
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        others = [
            session for session in await sessions.of_login(tx, current.login_id, now=0) if session.id != current.id
        ]
        ended = await sessions.remove_others(tx, current.login_id, but=current.id)
        for other in others:
            await audit_end(ctx, tx, other)
    ctx.access_cache.invalidate()
    return ended


async def make_token(
    ctx: context.Context,
    user: users.User,
    session: Session,
    *,
    name: str = "",
    expires_at: int | None = None,
) -> Session:
    """An API token of a user, which ends with the session that it is made in, or has a name and ends on a date."""
    now = ctx.clock()
    if bool(name) != (expires_at is not None):
        raise errors.InvalidRequest("name: a token that outlives this session has both a name and an expiry date")
    if expires_at is not None:
        labels.check_label("name", name)
        if not now < expires_at <= now + MAX_TOKEN_DAYS * times.DAY:
            raise errors.InvalidRequest("expires_on: must be in the future, at most a year from now")
    # The session may be renewed, or not: until its present end it lives in any case, unless somebody ends it.
    ending = min(session.expires_at, now + TOKEN_SECONDS * times.SECOND)
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        await refuse_ended(tx, session.row.id)
        made = await begin(
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
    return [row for row in rows if not is_idle(ctx, row)]
