"""Logging in with a passkey alone. The authenticator has checked the person, so no second factor is asked for."""

from postroad import errors
from postroad.model import login_throttle
from postroad.services import context
from postroad.services.auth import login, passkeys, second_factors
from postroad.services.auth.passkey_challenges import Ceremony
from postroad.storage import logins


async def log_in(ctx: context.Context, answer: passkeys.Answer, *, device: str) -> login.LoggedIn:
    """Begin a session. Raises RateLimited after several failures from the network of the actor."""
    failures, counters = ctx.access_cache.login_failures, login_throttle.of_network(ctx.actor.client_address)
    seconds = await failures.attempt(counters, now=ctx.clock())
    if seconds:
        raise errors.RateLimited(f"too many failed attempts; try again in {seconds} seconds", retry_after=seconds)
    passkey = await passkeys.check(ctx, answer, Ceremony.LOG_IN)
    await failures.withdraw(counters, now=ctx.clock())
    async with ctx.store.reading() as tx:
        found = await logins.by_id(tx, passkey.login_id)
    if found is None:
        raise passkeys.refusal()
    return await login.finish(ctx, found, methods=second_factors.PASSKEY, device=device)
