"""Browser sessions: a token in a cookie, and the CSRF token of forms.

The session token is made like an API token, with a key of its own, so that neither can replace the other. It is valid
for `dashboard.session_hours` and renewed while in use, with the same id and at most for `dashboard.session_days` after
the login. What revokes a user's tokens also ends their sessions: a new password, disabling, a logout.
"""

import hashlib
import hmac
from dataclasses import dataclass, field

import msgspec

from postroad.model import caller, identifiers, times
from postroad.services import context
from postroad.services.auth import authentication as services_authentication
from postroad.services.auth import schemes, tokens
from postroad.storage import access_version, users

HOUR_SECONDS = 3_600
# A session is renewed when it has used this part of its time, not with every request.
RENEWED_PARTS = 8


@dataclass(frozen=True, slots=True)
class Session:
    """A cookie's token, and its claims."""

    token: str = field(repr=False)
    claims: tokens.Claims


async def log_in(
    ctx: context.Context, email: str, password: str, *, client_address: str, request_id: str = ""
) -> Session:
    """Start a session, as a login to the API does."""
    known = await services_authentication.log_in(
        ctx, email, password, client_address=client_address, request_id=request_id
    )
    return begin(ctx, known.user)


def begin(ctx: context.Context, user: users.User) -> Session:
    """A new session for an authenticated user."""
    now = ctx.clock()
    token_id = ctx.new_id(identifiers.TOKEN, now=now)
    return _signed(ctx, tokens.claims_for(user, now=now, seconds=_idle_seconds(ctx), token_id=token_id))


async def authenticate(ctx: context.Context, token: str) -> tuple[caller.Caller, Session]:
    """The caller of a session; Unauthorized when it has ended."""
    previous = [keys.session for keys in ctx.keys.previous]
    claims = tokens.read(token, ctx.keys.session, now=ctx.clock(), previous=previous)
    facts = await ctx.access_cache.refresh(ctx.clock())
    # All claims, so that only what was checked is cached.
    fact = ("session", claims)
    known: schemes.AuthenticatedCaller | None = facts.get(fact)
    if known is None:
        known = facts[fact] = await schemes.by_claims(ctx, claims)
    return known.caller, Session(token, claims)


def renewed(ctx: context.Context, session: Session) -> Session | None:
    """The session with more time, when it is due for renewal and may have more."""
    claims, now = session.claims, ctx.clock() // times.SECOND
    until = min(now + _idle_seconds(ctx), _last_second(ctx, claims))
    if until - claims.exp < _idle_seconds(ctx) // RENEWED_PARTS:
        return None
    return _signed(ctx, msgspec.structs.replace(claims, exp=until))


async def end(ctx: context.Context, who: caller.Caller, session: Session) -> None:
    """End a session in every process, whichever of its tokens is presented."""
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        over = _last_second(ctx, session.claims) * times.SECOND
        await users.revoke_token(tx, session.claims.jti, account_id=who.account_id, expires_at=over)
    ctx.access_cache.invalidate()


def csrf_token(ctx: context.Context, session: Session) -> str:
    """The CSRF token of a session; nobody else can compute it."""
    return _csrf_token(ctx.keys.session, session)


def is_csrf_token(ctx: context.Context, session: Session, given: str) -> bool:
    """Whether a form belongs to this session."""
    keys = (ctx.keys.session, *(previous.session for previous in ctx.keys.previous))
    return any(hmac.compare_digest(_csrf_token(key, session).encode(), given.encode()) for key in keys)


def _csrf_token(key: bytes, session: Session) -> str:
    return hmac.new(key, b"form " + session.claims.jti.encode(), hashlib.sha256).hexdigest()


def _signed(ctx: context.Context, claims: tokens.Claims) -> Session:
    return Session(tokens.sign(claims, ctx.keys.session), claims)


def _idle_seconds(ctx: context.Context) -> int:
    return ctx.settings.dashboard.session_hours * HOUR_SECONDS


def _last_second(ctx: context.Context, claims: tokens.Claims) -> int:
    return claims.iat + ctx.settings.dashboard.session_days * 24 * HOUR_SECONDS
