"""Confirmation before sensitive actions: the person of a session must have proved recently who they are.

A login counts as a proof; later ones are the password, a code from the authenticator app or a passkey. So whoever finds
an open browser or takes a token can look around, but not make keys, move people or take the data along. API keys are
limited by their scopes and need no confirmation. The sensitive routes are listed in
`dashboard/application.py` and `api/authentication.py`; APIs of extensions need a confirmation as a whole
(`api/extension_api.py`).
"""

from typing import Final

from postroad import context, errors
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.people import logins as services_login
from postroad.services.people import passkeys, passwords, second_factors, tokens
from postroad.services.people.passkeys import Ceremony
from postroad.storage.people import credentials, sessions, users

_MINUTE: Final = 60 * times.SECOND
# Tells programs why they are refused.
HEADER: Final = "Confirmation"


def refuse_unconfirmed(ctx: context.Context, who: callers.Caller) -> None:
    """Refuse a person whose last proof of who they are is too old."""
    if who.confirmed_at is None and who.scheme is not callers.Scheme.TOKEN:
        return
    if ctx.clock() - (who.confirmed_at or 0) >= ctx.settings.security.confirmation_minutes * _MINUTE:
        refusal = errors.ConfirmationRequired(
            "confirm that it is you before this action: on the page /confirm, with POST /v1/auth/confirm, or by "
            "logging in again"
        )
        refusal.headers = ((HEADER, "required"),)
        raise refusal


async def confirm_by_password(ctx: context.Context, who: callers.Caller, password: str) -> None:
    """Confirm a session with the password of its login. Failures are throttled like those of a login."""
    passwords.refuse_impossible("password", password)
    user, login = await person(ctx, who)
    if not await services_login.check_own_password(ctx, login, password):
        services_login.audit_failure(ctx, [user])
        raise errors.Unauthorized("password: incorrect")
    await _confirm(ctx, who, user, method="password")


async def confirm_by_code(ctx: context.Context, who: callers.Caller, code: str) -> None:
    """Confirm a session with a code from the authenticator app, or a recovery code; throttled as in logging in."""
    user, login = await person(ctx, who)
    method = await second_factors.check_code(ctx, login, code)
    await _confirm(ctx, who, user, method=method)


async def ask_for_passkey(ctx: context.Context, who: callers.Caller) -> passkeys.Asked:
    """Ask the person of a session for a passkey of its login."""
    _, login = await person(ctx, who)
    return await passkeys.ask(ctx, Ceremony.CONFIRM, login_id=login.id, subject=who.token_id or "")


async def confirm_by_passkey(ctx: context.Context, who: callers.Caller, answer: passkeys.Answer) -> None:
    user, login = await person(ctx, who)
    await passkeys.check(ctx, answer, Ceremony.CONFIRM, login_id=login.id, subject=who.token_id or "")
    await _confirm(ctx, who, user, method=second_factors.PASSKEY)


async def person(ctx: context.Context, who: callers.Caller) -> tuple[users.User, users.Login]:
    async with ctx.store.reading() as tx:
        user = await users.by_id(tx, who.user_id) if who.user_id is not None else None
        login = await users.login_by_id(tx, user.login_id) if user is not None and user.login_id is not None else None
    if user is None or login is None:
        raise errors.Unauthorized("Authorization: only a user's session can be confirmed; API keys cannot")
    return user, login


async def _confirm(ctx: context.Context, who: callers.Caller, user: users.User, *, method: str) -> None:
    """Record the proof, in every process; the session has this method, too, from now on."""
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        session = await sessions.by_id(tx, who.token_id or "")
        if session is None:
            raise tokens.refusal()
        methods = " ".join(dict.fromkeys((*session.methods.split(), method)))
        await sessions.confirm(tx, session.id, methods=methods, now=ctx.clock())
        await audit_log.write(ctx, tx, user.account_id, "user.confirmed", user.email, f"by {method}")
    ctx.access_cache.invalidate()
