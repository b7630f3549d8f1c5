"""Checking passwords: slowed after failures, one by one or all at once, and no different for a name that nobody has."""

import asyncio
import contextlib
from typing import Any

import argon2
import pytest

from postroad import context, errors
from postroad.model.people import login_rules
from postroad.model.units import times
from postroad.services.people import passwords
from tests import contexts
from tests.contexts import Clock
from tests.services.people.argon_watch import Argon

HERE = "192.0.2.1"
ELSEWHERE = "192.0.2.2"


@pytest.fixture
def database_url(clean_sqlite_url: str) -> str:
    """The counters have tests on both engines: one will do here."""
    return clean_sqlite_url


@pytest.fixture(params=["known", "unknown"])
async def password_hash(request: pytest.FixtureRequest, ctx: context.Context) -> str | None:
    """The hash of `right horse`, or none: whatever is asked below, the answers are the same."""
    return await ctx.passwords.hash("right horse") if request.param == "known" else None


async def person(
    ctx: context.Context, password: str, password_hash: str | None, *, address: str = HERE, is_known: bool = False
) -> bool:
    targets = [passwords.Target("jo", password_hash, is_known)]
    return await passwords.check_user_password(ctx, password, targets, client_address=address) is not None


async def credential(ctx: context.Context, password: str, password_hash: str | None) -> bool:
    return await passwords.check_credential_password(
        ctx, "jo", password, password_hash=password_hash, client_address=HERE, is_known=False
    )


async def test_a_user_is_throttled_after_five_failures_with_a_retry_time(
    ctx: context.Context, password_hash: str | None, clock: Clock, argon: Argon
) -> None:
    for _ in range(5):
        assert not await person(ctx, "wrong horse", password_hash)
    with pytest.raises(errors.RateLimited) as refusal:
        await person(ctx, "wrong horse", password_hash)
    assert refusal.value.retry_after == 60
    assert argon.count == 5
    clock.pass_seconds(60)
    assert not await person(ctx, "wrong horse", password_hash)
    assert argon.count == 6


async def test_guesses_made_all_at_once_are_slowed_like_guesses_in_a_row(
    ctx: context.Context, password_hash: str | None, argon: Argon
) -> None:
    guesses = (person(ctx, f"wrong horse {number}", password_hash) for number in range(50))
    results = await asyncio.gather(*guesses, return_exceptions=True)
    assert results.count(False) == 5
    assert sum(isinstance(result, errors.RateLimited) for result in results) == 45
    assert argon.count == 5


@pytest.mark.parametrize("password", ["wrong horse", "right horse"])
async def test_one_password_sent_fifty_times_at_once_is_checked_once(
    ctx: context.Context, password_hash: str | None, argon: Argon, password: str
) -> None:
    argon.go.clear()
    waiting = [asyncio.ensure_future(person(ctx, password, password_hash)) for _ in range(50)]
    await asyncio.sleep(0)
    argon.go.set()
    is_right = password == "right horse" and password_hash is not None
    assert await asyncio.gather(*waiting) == [is_right] * 50
    assert argon.count == 1


async def test_success_takes_the_failures_of_the_name_away_and_does_not_pass_while_throttled(
    ctx: context.Context,
) -> None:
    right = await ctx.passwords.hash("right horse")
    for _ in range(3):
        for _ in range(4):
            assert not await person(ctx, "wrong horse", right)
        contexts.concrete(ctx.passwords, passwords.Passwords)._proofs._values.clear()
        assert await person(ctx, "right horse", right)
    for _ in range(5):
        assert not await person(ctx, "wrong horse", right)
    with pytest.raises(errors.RateLimited):
        await person(ctx, "right horse", right)
    assert await person(ctx, "right horse", right, address=ELSEWHERE)


async def test_a_slowed_credential_is_refused_at_once_without_argon2(
    ctx: context.Context, password_hash: str | None, argon: Argon
) -> None:
    for _ in range(5):
        assert not await credential(ctx, "wrong horse", password_hash)
    for password in ("wrong horse", "right horse"):
        with pytest.raises(errors.RateLimited):
            await credential(ctx, password, password_hash)
    assert argon.count == 5


async def test_a_proven_credential_passes_while_slowed(ctx: context.Context, argon: Argon) -> None:
    right = await ctx.passwords.hash("right horse")
    assert await credential(ctx, "right horse", right)
    for _ in range(5):
        assert not await credential(ctx, "wrong horse", right)
    with pytest.raises(errors.RateLimited):
        await credential(ctx, "wrong horse", right)
    assert await credential(ctx, "right horse", right)
    assert argon.count == 6


async def test_a_network_that_tries_many_names_is_slowed(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = login_rules.FailureLimit(free=3, interval=10 * times.SECOND)
    monkeypatch.setitem(login_rules.IPV4_NETWORKS, 32, limit)
    address = "192.0.2.200"  # which no other test used: limits are looked up once per address
    for number in range(3):
        nobody = [passwords.Target(f"name {number}", None, is_known=False)]
        assert await passwords.check_user_password(ctx, "password1", nobody, client_address=address) is None
    another = [passwords.Target("another", None, is_known=False)]
    with pytest.raises(errors.RateLimited) as refusal:
        await passwords.check_user_password(ctx, "password1", another, client_address=address)
    assert refusal.value.retry_after == 10


async def test_a_check_that_a_full_queue_refused_is_not_a_failure(
    ctx: context.Context, password_hash: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(contexts.concrete(ctx.passwords, passwords.Passwords)._jobs._places, "free", 0)
        for _ in range(20):
            with pytest.raises(errors.ServiceUnavailable):
                await person(ctx, "wrong horse", password_hash)
    assert not await person(ctx, "wrong horse", password_hash)


async def test_a_guess_whose_sender_hangs_up_still_counts(
    ctx: context.Context, password_hash: str | None, argon: Argon
) -> None:
    argon.go.clear()
    for number in range(5):
        guess = asyncio.ensure_future(person(ctx, f"wrong horse {number}", password_hash))
        await asyncio.sleep(0)
        guess.cancel()
    argon.go.set()
    with pytest.raises(errors.RateLimited):
        await person(ctx, "another horse", password_hash)


async def test_a_distributed_attack_slows_unknown_networks_and_not_the_one_of_the_right_person(
    ctx: context.Context, argon: Argon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_rules, "NEWCOMERS", login_rules.FailureLimit(free=10, interval=10 * times.SECOND))
    right = await ctx.passwords.hash("right horse")
    attack = [person(ctx, f"wrong horse {number}", right, address=f"198.18.{number}.1") for number in range(80)]
    results = await asyncio.gather(*attack, return_exceptions=True)
    assert results.count(False) == argon.count == 10 + 50
    assert sum(isinstance(result, errors.RateLimited) for result in results) == 20
    with pytest.raises(errors.RateLimited):
        await person(ctx, "right horse", right, address="203.0.113.9")
    assert await person(ctx, "right horse", right, address="203.0.113.9", is_known=True)


async def test_the_right_person_gets_in_from_a_new_network_while_others_take_every_attempt_from_anywhere(
    ctx: context.Context, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = await ctx.passwords.hash("right horse")
    find = ctx.passwords.find

    async def quick(password: str, hashes: list[str], *, party: str = "") -> int | None:
        return await find(password, hashes, party=party) if password == "right horse" else None

    monkeypatch.setattr(ctx.passwords, "find", quick)
    allowed = 0
    for second in range(200):
        clock.pass_seconds(1)
        for network in range(2):
            with contextlib.suppress(errors.RateLimited):
                await person(ctx, f"guess {second}", right, address=f"203.0.{network}.{second % 250}")
                allowed += 1
        if second % 50 == 49:
            assert await person(ctx, "right horse", right, address=f"192.0.{second // 50}.200")
    # 3 for each /24, the free ones from anywhere, and one each 30 seconds.
    assert allowed <= 2 * 3 + 50 + 200 // 30 + 1


async def test_a_proven_credential_writes_nothing(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    right = await ctx.passwords.hash("right horse")
    assert await credential(ctx, "right horse", right)

    def refuse() -> None:
        raise AssertionError("a transaction")

    monkeypatch.setattr(ctx.store, "transaction", refuse)
    for _ in range(3):
        assert await credential(ctx, "right horse", right)


async def test_a_success_with_one_of_several_passwords_gives_no_more_guesses_at_the_others(
    ctx: context.Context, clock: Clock
) -> None:
    right = await ctx.passwords.hash("right horse")
    own = await ctx.passwords.hash("my own horse", like=right)
    both = [
        passwords.Target("lgn_1", right, is_known=False),
        passwords.Target("lgn_2", own, is_known=True),
    ]

    async def attempt(password: str) -> int | None:
        return await passwords.check_user_password(ctx, password, both, client_address=HERE)

    for number in range(4):
        assert await attempt(f"guess {number}") is None
    assert await attempt("my own horse") == 1
    # Five failures of the first one, the success of the other among them: it is not checked any more.
    assert await attempt("right horse") is None
    assert await attempt("my own horse") == 1
    clock.pass_seconds(60)
    assert await attempt("right horse") == 0


async def test_several_passwords_of_one_salt_cost_one_computation(
    ctx: context.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = []
    hash_secret = argon2.low_level.hash_secret

    def counted(*arguments: Any) -> bytes:
        computed.append(arguments)
        return hash_secret(*arguments)

    first = await ctx.passwords.hash("first horse")
    hashes = [first, *[await ctx.passwords.hash(f"{number} horses", like=first) for number in range(3)]]
    monkeypatch.setattr(argon2.low_level, "hash_secret", counted)
    monkeypatch.delattr(argon2.PasswordHasher, "verify")
    assert await ctx.passwords.find("2 horses", hashes) == 3
    assert await ctx.passwords.find("first horse", hashes) == 0
    assert await ctx.passwords.find("no horse", hashes) is None
    assert len(computed) == 3
