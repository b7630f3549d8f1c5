"""The only way to check a presented password; failures are counted for all processes and hosts together."""

import asyncio
import enum
import functools
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from postroad import context, errors
from postroad.concurrency import caches
from postroad.model.people import login_rules
from postroad.model.units import times
from postroad.storage.engine import group_commit, store
from postroad.storage.people import rates

Alternatives = tuple[login_rules.Counters, ...]


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
    return await _check(ctx, password, tries, network=login_rules.network_of(client_address))


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
    one = _Try(target, (login_rules.of_credential(name, client_address, is_known=is_known),))
    return await _check(ctx, password, (one,), network=login_rules.network_of(client_address)) is not None


def _of_target(target: Target, client_address: str, *, counts_network: bool) -> Alternatives:
    alternatives = [login_rules.of_user(target.name, client_address, is_known=target.is_known)]
    if not target.is_known:
        alternatives.insert(0, login_rules.of_newcomer(target.name, client_address))
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


async def _count(ctx: context.Context, alternatives: Alternatives) -> tuple[login_rules.Counters | None, int]:
    """Count an attempt for the first of the alternatives that allow it; otherwise how many seconds to wait."""
    waits = []
    for counters in alternatives:
        waits.append(await ctx.access_cache.login_failures.attempt(counters, now=ctx.clock()))
        if not waits[-1]:
            return counters, 0
    return None, min(waits)


# Counts failed logins, by the rules of `model/people/login_rules.py`, for all processes and hosts together.
#
# An attempt is counted before it is checked, so that parallel attempts are throttled like sequential ones, and is
# withdrawn when it succeeds. The counters are in the database, and a restart forgets none. Those of this process are a
# first filter, so that whoever is throttled costs the database nothing; each answer of the database corrects them.
# While the database cannot be written, they count alone: logging in to read still works then.

# About 5 MB. The least recently used counter is evicted; the database still has it.
MAX_COUNTERS: Final = 20_000
# Concurrent attempts are counted in one transaction. More than ever wait for a password check.
MAX_BATCH: Final = 256
MAX_WAITING: Final = 1_024
WAIT_SECONDS: Final = 5.0
COUNTER_BYTES: Final = 16

State = Mapping[login_rules.Counter, int]


class _Change(enum.Enum):
    ATTEMPT = enum.auto()
    WITHDRAW = enum.auto()
    FORGIVE = enum.auto()


class _Item(msgspec.Struct, frozen=True):
    """A change of counters at a time."""

    change: _Change
    counters: login_rules.Counters
    now: int


class _Counted(msgspec.Struct, frozen=True):
    """How long an attempt has to wait, in microseconds, and the counters then."""

    wait: int
    clear_at: State


class LoginFailures:
    def __init__(self, database: store.Store, *, max_counters: int = MAX_COUNTERS) -> None:
        self._clear_at: caches.LruCache[login_rules.Counter, int] = caches.LruCache(max_counters)
        self._commits: group_commit.GroupCommit[_Item, _Counted] = group_commit.GroupCommit(
            database, _apply, max_items=MAX_BATCH, max_waiting=MAX_WAITING, wait_seconds=WAIT_SECONDS
        )

    async def attempt(self, counters: login_rules.Counters, *, now: int) -> int:
        """Count an attempt as failed. When it is not allowed, it is not counted: whole seconds until it is."""
        return await self._change(_Item(_Change.ATTEMPT, counters, now))

    async def withdraw(self, counters: login_rules.Counters, *, now: int) -> None:
        """Withdraw an attempt that was counted but never checked."""
        await self._change(_Item(_Change.WITHDRAW, counters, now))

    async def forgive(self, counters: login_rules.Counters, *, now: int) -> None:
        """After a success: clear the name's failures here. The networks keep those of other names."""
        await self._change(_Item(_Change.FORGIVE, counters, now))

    async def close(self) -> None:
        await self._commits.close()

    async def _change(self, item: _Item) -> int:
        counted = self._in_memory(item)
        if not counted.wait:
            try:
                counted = await self._commits.submit(item)
            except store.UNAVAILABLE:
                # Again: other attempts were counted while this one waited.
                counted = self._in_memory(item)
            for counter, clear_at in counted.clear_at.items():
                self._clear_at.put(counter, clear_at)
        return math.ceil(counted.wait / times.SECOND)

    def _in_memory(self, item: _Item) -> _Counted:
        return _changed(item, {counter: self._clear_at.get(counter) or 0 for counter in item.counters})


async def _apply(tx: store.Transaction, items: Sequence[_Item]) -> list[_Counted]:
    """Apply changes in their order, each to the counters that those before it left."""
    digests = {counter: _digest(counter) for item in items for counter in item.counters}
    stored = await rates.lock_failures(tx, digests.values())
    clear_at = {counter: stored.get(digest, 0) for counter, digest in digests.items()}
    results = []
    for item in items:
        results.append(_changed(item, clear_at))
        clear_at.update(results[-1].clear_at)
    await rates.put_failures(tx, {digests[counter]: end for counter, end in clear_at.items()})
    # What an attacker adds is gone as soon as it is forgotten: the table stays small between two cleanups.
    await rates.sweep_failures(tx, now=max(item.now for item in items))
    return results


def _changed(item: _Item, clear_at: State) -> _Counted:
    match item.change:
        case _Change.ATTEMPT:
            wait = login_rules.wait(item.counters, clear_at, now=item.now)
            if wait:
                return _Counted(wait, {counter: clear_at.get(counter, 0) for counter in item.counters})
            return _Counted(0, login_rules.count(item.counters, clear_at, now=item.now))
        case _Change.WITHDRAW:
            return _Counted(0, login_rules.withdraw(item.counters, clear_at))
        case _Change.FORGIVE:
            return _Counted(0, login_rules.forgive(item.counters, clear_at))


def _digest(counter: login_rules.Counter) -> bytes:
    """A short name for a counter: a name of any length, or a password typed into the wrong field, is not stored."""
    text = "\0".join("-" if part is None else f"={part}" for part in counter)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=COUNTER_BYTES).digest()
