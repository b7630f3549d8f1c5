"""Passwords: hashed with Argon2id (RFC 9106) in a few threads, behind a bounded queue, both shared fairly.

Argon2 is slow on purpose, so work is not repeated: a correct (password, hash) pair is cached as a keyed digest that is
meaningless outside this process, and a pair being checked is not checked in parallel. The cache entry is for the pair:
a changed password has another hash and no entry. An unknown name gets a hash that nothing matches, so that it takes the
same time and path as a real one. Several hashes with one salt cost one computation together: the time does not tell how
many there are.

`party` is who waits: the network of a client that logs in, the account that gets a new password. However many
credentials one account creates, logins wait for one of them at most.
"""

import asyncio
import base64
import functools
import hashlib
import hmac
import os
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Final

import argon2

from postroad import context, errors
from postroad.concurrency import caches, fairness
from postroad.model.people import login_rules

# At most 1,024 octets of UTF-8: longer than any passphrase, short enough to refuse cheaply.
MAX_CHARACTERS: Final = 256

# The OWASP minimum for Argon2id: 19 MiB, two passes, parallelism 1. About 20 ms of one core.
MEMORY_KIBIBYTES: Final = 19 * 1024
PASSES: Final = 2
PARALLELISM: Final = 1
HASH_BYTES: Final = 32
SALT_BYTES: Final = 16

# Each check uses one core and 19 MiB for about 20 ms; more would take cores from mail.
THREADS: Final = 2
# With two threads the last in the queue waits about three seconds, which is acceptable for a login.
MAX_WAITING: Final = 256
PROOF_SECONDS: Final = 600.0
MAX_PROOFS: Final = 50_000


def refuse_impossible(field: str, password: str) -> None:
    """Refuse a text that cannot be a password, before any work."""
    if len(password) > MAX_CHARACTERS:
        raise errors.InvalidRequest(f"{field}: at most {MAX_CHARACTERS} characters")
    if not _is_text(password):
        raise errors.InvalidRequest(f"{field}: must not contain NUL or an unpaired surrogate")


class Passwords:
    def __init__(self, threads: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._hasher = argon2.PasswordHasher(
            time_cost=PASSES,
            memory_cost=MEMORY_KIBIBYTES,
            parallelism=PARALLELISM,
            hash_len=HASH_BYTES,
            salt_len=SALT_BYTES,
        )
        self._threads = fairness.FairThreads(threads, name="password")
        self._clock = clock
        self._key = os.urandom(HASH_BYTES)
        # Checks by the digest of their pair, and hashes, each under a name of its own.
        self._jobs = caches.SingleFlight(MAX_WAITING, what="password checks")
        # Digests of correct pairs, and their expiry.
        self._proofs: caches.LruCache[bytes, float] = caches.LruCache(MAX_PROOFS)

    async def hash(self, password: str, *, party: str = "", like: str | None = None) -> str:
        """The stored hash of a password, with a new salt or the one of the hash `like`."""
        salt = {} if like is None else {"salt": _salt(like)}
        work = functools.partial(self._hasher.hash, _octets(password), **salt)
        return await self._jobs.join(object(), functools.partial(self._threads.run, party, work), party=party)

    async def find(self, password: str, hashes: Sequence[str], *, party: str = "") -> int | None:
        """The place of the hash that the password matches. All salts are tried, whichever matches."""
        if len(password) > MAX_CHARACTERS or not _is_text(password):
            return None
        proven = next((digest for digest in hashes if self._is_proven(self._digest(password, digest))), None)
        if proven is not None:
            return hashes.index(proven)
        matched = [await self._find(password, same, party) for same in _by_salt(hashes)]
        return next((hashes.index(digest) for digest in matched if digest is not None), None)

    def is_proven(self, password: str, password_hash: str) -> bool:
        return _is_text(password) and self._is_proven(self._digest(password, password_hash))

    def dummy_hash(self, name: str) -> str:
        """A hash for an unknown name: constant for a name, and matched by nothing."""
        octets = hashlib.blake2b(
            name.encode(errors="replace"), key=self._key, digest_size=SALT_BYTES + HASH_BYTES
        ).digest()
        salt, tag = _unpadded(octets[:SALT_BYTES]), _unpadded(octets[SALT_BYTES:])
        return f"$argon2id$v=19$m={MEMORY_KIBIBYTES},t={PASSES},p={PARALLELISM}${salt}${tag}"

    async def close(self) -> None:
        self._threads.close()
        await self._jobs.close()

    async def _find(self, password: str, hashes: tuple[str, ...], party: str) -> str | None:
        work = functools.partial(_match, self._hasher, hashes, _octets(password))
        digest = self._digest(password, " ".join(hashes))
        return await self._jobs.join(digest, functools.partial(self._check, password, work, party), party=party)

    async def _check(self, password: str, work: Callable[[], str | None], party: str) -> str | None:
        matched = await self._threads.run(party, work)
        if matched is not None:
            self._proofs.put(self._digest(password, matched), self._clock() + PROOF_SECONDS)
        return matched

    def _is_proven(self, digest: bytes) -> bool:
        now = self._clock()
        is_proven = now < (self._proofs.get(digest) or 0.0)
        if is_proven:
            self._proofs.put(digest, now + PROOF_SECONDS)
        return is_proven

    def _digest(self, password: str, password_hash: str) -> bytes:
        pair = hashlib.blake2b(key=self._key, digest_size=HASH_BYTES)
        pair.update(password_hash.encode())
        pair.update(b"\0")
        pair.update(_octets(password))
        return pair.digest()


def _match(hasher: argon2.PasswordHasher, hashes: tuple[str, ...], octets: bytes) -> str | None:
    """The hash of a password, among those with one salt."""
    if len(hashes) > 1:
        known = argon2.extract_parameters(hashes[0])
        costs = known.time_cost, known.memory_cost, known.parallelism, known.hash_len, known.type, known.version
        computed = argon2.low_level.hash_secret(octets, _salt(hashes[0]), *costs)
        return next((digest for digest in hashes if hmac.compare_digest(digest.encode(), computed)), None)
    try:
        hasher.verify(hashes[0], octets)
    except argon2.exceptions.VerifyMismatchError:
        return None
    return hashes[0]


def _by_salt(hashes: Sequence[str]) -> list[tuple[str, ...]]:
    """The hashes in groups with the same costs and salt, which are all but the last part of a hash."""
    groups: dict[str, list[str]] = {}
    for digest in hashes:
        groups.setdefault(digest.rpartition("$")[0], []).append(digest)
    return [tuple(group) for group in groups.values()]


def _salt(password_hash: str) -> bytes:
    encoded = password_hash.split("$")[-2]
    return base64.b64decode(encoded + "=" * (-len(encoded) % 4))


def _octets(password: str) -> bytes:
    """The password in Unicode normal form C (RFC 8265 section 4.2.2): keyboards differ in how they encode an é."""
    return unicodedata.normalize("NFC", password).encode()


def _is_text(password: str) -> bool:
    return "\0" not in password and not any("\ud800" <= character <= "\udfff" for character in password)


def _unpadded(octets: bytes) -> str:
    return base64.b64encode(octets).decode().rstrip("=")


# The rules for a password that a user chooses: long enough, and not among those that are guessed first.
#
# `common_passwords.txt` has 10,000 of the most common ones; `common_passwords.LICENSE.txt` says where they come from.

MIN_CHARACTERS: Final = 10


def check_new(field: str, password: str, *, email: str) -> None:
    refuse_impossible(field, password)
    if len(password) < MIN_CHARACTERS:
        raise errors.InvalidRequest(f"{field}: at least {MIN_CHARACTERS} characters")
    if login_rules.is_own_address(password, email):
        raise errors.InvalidRequest(f"{field}: must not be based on the email address; choose another one")
    if login_rules.is_common_password(password, _common()):
        raise errors.InvalidRequest(f"{field}: is a common password or pattern; choose another one")


# Read when the first password is chosen: other processes need not keep it.
@functools.cache
def _common() -> frozenset[str]:
    text = resources.files(__package__).joinpath("common_passwords.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


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
    return await _check_tries(ctx, password, tries, network=login_rules.network_of(client_address))


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
    attempt = _Try(target, (login_rules.of_credential(name, client_address, is_known=is_known),))
    return await _check_tries(ctx, password, (attempt,), network=login_rules.network_of(client_address)) is not None


def _of_target(target: Target, client_address: str, *, counts_network: bool) -> Alternatives:
    alternatives = [login_rules.of_user(target.name, client_address, is_known=target.is_known)]
    if not target.is_known:
        alternatives.insert(0, login_rules.of_newcomer(target.name, client_address))
    if counts_network:
        return tuple(alternatives)
    return tuple(
        {counter: limit for counter, limit in each.items() if counter.name is not None} for each in alternatives
    )


async def _check_tries(ctx: context.Context, password: str, tries: tuple[_Try, ...], *, network: str) -> int | None:
    counted = tuple((attempt.password_hash, tuple(map(tuple, attempt.alternatives))) for attempt in tries)
    work = functools.partial(_count_and_find, ctx, password, tries, network=network)
    return await ctx.access_cache.password_checks.join(
        (counted, ctx.access_cache.digest(password)), work, party=network
    )


async def _count_and_find(ctx: context.Context, password: str, tries: tuple[_Try, ...], *, network: str) -> int | None:
    """Count the attempt for each hash that may be checked, and find the one of the password."""
    failures = ctx.access_cache.login_failures
    # All at once: the counters are written together, however many there are.
    counted = await asyncio.gather(*(_count_attempt(ctx, attempt.alternatives) for attempt in tries))
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


async def _count_attempt(ctx: context.Context, alternatives: Alternatives) -> tuple[login_rules.Counters | None, int]:
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
