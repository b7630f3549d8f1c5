"""The one way to check a password that somebody presents, whichever door it came through.

Every check counts as a failure until it proves right, so that a hundred guesses at once are slowed like a hundred in a
row. A pair that is being checked already is waited for and not counted again: an application that starts with many
connections is no attacker. A name that nobody has is treated the same in all of this, so neither the answer nor its
time tells whether it exists.
"""

from postroad import errors
from postroad.services import context


async def check_user_password(
    ctx: context.Context, name: str, password: str, *, password_hash: str | None, client_address: str
) -> bool:
    """Whether a person's password is right. While the name or the network is slowed, RateLimited says until when.

    People choose their passwords, so a remembered proof must not help here: anyone could try passwords without end.
    """
    seconds = ctx.access_cache.login_failures.wait(client_address, name, now=ctx.clock())
    if seconds:
        raise errors.RateLimited("too many failed attempts; wait as Retry-After says", retry_after=seconds)
    return await _check(ctx, name, password, password_hash=password_hash, client_address=client_address)


async def check_credential_password(
    ctx: context.Context, name: str, password: str, *, password_hash: str | None, client_address: str
) -> bool:
    """Whether a credential's password is right. While slowed, only one that has been right before still is.

    These passwords are generated and beyond guessing; a remembered one keeps an application going while others fail.
    """
    target = password_hash or ctx.passwords.dummy_hash(name)
    if ctx.passwords.is_proven(password, target):
        return True
    if ctx.access_cache.login_failures.wait(client_address, name, now=ctx.clock()):
        return False
    return await _check(ctx, name, password, password_hash=password_hash, client_address=client_address)


async def _check(
    ctx: context.Context, name: str, password: str, *, password_hash: str | None, client_address: str
) -> bool:
    failures = ctx.access_cache.login_failures
    target = password_hash or ctx.passwords.dummy_hash(name)
    if ctx.passwords.is_proven(password, target) or ctx.passwords.is_in_progress(password, target):
        return await ctx.passwords.verify(password, target)
    failures.count(client_address, name, now=ctx.clock())
    try:
        is_right = await ctx.passwords.verify(password, target)
    except errors.ServiceUnavailable:  # the queue was full: nothing was checked
        failures.withdraw(client_address, name)
        raise
    if is_right:
        failures.reset(client_address, name)
    return is_right
