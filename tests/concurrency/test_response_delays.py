"""A flood is answered at the pace of its party; bursts, and accounts that are alone, are answered at once."""

import asyncio

import pytest

from postroad.concurrency import fairness
from postroad.concurrency.fairness import DELAY_BURST, DELAY_RATES, MAX_DELAY_SECONDS, PAGE_UNITS, Pace, ResponseDelays
from postroad.model.people import login_rules

REFUSALS_PER_SECOND = DELAY_RATES[Pace.REFUSALS]


class Clock:
    """Shows what it is told."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def delays(clock: Clock) -> ResponseDelays:
    """With two active accounts."""
    delays = ResponseDelays(clock=clock)
    delays.note_account("acc_1")
    delays.note_account("acc_2")
    return delays


def refuse(delays: ResponseDelays, account_id: str = "acc_1") -> float:
    return delays.of_account(account_id, Pace.REFUSALS)


def refuse_stranger(delays: ResponseDelays, address: str) -> float:
    return delays.of_stranger(login_rules.networks_around(address), Pace.REFUSALS)


def test_a_burst_is_answered_at_once_and_what_follows_one_after_the_other(delays: ResponseDelays, clock: Clock) -> None:
    assert [refuse(delays) for _ in range(DELAY_BURST + 1)] == [0.0] * (DELAY_BURST + 1)
    interval = 1 / REFUSALS_PER_SECOND
    assert [refuse(delays) for _ in range(3)] == pytest.approx([interval, 2 * interval, 3 * interval])
    # In time the pace is forgotten.
    clock.now += 4 * interval
    assert refuse(delays) == 0.0


def test_no_answer_is_delayed_for_longer_than_the_maximum(delays: ResponseDelays, clock: Clock) -> None:
    flood = [refuse(delays) for _ in range(2 * DELAY_BURST)]
    assert max(flood) == MAX_DELAY_SECONDS
    assert flood == sorted(flood)
    # What was answered after the maximum is not counted, so the pace does not fall behind for ever.
    clock.now += MAX_DELAY_SECONDS + DELAY_BURST / REFUSALS_PER_SECOND
    assert refuse(delays) == 0.0


def test_others_do_not_wait_for_a_flood(delays: ResponseDelays) -> None:
    while refuse(delays) < 1:
        pass
    assert refuse(delays, "acc_2") == 0.0
    assert refuse_stranger(delays, "192.0.2.1") == 0.0
    assert delays.of_account("acc_1", Pace.REQUESTS) == 0.0, "requests have a pace of their own"


def test_an_account_is_delayed_only_while_another_one_is_active(delays: ResponseDelays, clock: Clock) -> None:
    alone = ResponseDelays(clock=clock)
    for _ in range(5 * DELAY_BURST):
        alone.note_account("acc_1")
        assert alone.of_account("acc_1", Pace.REQUESTS) == 0.0
    while refuse(delays) < 1:
        pass
    clock.now += fairness.DELAY_ACTIVE_SECONDS
    assert refuse(delays) == 0.0


def test_a_stranger_is_delayed_without_any_account(clock: Clock) -> None:
    delays = ResponseDelays(clock=clock)
    flood = [refuse_stranger(delays, "192.0.2.1") for _ in range(DELAY_BURST + 2)]
    assert flood[-1] > 0


def test_pages_count_several_units(delays: ResponseDelays) -> None:
    pages = [delays.of_account("acc_1", Pace.REQUESTS, units=PAGE_UNITS) for _ in range(200)]
    assert [seconds for seconds in pages if not seconds] == [0.0] * 41, "forty at once, and then one after the other"
    assert pages[41:44] == pytest.approx([0.05, 0.10, 0.15])
    assert pages[-1] == MAX_DELAY_SECONDS
    assert sum(seconds < MAX_DELAY_SECONDS for seconds in pages) in {80, 81}, "the others are too many"


@pytest.mark.parametrize(
    "address, places", [("192.0.2.{}", range(1, 17)), ("2001:db8:0:{:x}::1", range(0, 0x1000, 0x100))]
)
def test_the_addresses_of_a_neighbourhood_have_a_pace_together(clock: Clock, address: str, places: range) -> None:
    delays = ResponseDelays(clock=clock)
    flood = [refuse_stranger(delays, address.format(place)) for _ in range(DELAY_BURST) for place in places]
    assert sum(not seconds for seconds in flood) == 4 * DELAY_BURST + 1, "four times what one address has"
    assert refuse_stranger(delays, address.format(99)) == MAX_DELAY_SECONDS
    assert refuse_stranger(delays, "198.51.100.1") == 0.0


def test_parties_within_their_pace_are_forgotten(
    delays: ResponseDelays, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fairness, "MAX_DELAYED_PARTIES", 10)
    while refuse(delays) < 1:
        pass
    for place in range(100):
        clock.now += 0.03
        refuse_stranger(delays, f"192.0.{place}.1")
    assert len(delays._due) <= 12
    assert refuse(delays) == 0.0 or ("acc_1", Pace.REFUSALS) in delays._due


async def test_a_page_of_an_account_begins_in_each_turn_of_the_event_loop(delays: ResponseDelays) -> None:
    begun: list[str] = []

    async def page(account_id: str) -> None:
        await delays.take_turn(account_id)
        begun.append(account_id)

    async def count_turns() -> None:
        for number in range(5):
            begun.append(f"turn {number}")
            await asyncio.sleep(0)

    await asyncio.gather(count_turns(), *map(page, ["noisy"] * 4), page("quiet"))
    assert begun[:3] == ["turn 0", "noisy", "quiet"]
    assert begun[3:] == ["turn 1", "noisy", "turn 2", "noisy", "turn 3", "noisy", "turn 4"]
