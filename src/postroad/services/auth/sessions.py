"""Sessions of people who use a browser: a token in a cookie, and the word that proves that a form is ours.

The token is made like those of the API, with a key of its own, so that neither can be used in the other's place. It
lives for `dashboard.session_hours` and is made anew while somebody is busy, under the same id and until
`dashboard.session_days` after the log-in. What ends a person's tokens ends their sessions as well: a new password, a
lock-out, a log-out.
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
# A session is made anew when it has lost this part of its time: not with every request.
RENEWED_PARTS = 8


@dataclass(frozen=True, slots=True)
class Session:
    """What a cookie holds, and the claims in it."""

    token: str = field(repr=False)
    claims: tokens.Claims


async def log_in(ctx: context.Context, email: str, password: str, *, client_address: str) -> Session:
    """Open a session for a person, as a log-in to the API would."""
    known = await services_authentication.log_in(ctx, email, password, client_address=client_address)
    return begin(ctx, known.user)


def begin(ctx: context.Context, user: users.User) -> Session:
    """A new session for a person who has proven who they are."""
    now = ctx.clock()
    token_id = ctx.new_id(identifiers.TOKEN, now=now)
    return _signed(ctx, tokens.claims_for(user, now=now, seconds=_idle_seconds(ctx), token_id=token_id))


async def authenticate(ctx: context.Context, token: str) -> tuple[caller.Caller, Session]:
    """Who holds a session; Unauthorized when it is over."""
    claims = tokens.read(token, ctx.keys.session, now=ctx.clock())
    facts = await ctx.access_cache.refresh(ctx.clock())
    # All that was read, so that nothing but what was judged is remembered.
    fact = ("session", claims)
    known: schemes.AuthenticatedCaller | None = facts.get(fact)
    if known is None:
        known = facts[fact] = await schemes.by_claims(ctx, claims)
    return known.caller, Session(token, claims)


def renewed(ctx: context.Context, session: Session) -> Session | None:
    """The session with more time, when it has lost some and may have more."""
    claims, now = session.claims, ctx.clock() // times.SECOND
    until = min(now + _idle_seconds(ctx), _last_second(ctx, claims))
    if until - claims.exp < _idle_seconds(ctx) // RENEWED_PARTS:
        return None
    return _signed(ctx, msgspec.structs.replace(claims, exp=until))


async def end(ctx: context.Context, who: caller.Caller, session: Session) -> None:
    """Take a session back, in every process, whichever of its tokens somebody still has."""
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        over = _last_second(ctx, session.claims) * times.SECOND
        await users.revoke_token(tx, session.claims.jti, account_id=who.account_id, expires_at=over)
    ctx.access_cache.invalidate()


def csrf_token(ctx: context.Context, session: Session) -> str:
    """What every form of a session carries; nobody else can know it."""
    return hmac.new(ctx.keys.session, b"form " + session.claims.jti.encode(), hashlib.sha256).hexdigest()


def is_csrf_token(ctx: context.Context, session: Session, given: str) -> bool:
    """Whether a form is one of this session's own."""
    return hmac.compare_digest(csrf_token(ctx, session).encode(), given.encode())


def _signed(ctx: context.Context, claims: tokens.Claims) -> Session:
    return Session(tokens.sign(claims, ctx.keys.session), claims)


def _idle_seconds(ctx: context.Context) -> int:
    return ctx.settings.dashboard.session_hours * HOUR_SECONDS


def _last_second(ctx: context.Context, claims: tokens.Claims) -> int:
    return claims.iat + ctx.settings.dashboard.session_days * 24 * HOUR_SECONDS
