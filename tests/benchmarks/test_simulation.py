"""Simulated days: what must never happen does not, the same seed gives the same day, and the checks can fail."""

import asyncio

import msgspec
import pytest

from benchmarks.simulation import (
    day,
    invariants,
    outcome,
    queue_table,
    random_days,
    scenario,
    virtual_time,
)
from tests.reliability import profile

DAYS_PER_TEST = 10
# Ten in every run, and thousands in a long one.
DAYS = 200 * profile.SCALE if profile.IS_LONG else DAYS_PER_TEST


@pytest.mark.parametrize("first", range(0, DAYS, DAYS_PER_TEST))
def test_nothing_is_lost_sent_twice_or_starved_on_a_random_day(first: int) -> None:
    for seed in range(first, first + DAYS_PER_TEST):
        seen = day.run(random_days.make(seed), seed=seed)
        assert (seen.violations, seen.queued) == ((), 0), f"seed {seed}"
        assert seen.accepted == sum(seen.ended.values())


def test_a_seed_gives_the_same_day_again() -> None:
    one = random_days.make(3)
    first, second, other = day.run(one, seed=3), day.run(one, seed=3), day.run(one, seed=4)
    assert first == second
    assert msgspec.json.decode(msgspec.json.encode(first), type=outcome.Outcome) == first
    assert first.kinds != other.kinds


def test_time_jumps_to_the_next_timer() -> None:
    async def main() -> float:
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    assert virtual_time.run(main, seed=1) == 86_400.0


def test_a_wait_for_nothing_is_an_error() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="nothing will ever happen"):
        virtual_time.run(main, seed=1)


def test_a_violation_is_found() -> None:
    table = queue_table.QueueTable()
    checks = invariants.Invariants(table, messages=10)
    table.insert(queue_table.Row("00000001", "a", "example.net a", "x@example.net"), now=0)
    checks.check_counts(1.0)
    checks.attempt_begins(2.0, "00000001", worker="host-0")
    checks.attempt_begins(3.0, "00000002", worker="host-0")
    checks.delivered(4.0, "00000001")
    checks.delivered(5.0, "00000001")
    checks.waited(6.0, "00000001", 901.0)
    checks.connected(7.0, 0, "google", max_connections=0, max_of_host=5)
    for _ in range(13):
        checks.started(8.0, 0, "google", per_second=50)
    assert [text.partition(": ")[2] for text in checks.violations[:6]] == [
        "0 accepted, but 0 final and 1 queued",
        "message 00000001 is sent by host-0 under the lease of None",
        "message 00000002 is sent after its final result",
        "message 00000001 was delivered twice",
        "message 00000001 has waited for 901 s for its first attempt",
        "host 0 has more than 0 connections to google",
    ]
    assert "more than 50 messages a second" in checks.violations[6]


def test_what_a_dead_host_held_may_arrive_twice() -> None:
    table = queue_table.QueueTable()
    checks = invariants.Invariants(table, messages=10)
    table.insert(queue_table.Row("00000001", "a", "example.net a", "x@example.net"), now=0)
    table.claim("example.net a", 1, 60, "host-0", 2**62)
    checks.delivered(1.0, "00000001")
    checks.host_died("host-0")
    checks.delivered(2.0, "00000001")
    assert (checks.violations, checks.duplicates) == ([], 1)


def test_every_scenario_of_the_file_can_be_read() -> None:
    found = scenario.load()
    assert {"ordinary", "outage", "campaign", "hostile", "crash"} <= found.keys()
    assert sum(kind.share for kind in found["ordinary"].kinds) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "values", [{"outages": [{"kind": "no", "begins": 0.0, "seconds": 1.0}]}, {"crashes": [{"host": 9, "at": 1.0}]}]
)
def test_a_scenario_that_names_what_does_not_exist_is_refused(values: dict[str, object]) -> None:
    kinds = [msgspec.to_builtins(kind) for kind in scenario.load()["ordinary"].kinds]
    with pytest.raises(ValueError, match=r"there is no kind|does not exist"):
        scenario.of("wrong", {"about": "", **values}, kinds)
