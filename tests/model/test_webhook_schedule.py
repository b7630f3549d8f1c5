"""The schedule of webhooks: exactly seven attempts, and how far chance may move them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.model.events import webhook_schedule
from tests.contexts import SECOND

SCHEDULE = (5, 300, 1800, 7200, 18000, 36000)


def test_there_are_seven_attempts_with_the_delays_of_the_contract_between_them() -> None:
    assert webhook_schedule.attempts(SCHEDULE) == 7
    delays = [webhook_schedule.delay(SCHEDULE, made, random_fraction=0.0) for made in range(1, 8)]
    assert delays == [5 * SECOND, 300 * SECOND, 1800 * SECOND, 7200 * SECOND, 18000 * SECOND, 36000 * SECOND, None]


@pytest.mark.parametrize("chance, factor", [(0.0, 1.0), (0.5, 1.05), (1.0, 1.1)])
def test_jitter_adds_up_to_a_tenth_and_takes_nothing_away(chance: float, factor: float) -> None:
    for made, seconds in enumerate(SCHEDULE[1:], start=2):
        assert webhook_schedule.delay(SCHEDULE, made, random_fraction=chance) == round(factor * seconds) * SECOND


@pytest.mark.parametrize("random_fraction", [0.0, 0.3, 1.0])
def test_delays_under_a_minute_are_exact(random_fraction: float) -> None:
    assert webhook_schedule.delay(SCHEDULE, 1, random_fraction=random_fraction) == 5 * SECOND
    assert webhook_schedule.delay((59,), 1, random_fraction=random_fraction) == 59 * SECOND


def test_a_minute_has_jitter_already() -> None:
    assert webhook_schedule.delay((60,), 1, random_fraction=1.0) == 66 * SECOND


def test_without_delays_there_is_one_attempt() -> None:
    assert webhook_schedule.attempts(()) == 1
    assert webhook_schedule.delay((), 1, random_fraction=0.5) is None


def test_more_attempts_than_a_schedule_that_was_shortened_has_are_the_end() -> None:
    assert webhook_schedule.delay((5,), 6, random_fraction=0.5) is None


@pytest.mark.parametrize("made", [0, -1])
def test_no_delay_follows_no_attempt(made: int) -> None:
    with pytest.raises(ValueError, match="none was made"):
        webhook_schedule.delay(SCHEDULE, made, random_fraction=0.5)


# Shares.


QUICK = 0.2
SLOW = 5.0


def take(
    made: webhook_schedule.ConcurrencyBudget, account_id: str, limit: int, *, now: float = 0.0
) -> list[webhook_schedule.Slot]:
    """As many places as the account can have, up to `most`."""
    taken = [made.take(account_id, now=now) for _ in range(limit)]
    return [place for place in taken if place]


def finish(
    made: webhook_schedule.ConcurrencyBudget,
    slots: list[webhook_schedule.Slot],
    seconds: float,
    *,
    now: float = 0.0,
) -> None:
    """Begin and end attempts on these places."""
    for place in slots:
        made.begin(place, now=now)
        made.end(place, now=now + seconds)


def prove(made: webhook_schedule.ConcurrencyBudget, account_id: str, *, attempts: int = 1) -> None:
    for _ in range(attempts):
        finish(made, take(made, account_id, 1), QUICK)


def hang(made: webhook_schedule.ConcurrencyBudget, account_id: str) -> None:
    """Let an attempt of the account take too long."""
    finish(made, take(made, account_id, 1), SLOW)


def test_a_new_account_begins_with_two_places() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=100, per_account=20)
    assert made.available("new") == 2
    assert len(take(made, "new", 10)) == 2
    assert made.available("new") == 0
    assert take(made, "new", 10) == []
    assert made.free == 98


def test_quick_attempts_double_a_share_with_every_round_up_to_the_limit() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=100, per_account=20)
    rooms = []
    for _ in range(6):
        slots = take(made, "quick", 100)
        rooms.append(len(slots))
        finish(made, slots, QUICK)
    assert rooms == [2, 4, 8, 16, 20, 20]
    assert made.free == 100


def test_slow_attempts_halve_a_share_down_to_four() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=100, per_account=20)
    prove(made, "slow", attempts=18)
    rooms = []
    for _ in range(6):
        rooms.append(made.available("slow"))
        hang(made, "slow")
    assert rooms == [20, 10, 5, 4, 4, 4]


def test_an_endpoint_that_works_and_was_never_quick_has_four_places() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=100, per_account=20)
    rooms = []
    for _ in range(3):
        slots = take(made, "slow", 100)
        rooms.append(len(slots))
        finish(made, slots, SLOW)
    assert rooms == [2, 4, 4]


def test_no_account_has_more_than_the_limit_for_one() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=100, per_account=1)
    assert made.available("one") == 1
    hang(made, "one")
    assert made.available("one") == 1
    prove(made, "one")
    assert made.available("one") == 1


def test_a_slow_account_that_recovers_grows_again() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=100, per_account=20)
    for _ in range(3):
        hang(made, "ill")
    assert made.available("ill") == 4
    prove(made, "ill", attempts=4)
    assert made.available("ill") == 8


@pytest.mark.parametrize("seconds, room", [(0.999, 3), (1.0, 4)])
def test_quick_is_less_than_a_second(seconds: float, room: int) -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=100, per_account=20)
    finish(made, take(made, "one", 1), seconds)
    assert made.available("one") == room


def test_time_before_the_attempt_began_is_not_the_endpoints() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=100, per_account=20)
    (place,) = take(made, "one", 1)
    made.begin(place, now=60.0)
    made.end(place, now=60.1)
    assert made.available("one") == 3


def test_places_that_are_given_back_say_nothing_about_the_endpoint() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=100, per_account=20)
    made.release(take(made, "one", 2))
    assert (made.available("one"), made.free) == (2, 100)


def test_any_number_of_hanging_accounts_leaves_half_of_the_places_to_proven_ones() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=20, per_account=8)
    prove(made, "quick", attempts=6)
    held = [place for number in range(50) for place in take(made, f"hanging {number}", 8)]
    assert len(held) == 10
    assert made.available("another new one") == 0
    assert made.available("quick") == 8
    assert len(take(made, "quick", 8)) == 8


def test_any_number_of_slow_accounts_leaves_a_quarter_of_the_places_to_new_ones() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=20, per_account=8)
    prove(made, "quick", attempts=20)
    names = [f"slow {number}" for number in range(50)]
    for name in names:
        hang(made, name)
    held = [place for name in names for place in take(made, name, 8)]
    assert len(held) == 5
    new = [place for number in range(50) for place in take(made, f"new {number}", 8)]
    assert len(new) == 5
    assert len(take(made, "quick", 8)) == 8
    finish(made, held[:1], SLOW)
    assert (made.available("another new one"), made.available(names[-1])) == (1, 1)


def test_a_new_account_is_slow_when_its_first_attempt_is_under_way_for_a_second() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=20, per_account=8)
    hang(made, "slow")
    for number in range(3):
        take(made, f"hanging {number}", 1)
    made.mark_slow(now=0.9)
    assert made.available("slow") == 4
    made.mark_slow(now=1.0)
    assert made.available("slow") == 2, "three of a quarter are taken"
    assert made.available("hanging 0") == 1
    assert made.available("new") == 2


def test_new_accounts_that_all_hang_let_slow_ones_wait_until_a_quarter_is_theirs_again() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=8, per_account=2)
    hang(made, "slow")
    slots = [place for number in range(4) for place in take(made, f"hanging {number}", 1)]
    made.mark_slow(now=SLOW)
    assert (made.available("slow"), made.available("new")) == (0, 0)
    finish(made, slots[:2], SLOW)
    assert (made.available("slow"), made.available("new")) == (0, 2)
    finish(made, slots[2:3], SLOW)
    assert (made.available("slow"), made.available("new")) == (1, 2)


def test_an_account_that_begins_to_hang_counts_as_not_proven_before_its_attempts_end() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=20, per_account=8)
    for name in ("first", "second"):
        prove(made, name, attempts=6)
    slots = take(made, "first", 7)
    made.mark_slow(now=0.9)
    assert (made.available("first"), made.available("new")) == (1, 2)
    made.mark_slow(now=1.0)
    assert (made.available("first"), made.available("new")) == (0, 2)
    take(made, "new", 2, now=1.0)
    take(made, "newer", 2, now=1.0)
    assert made.available("another") == 0, "seven places of the first and three of new ones are half of them"
    assert made.available("second") == 8
    finish(made, slots[:1], QUICK)
    assert made.available("another") == 2, "the first is proven again"


def test_who_hangs_gives_its_places_back_to_those_that_are_not_proven_when_it_ends() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=4, per_account=2)
    slots = take(made, "hanging", 2)
    assert made.available("new") == 0
    finish(made, slots[:1], SLOW)
    assert made.available("new") == 1
    finish(made, slots[1:], SLOW)
    assert (made.available("new"), made.free) == (2, 4)


def test_a_proven_account_cannot_have_more_than_there_are() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=3, per_account=10)
    prove(made, "quick", attempts=8)
    assert len(take(made, "quick", 100)) == 3
    assert (made.free, made.available("quick"), made.available("new")) == (0, 0, 0)


def test_the_only_place_is_for_everybody() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=1, per_account=1)
    assert len(take(made, "new", 5)) == 1


def test_new_accounts_come_first_and_then_who_has_waited_longest() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=100, per_account=20)
    for name in ("a", "b", "c", "a"):
        prove(made, name)
    hang(made, "slow")
    prove(made, "d")
    take(made, "tried just now", 1)
    asked = ["a", "b", "c", "d", "slow", "tried just now", "new"]
    assert made.by_priority(asked) == ["new", "tried just now", "b", "c", "a", "slow", "d"]


def test_more_hanging_accounts_than_places_all_get_their_turn() -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=4, per_account=2)
    names = [f"hanging {number}" for number in range(9)]
    served: set[str] = set()
    for _ in range(9):
        slots = [place for name in made.by_priority(names) for place in take(made, name, 1)]
        served |= {place.account_id for place in slots}
        finish(made, slots, SLOW)
    assert served == set(names)


def test_only_so_many_accounts_are_remembered_and_none_that_has_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_schedule, "MAX_ACCOUNTS", 3)
    made = webhook_schedule.ConcurrencyBudget(slots=100, per_account=20)
    (place,) = take(made, "busy", 1)
    for name in ("a", "b", "c", "d"):
        prove(made, name)
    assert [made.available(name) for name in ("a", "b", "c", "d")] == [2, 2, 3, 3]
    made.end(place, now=QUICK)
    assert made.available("busy") == 3
    assert made.free == 100


Step = tuple[str, int, float]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 9), st.sampled_from([QUICK, SLOW])), max_size=60))
def test_places_are_never_given_twice_and_all_come_back(steps: list[Step]) -> None:
    made = webhook_schedule.ConcurrencyBudget(slots=8, per_account=5)
    held: list[webhook_schedule.Slot] = []
    hang(made, "known to be slow")
    for account_id, limit, seconds in steps:
        held += take(made, account_id, limit)
        made.mark_slow(now=seconds / 2)
        assert made.free == 8 - len(held) >= 0
        if len(held) > limit:
            finish(made, [held.pop(0)], seconds)
    finish(made, held, SLOW)
    assert made.free == 8
    assert len(take(made, "known to be slow", 9)) == 2
    assert sum(len(take(made, name, 9)) for name in "uvwxyz") == 2
