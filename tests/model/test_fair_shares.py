"""Shares by the dynamic threshold."""

import pytest

from postroad.model import fair_shares

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
