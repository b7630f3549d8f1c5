"""Sessions: a token in the cookie of a browser, or one for the API, with a row that says where it comes from.

A session without a row has ended, in every process within one second. The token of a browser is made like one for the
API, with a key of its own, so that neither can replace the other. It is valid for `dashboard.session_hours` and renewed
while in use, with the same id and at most for `dashboard.session_days` after the login, when its row ends.
"""

import dataclasses
import hashlib
import hmac
from dataclasses import dataclass, field

import msgspec

from postroad import errors
from postroad.model import caller, identifiers, login_throttle, times
from postroad.services import audit_log, context
from postroad.services.auth import last_used, schemes, tokens
from postroad.storage import access_version, sessions, store, users

HOUR_SECONDS = 3_600
# A session is renewed when it has used this part of its time, not with every request.
RENEWED_PARTS = 8


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
        raise errors.Conflict(f"{user.email} has not joined yet")
    now = ctx.clock()
    is_browser = kind is sessions.Kind.BROWSER
    if seconds is None:
        seconds = _idle_seconds(ctx) if is_browser else ctx.settings.security.token_seconds
    claims = tokens.claims_for(user, now=now, seconds=seconds, token_id=ctx.new_id(identifiers.TOKEN, now=now))
    row = sessions.Session(
        id=claims.jti,
        login_id=user.login_id,
        user_id=user.id,
        account_id=user.account_id,
        kind=kind,
        name=name,
        device=device,
        network=login_throttle.network_of(ctx.actor.client_address),
        methods=methods,
        created_at=now,
        last_used_at=now,
        expires_at=_last_second(ctx, claims) * times.SECOND if is_browser else claims.expires_at,
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


async def authenticate(ctx: context.Context, token: str) -> tuple[caller.Caller, Session]:
    """The caller of a browser's session; Unauthorized when it has ended."""
    previous = [keys.session for keys in ctx.keys.previous]
    claims = tokens.read(token, ctx.keys.session, now=ctx.clock(), previous=previous)
    facts = await ctx.access_cache.refresh(ctx.clock())
    # All claims, so that only what was checked is cached.
    fact = ("session", claims)
    known: schemes.AuthenticatedCaller | None = facts.get(fact)
    if known is None:
        known = facts[fact] = await schemes.by_claims(ctx, claims)
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
        await access_version.bump(tx)
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
        await access_version.bump(tx)
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
    """The CSRF token of a session; nobody else can compute it."""
    return _csrf_token(ctx.keys.session, session)


def is_csrf_token(ctx: context.Context, session: Session, given: str) -> bool:
    """Whether a form belongs to this session."""
    keys = (ctx.keys.session, *(previous.session for previous in ctx.keys.previous))
    return any(hmac.compare_digest(_csrf_token(key, session).encode(), given.encode()) for key in keys)


def _csrf_token(key: bytes, session: Session) -> str:
    return hmac.new(key, b"form " + session.claims.jti.encode(), hashlib.sha256).hexdigest()


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


def _last_second(ctx: context.Context, claims: tokens.Claims) -> int:
    return claims.iat + ctx.settings.dashboard.session_days * 24 * HOUR_SECONDS
