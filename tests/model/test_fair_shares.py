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


# Parties take turns; urgent items are earlier, not more.


def made(*items: str) -> fair_shares.Turns[str, str]:
    """Items such as `a1`, or `a1!` if it is urgent; the letter is their party."""
    made = fair_shares.Turns[str, str]()
    for item in items:
        made.add(item[0], item, is_urgent=item.endswith("!"))
    return made


def taken_turns(one: fair_shares.Turns[str, str], count: int | None = None) -> list[str]:
    return [one.take(next(one.parties())) for _ in range(one.count if count is None else count)]


def test_parties_take_turns() -> None:
    one = made("a1", "a2", "a3", "b1", "b2", "c1")
    assert one.count == 6
    assert taken_turns(one) == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert (one.count, list(one.parties())) == (0, [])


def test_an_urgent_item_goes_before_the_items_of_others_and_of_its_own_party() -> None:
    assert taken_turns(made("a1", "a2", "b1", "b2", "b3!")) == ["b3!", "a1", "a2", "b1", "b2"]


def test_urgent_items_of_several_parties_take_turns() -> None:
    assert taken_turns(made("a1", "b1!", "b2!", "c1!", "c2!", "d1!"), 6) == ["b1!", "c1!", "d1!", "a1", "b2!", "c2!"]


def test_a_party_with_urgent_items_only_gets_no_more_turns_than_others() -> None:
    one = made(*(f"{party}{number}" for party in "abc" for number in range(9)), *(f"x{number}!" for number in range(9)))
    order = "".join(item[0] for item in taken_turns(one, 16))
    assert order == "xabcxabcxabcxabc"


def test_a_party_whose_urgent_items_arrive_one_by_one_gets_no_more_turns_either() -> None:
    one = made(*(f"{party}{number}" for party in "ab" for number in range(9)))
    order = ""
    for number in range(9):
        one.add("x", f"x{number}!", is_urgent=True)
        order += taken_turns(one, 1)[0][0]
    assert order == "xabxabxab"


def test_a_turn_that_was_used_up_is_taken_again_where_no_other_can_take_one() -> None:
    one = made("a1", "x1!", "x2!")
    assert taken_turns(one, 1) == ["x1!"]
    assert list(one.parties()) == ["a", "x"]  # `a` may have no share now
    assert one.take("x") == "x2!"
    assert taken_turns(one) == ["a1"]


def test_urgent_items_can_be_removed_without_a_turn() -> None:
    one = made("a1", "b1!", "b2!", "b3", "c1!")
    assert one.remove_urgent(lambda item: item in {"b1!", "c1!", "a1"}) == ["b1!", "c1!"]
    assert one.count == 3
    assert taken_turns(one, 1) == ["b2!"]
    one.add("b", "b4!", is_urgent=True)
    assert one.remove_urgent(lambda item: item == "b4!") == ["b4!"]
    # The turn is used up all the same.
    one.add("b", "b5!", is_urgent=True)
    assert taken_turns(one) == ["a1", "b5!", "b3"]


def test_urgent_items_are_known_by_party_and_all_items_can_be_removed() -> None:
    one = made("a1", "b1!", "b2")
    assert (one.has_urgent("a"), one.has_urgent("b")) == (False, True)
    assert sorted(one.clear()) == ["a1", "b1!", "b2"]
    assert (one.count, list(one.parties())) == (0, [])
    one.add("b", "b3")
    assert taken_turns(one) == ["b3"]
