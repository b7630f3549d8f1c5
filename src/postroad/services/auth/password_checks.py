"""The only way to check a presented password, for every interface.

Every check counts as a failure until it succeeds, so that a hundred parallel guesses are throttled like a hundred
sequential ones. A pair that is already being checked is awaited and not counted again: an application that opens many
connections is not an attacker. Unknown names are treated the same, so neither the response nor its timing reveals
whether a name exists.
"""

from postroad import errors
from postroad.services import context


async def check_user_password(
    ctx: context.Context, name: str, password: str, *, password_hash: str | None, client_address: str
) -> bool:
    """Whether a user's password is right. Raises RateLimited while the name or the network is throttled.

    Users choose their passwords, so a cached success must not bypass the throttle: anyone could guess without limit.
    """
    seconds = ctx.access_cache.login_failures.wait(client_address, name, now=ctx.clock())
    if seconds:
        raise errors.RateLimited("too many failed attempts; wait for Retry-After seconds", retry_after=seconds)
    return await _check(ctx, name, password, password_hash=password_hash, client_address=client_address)


async def check_credential_password(
    ctx: context.Context, name: str, password: str, *, password_hash: str | None, client_address: str
) -> bool:
    """Whether a credential's password is right. While throttled, only one that was right before still is.

    These passwords are generated and unguessable; the cached success keeps an application working while others fail.
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
