"""Failures: counted for all processes, in parallel as in a row, forgiven, and kept in memory when the store is away."""

import asyncio

import pytest

from postroad import context, errors
from postroad.model.people import login_rules
from postroad.model.units import times
from postroad.services.people import login_failures
from tests import contexts
from tests.contexts import SECOND
from tests.storage import samples

NOW = 1_000_000 * SECOND

HERE = "192.0.2.1"
ELSEWHERE = "198.51.100.2"


def of_user(name: str, address: str = HERE) -> login_rules.Counters:
    return login_rules.of_user(name, address, is_known=False)


@pytest.fixture
def counted(ctx: context.Context) -> login_failures.LoginFailures:
    return contexts.concrete(ctx.access_cache.login_failures, login_failures.LoginFailures)


@pytest.fixture
def elsewhere(other_process: context.Context) -> login_failures.LoginFailures:
    return contexts.concrete(other_process.access_cache.login_failures, login_failures.LoginFailures)


async def fail(
    counted: login_failures.LoginFailures, times: int, *, address: str = HERE, name: str = "jo", now: int = NOW
) -> None:
    for _ in range(times):
        assert await counted.attempt(of_user(name, address), now=now) == 0


async def test_a_name_is_slowed_here_after_its_free_failures_and_costs_the_store_nothing_then(
    ctx: context.Context, counted: login_failures.LoginFailures, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fail(counted, 5)
    await fail(counted, 1, address=ELSEWHERE)
    await fail(counted, 1, name="al")

    def refuse() -> None:
        raise AssertionError("a transaction")

    with monkeypatch.context() as without:
        without.setattr(ctx.store, "transaction", refuse)
        assert await counted.attempt(of_user("jo"), now=NOW) == 60
        assert await counted.attempt(of_user("jo"), now=NOW + 59 * times.SECOND + 1) == 1
    assert await counted.attempt(of_user("jo"), now=NOW + 60 * times.SECOND) == 0


async def test_parallel_attempts_in_two_processes_are_throttled_like_sequential_ones(
    counted: login_failures.LoginFailures, elsewhere: login_failures.LoginFailures
) -> None:
    attempts = (process.attempt(of_user("jo"), now=NOW) for process in (counted, elsewhere) for _ in range(20))
    assert sorted(await asyncio.gather(*attempts)) == [0] * 5 + [60] * 35
    for process in (counted, elsewhere):
        assert await process.attempt(of_user("jo"), now=NOW) == 60


async def test_a_success_forgives_the_name_here_and_leaves_the_others_their_failures(
    counted: login_failures.LoginFailures, elsewhere: login_failures.LoginFailures
) -> None:
    for number in range(98):
        await fail(counted, 1, name=f"name{number}")
    await fail(counted, 2)
    await counted.forgive(of_user("jo"), now=NOW)
    await fail(elsewhere, 1)
    assert await elsewhere.attempt(of_user("al"), now=NOW) == 3


async def test_an_attempt_that_was_never_checked_is_taken_off(counted: login_failures.LoginFailures) -> None:
    await fail(counted, 5)
    await counted.withdraw(of_user("jo"), now=NOW)
    await fail(counted, 1)
    await counted.withdraw(of_user("nobody", ELSEWHERE), now=NOW)
    await fail(counted, 5, address=ELSEWHERE, name="nobody")


async def test_while_the_store_cannot_be_written_this_process_counts_alone(
    ctx: context.Context, counted: login_failures.LoginFailures, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise errors.ServiceUnavailable("the disk is full")

    monkeypatch.setattr(ctx.store, "transaction", refuse)
    attempts = (counted.attempt(of_user("jo"), now=NOW) for _ in range(20))
    assert sorted(await asyncio.gather(*attempts)) == [0] * 5 + [60] * 15


async def test_no_name_is_stored_and_forgotten_counters_go(
    ctx: context.Context, counted: login_failures.LoginFailures
) -> None:
    await fail(counted, 1, name="my password, by mistake")
    samples.teach(ctx.store, counters="SELECT counter FROM login_failures")
    assert [len(row[0]) for row in await samples.scan(ctx.store, "test.counters")] == [16] * 4
    await fail(counted, 1, address="2001:db8::1", name="al", now=NOW + times.HOUR)
    assert await samples.count(ctx.store, "login_failures") == 5


async def test_the_counters_in_memory_are_bounded_and_the_busy_ones_stay(ctx: context.Context) -> None:
    counted = login_failures.LoginFailures(ctx.store, max_counters=10)
    for number in range(5):
        await fail(counted, 1, address=f"198.51.100.{number}", name="someone")
        await fail(counted, 1)
    assert len(counted._clear_at) == 10
    assert counted._in_memory(login_failures._Item(login_failures._Change.ATTEMPT, of_user("jo"), NOW)).wait > 0
    await counted.close()
