"""Shares by the dynamic threshold."""

import pytest

from postroad.model.delivery import fair_shares

ALICE, BOB = fair_shares.Party("alice"), fair_shares.Party("bob")


def taken(shares: fair_shares.FairShares, *parties: fair_shares.Party) -> int:
    """Take as much as they may have together."""
    count = 0
    while shares.take(parties):
        count += 1
    return count


@pytest.mark.parametrize("alpha, units", [(1.0, 50), (4.0, 80), (9.0, 90)])
def test_who_is_alone_gets_all_but_a_part(alpha: float, units: int) -> None:
    shares = fair_shares.FairShares(100)
    assert taken(shares, fair_shares.Party("alone", alpha)) == units


@pytest.mark.parametrize("units", range(1, 12))
@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0, 8.0])
def test_the_room_of_a_party_is_what_it_can_take(alpha: float, units: int) -> None:
    shares, party = fair_shares.FairShares(units), fair_shares.Party("alone", alpha)
    assert shares.room(party) == taken(shares, party)
    assert shares.room(party) == 0
    shares.add((party,), units)  # more than there are
    assert shares.room(party) == shares.room(BOB) == 0


def test_somebody_who_comes_later_finds_something_free() -> None:
    shares = fair_shares.FairShares(500)
    assert taken(shares, ALICE) == 400
    assert taken(shares, BOB) == 80


def test_two_who_give_back_and_take_again_get_equal_parts() -> None:
    shares = fair_shares.FairShares(500)
    taken(shares, ALICE)
    for _ in range(1000):
        shares.give_back([ALICE])
        while shares.take([BOB]) or shares.take([ALICE]):
            pass
    assert abs(shares.held(ALICE) - shares.held(BOB)) <= 4
    assert shares.free >= 500 // 9


def test_a_single_unit_can_be_taken() -> None:
    shares = fair_shares.FairShares(1)
    assert shares.take([ALICE])
    assert not shares.take([BOB])
    shares.give_back([ALICE])
    assert shares.take([BOB])


def test_a_unit_counts_for_every_party() -> None:
    shares = fair_shares.FairShares(100)
    slow = fair_shares.Party("slow", 1.0)
    assert taken(shares, ALICE, slow) == 50
    assert shares.take([ALICE])
    assert not shares.take([BOB, slow])


def test_what_is_held_already_can_count_for_another_party() -> None:
    shares = fair_shares.FairShares(100)
    slow = fair_shares.Party("slow", 1.0)
    taken(shares, ALICE)
    shares.count(slow, 80)
    assert not shares.take([BOB, slow])
    shares.count(slow, -80)
    assert shares.take([BOB, slow])


def test_several_units_are_taken_and_given_back_together() -> None:
    shares = fair_shares.FairShares(100)
    assert shares.take([ALICE], 30)
    assert not shares.take([BOB], 71)
    assert shares.take([BOB], 70)
    shares.give_back([ALICE], 30)
    assert (shares.free, shares.held(ALICE), shares.held(BOB)) == (30, 0, 70)


def waiting(shares: fair_shares.FairShares, *waiters: tuple[str, fair_shares.Party]) -> fair_shares.FairQueue[str]:
    queue: fair_shares.FairQueue[str] = fair_shares.FairQueue(shares)
    for name, party in waiters:
        queue.push((party,), name)
    return queue


def pop(queue: fair_shares.FairQueue[str]) -> str | None:
    parties = queue.first()
    return None if parties is None else queue.pop(parties)


def test_who_holds_least_is_next_and_of_equals_who_waited_longest_since_its_turn() -> None:
    shares = fair_shares.FairShares(100)
    shares.add([ALICE], 2)
    queue = waiting(shares, ("a1", ALICE), ("a2", ALICE), ("b1", BOB), ("b2", BOB), ("b3", BOB), ("b4", BOB))
    assert [pop(queue) for _ in range(7)] == ["b1", "b2", "a1", "b3", "a2", "b4", None]
    assert not queue


def test_nobody_is_next_when_nothing_is_free_or_nobody_has_a_share() -> None:
    shares = fair_shares.FairShares(5)
    queue = waiting(shares, ("a", ALICE))
    shares.add([ALICE], 4)
    assert queue.first() is None
    shares.add([BOB])
    assert pop(queue) is None
    shares.give_back([ALICE], 2)
    assert pop(queue) == "a"


def test_a_party_that_many_have_in_common_refuses_only_those() -> None:
    shares = fair_shares.FairShares(10)
    slow = fair_shares.Party("slow", 1.0)
    shares.add([slow], 5)
    queue: fair_shares.FairQueue[str] = fair_shares.FairQueue(shares)
    queue.push((ALICE, slow), "slow one")
    queue.push((ALICE,), "quick one")
    assert [pop(queue), pop(queue)] == ["quick one", None]
    shares.give_back([slow])
    assert pop(queue) == "slow one"


def test_who_waits_no_longer_is_forgotten() -> None:
    shares = fair_shares.FairShares(10)
    queue = waiting(shares, ("a", ALICE), ("b", ALICE))
    queue.discard((ALICE,), "a")
    assert queue.is_waiting((ALICE,))
    queue.discard((ALICE,), "b")
    queue.discard((ALICE,), "b")
    assert not queue.is_waiting((ALICE,))
    assert not queue


def test_who_is_first_comes_before_the_others_of_its_party_and_before_no_other_party() -> None:
    shares = fair_shares.FairShares(3)
    waiting: fair_shares.FairQueue[str] = fair_shares.FairQueue(shares)
    waiting.push((BOB,), "bob")
    waiting.push((ALICE,), "alice")
    waiting.push((ALICE,), "alice, urgent", is_first=True)
    order = []
    while (parties := waiting.first()) is not None:
        order.append(waiting.pop(parties))
    assert order == ["bob", "alice, urgent", "alice"]
