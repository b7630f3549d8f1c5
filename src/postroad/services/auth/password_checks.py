"""The only way to check a presented password, for every interface.

Every check counts as a failure until it succeeds, so that a hundred parallel guesses are throttled like a hundred
sequential ones. A pair that is already being checked is awaited and not counted again: an application that opens many
connections is not an attacker. Unknown names are treated the same, so neither the response nor its timing reveals
whether a name exists.
"""

import asyncio
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from postroad import errors
from postroad.model import login_throttle
from postroad.services import context

Alternatives = tuple[login_throttle.Counters, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A password that may be meant: whose failures it counts, its hash, and whether they came from here before."""

    name: str
    password_hash: str | None = field(repr=False)
    is_known: bool


@dataclass(frozen=True, slots=True)
class _Try:
    """A hash, and the counters of which one must allow to check it."""

    password_hash: str = field(repr=False)
    alternatives: Alternatives


async def check_user_password(
    ctx: context.Context, password: str, targets: Sequence[Target], *, client_address: str
) -> int | None:
    """The place of the target whose password it is. Raises RateLimited while all names or the network are throttled.

    Users choose their passwords, so a cached success must not bypass the throttle: anyone could guess without limit.
    Each target counts by itself, and a success clears its own failures only: whoever has a login with somebody's email
    cannot use it to guess the password of another one. The network is counted once.
    """
    is_known = any(target.is_known for target in targets)
    tries = tuple(
        _Try(
            target.password_hash or ctx.passwords.dummy_hash(target.name),
            _of_target(target, client_address, counts_network=place == 0 and not is_known),
        )
        for place, target in enumerate(targets)
    )
    return await _check(ctx, password, tries, network=login_throttle.network_of(client_address))


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
    one = _Try(target, (login_throttle.of_credential(name, client_address, is_known=is_known),))
    return await _check(ctx, password, (one,), network=login_throttle.network_of(client_address)) is not None


def _of_target(target: Target, client_address: str, *, counts_network: bool) -> Alternatives:
    alternatives = [login_throttle.of_user(target.name, client_address, is_known=target.is_known)]
    if not target.is_known:
        alternatives.insert(0, login_throttle.of_newcomer(target.name, client_address))
    if counts_network:
        return tuple(alternatives)
    return tuple({one: limit for one, limit in each.items() if one.name is not None} for each in alternatives)


async def _check(ctx: context.Context, password: str, tries: tuple[_Try, ...], *, network: str) -> int | None:
    counted = tuple((one.password_hash, tuple(map(tuple, one.alternatives))) for one in tries)
    work = functools.partial(_count_and_find, ctx, password, tries, network=network)
    return await ctx.access_cache.password_checks.join(
        (counted, ctx.access_cache.digest(password)), work, party=network
    )


async def _count_and_find(ctx: context.Context, password: str, tries: tuple[_Try, ...], *, network: str) -> int | None:
    """Count the attempt for each hash that may be checked, and find the one of the password."""
    failures = ctx.access_cache.login_failures
    # All at once: the counters are written together, however many there are.
    counted = await asyncio.gather(*(_count(ctx, one.alternatives) for one in tries))
    allowed = [(place, counters) for place, (counters, _) in enumerate(counted) if counters is not None]
    if not allowed:
        seconds = min(seconds for _, seconds in counted)
        raise errors.RateLimited(f"too many failed login attempts; try again in {seconds} seconds", retry_after=seconds)
    try:
        matched = await ctx.passwords.find(
            password, [tries[place].password_hash for place, _ in allowed], party=network
        )
    except errors.ServiceUnavailable:  # the queue was full: nothing was checked
        for _, counters in allowed:
            await failures.withdraw(counters, now=ctx.clock())
        raise
    if matched is None:
        return None
    place, counters = allowed[matched]
    await failures.forgive(counters, now=ctx.clock())
    return place


async def _count(ctx: context.Context, alternatives: Alternatives) -> tuple[login_throttle.Counters | None, int]:
    """Count an attempt for the first of the alternatives that allow it; otherwise how many seconds to wait."""
    waits = []
    for counters in alternatives:
        waits.append(await ctx.access_cache.login_failures.attempt(counters, now=ctx.clock()))
        if not waits[-1]:
            return counters, 0
    return None, min(waits)
