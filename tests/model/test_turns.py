"""Parties take turns; urgent items are earlier, not more."""

from postroad.model.delivery import fair_shares


def made(*items: str) -> fair_shares.Turns[str, str]:
    """Items such as `a1`, or `a1!` if it is urgent; the letter is their party."""
    made = fair_shares.Turns[str, str]()
    for item in items:
        made.add(item[0], item, is_urgent=item.endswith("!"))
    return made


def taken(one: fair_shares.Turns[str, str], count: int | None = None) -> list[str]:
    return [one.take(next(one.parties())) for _ in range(len(one) if count is None else count)]


def test_parties_take_turns() -> None:
    one = made("a1", "a2", "a3", "b1", "b2", "c1")
    assert len(one) == 6
    assert taken(one) == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert (len(one), list(one.parties())) == (0, [])


def test_an_urgent_item_goes_before_the_items_of_others_and_of_its_own_party() -> None:
    assert taken(made("a1", "a2", "b1", "b2", "b3!")) == ["b3!", "a1", "a2", "b1", "b2"]


def test_urgent_items_of_several_parties_take_turns() -> None:
    assert taken(made("a1", "b1!", "b2!", "c1!", "c2!", "d1!"), 6) == ["b1!", "c1!", "d1!", "a1", "b2!", "c2!"]


def test_a_party_with_urgent_items_only_gets_no_more_turns_than_others() -> None:
    one = made(*(f"{party}{number}" for party in "abc" for number in range(9)), *(f"x{number}!" for number in range(9)))
    order = "".join(item[0] for item in taken(one, 16))
    assert order == "xabcxabcxabcxabc"


def test_a_party_whose_urgent_items_arrive_one_by_one_gets_no_more_turns_either() -> None:
    one = made(*(f"{party}{number}" for party in "ab" for number in range(9)))
    order = ""
    for number in range(9):
        one.add("x", f"x{number}!", is_urgent=True)
        order += taken(one, 1)[0][0]
    assert order == "xabxabxab"


def test_a_turn_that_was_used_up_is_taken_again_where_no_other_can_take_one() -> None:
    one = made("a1", "x1!", "x2!")
    assert taken(one, 1) == ["x1!"]
    assert list(one.parties()) == ["a", "x"]  # `a` may have no share now
    assert one.take("x") == "x2!"
    assert taken(one) == ["a1"]


def test_urgent_items_can_be_removed_without_a_turn() -> None:
    one = made("a1", "b1!", "b2!", "b3", "c1!")
    assert one.remove_urgent(lambda item: item in {"b1!", "c1!", "a1"}) == ["b1!", "c1!"]
    assert len(one) == 3
    assert taken(one, 1) == ["b2!"]
    one.add("b", "b4!", is_urgent=True)
    assert one.remove_urgent(lambda item: item == "b4!") == ["b4!"]
    # The turn is used up all the same.
    one.add("b", "b5!", is_urgent=True)
    assert taken(one) == ["a1", "b5!", "b3"]


def test_urgent_items_are_known_by_party_and_all_items_can_be_removed() -> None:
    one = made("a1", "b1!", "b2")
    assert (one.has_urgent("a"), one.has_urgent("b")) == (False, True)
    assert sorted(one.clear()) == ["a1", "b1!", "b2"]
    assert (len(one), list(one.parties())) == (0, [])
    one.add("b", "b3")
    assert taken(one) == ["b3"]
