"""The only way to check a presented password, for every interface.

Every check counts as a failure until it succeeds, so that a hundred parallel guesses are throttled like a hundred
sequential ones. A pair that is already being checked is awaited and not counted again: an application that opens many
connections is not an attacker. Unknown names are treated the same, so neither the response nor its timing reveals
whether a name exists.
"""

import functools
from collections.abc import Sequence

from postroad import errors
from postroad.model import login_throttle
from postroad.services import context


async def check_user_password(
    ctx: context.Context,
    name: str,
    password: str,
    *,
    password_hashes: Sequence[str],
    client_address: str,
    is_known: bool,
) -> int | None:
    """The place of the hash that a user's password matches. Raises RateLimited while name or network is throttled.

    Users choose their passwords, so a cached success must not bypass the throttle: anyone could guess without limit.
    From a known network the user logged in before.
    """
    alternatives = [login_throttle.of_user(name, client_address, is_known=is_known)]
    if not is_known:
        alternatives.insert(0, login_throttle.of_newcomer(name, client_address))
    targets = tuple(password_hashes) or (ctx.passwords.dummy_hash(name),)
    return await _check(ctx, password, targets, alternatives, network=login_throttle.network_of(client_address))


async def check_credential_password(
    ctx: context.Context, name: str, password: str, *, password_hash: str | None, client_address: str, is_known: bool
) -> bool:
    """Whether a credential's password is right. While throttled, RateLimited; one that was right before still is.

    These passwords are generated and unguessable; the cached success keeps an application working while others fail,
    and costs the database nothing. From a known network the credential logged in before.
    """
    target = password_hash or ctx.passwords.dummy_hash(name)
    if ctx.passwords.is_proven(password, target):
        return True
    alternatives = [login_throttle.of_credential(name, client_address, is_known=is_known)]
    network = login_throttle.network_of(client_address)
    return await _check(ctx, password, (target,), alternatives, network=network) is not None


async def _check(
    ctx: context.Context,
    password: str,
    targets: tuple[str, ...],
    alternatives: Sequence[login_throttle.Counters],
    *,
    network: str,
) -> int | None:
    attempt = (tuple(map(tuple, alternatives)), targets, ctx.access_cache.digest(password))
    work = functools.partial(_count_and_verify, ctx, password, targets, alternatives, network=network)
    return await ctx.access_cache.password_checks.join(attempt, work, party=network)


async def _count_and_verify(
    ctx: context.Context,
    password: str,
    targets: tuple[str, ...],
    alternatives: Sequence[login_throttle.Counters],
    *,
    network: str,
) -> int | None:
    """Count the attempt for the first of the alternatives that allow it, and find the hash of the password."""
    failures = ctx.access_cache.login_failures
    waits = []
    for counters in alternatives:
        waits.append(await failures.attempt(counters, now=ctx.clock()))
        if not waits[-1]:
            break
    else:
        seconds = min(waits)
        raise errors.RateLimited(f"too many failed login attempts; try again in {seconds} seconds", retry_after=seconds)
    try:
        matched = await _first_match(ctx, password, targets, network=network)
    except errors.ServiceUnavailable:  # the queue was full: nothing was checked
        await failures.withdraw(counters, now=ctx.clock())
        raise
    if matched is not None:
        await failures.forgive(counters, now=ctx.clock())
    return matched


async def _first_match(ctx: context.Context, password: str, targets: tuple[str, ...], *, network: str) -> int | None:
    for place, target in enumerate(targets):
        if await ctx.passwords.verify(password, target, party=network):
            return place
    return None
