"""Postmark's numbers: within 32 bits for packages of typed languages, and never of another thing."""

from postroad_postmark import numbers

ID = "tpl_019a0000000000000000000000000000"


def named(number: int) -> str:
    """An id whose end is this number."""
    return f"{ID[:-13]}{number:013x}"


def test_a_number_has_31_bits_and_is_not_zero() -> None:
    assert [numbers.of(named(end)) for end in (0, 1, 2**31 - 2, 2**31 - 1, 2**52 - 1)] == [1, 2, 2**31 - 1, 1, 2**21]


def test_two_things_with_the_same_number_are_not_confused() -> None:
    found = numbers.by_number([named(7), named(8), named(7 + 2**31 - 1)], str)
    assert found == {"9": named(8)}
