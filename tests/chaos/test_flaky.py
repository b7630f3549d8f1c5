"""The mail host of a trial remembers what it has said: the reconciliation believes it."""

import random

import pytest

from tests.chaos import flaky
from tests.chaos.flaky import Fate

ADA = "fine.0.0@north.example.net"


class Fixed(random.Random):
    """Chance that has decided already."""

    def __init__(self, fate: Fate) -> None:
        super().__init__(1)
        self.fate = fate

    def choices(self, *_arguments: object, **_options: object) -> list[Fate]:  # type: ignore[override] # one answer
        return [self.fate]


@pytest.mark.parametrize("fate", Fate)
def test_what_is_taken_and_what_is_refused_is_counted(fate: Fate) -> None:
    host = flaky.Host(Fixed(fate))
    assert host.fate_of([ADA]) is fate
    taken = fate in {Fate.TAKEN, Fate.TAKEN_SLOWLY, Fate.TAKEN_AND_DROPPED}
    assert (host.taken[ADA], host.refused[ADA]) == (int(taken), int(fate is Fate.REFUSED))


@pytest.mark.parametrize("fate", [Fate.PUT_OFF, Fate.DROPPED, Fate.TAKEN_AND_DROPPED])
def test_after_some_trouble_a_message_is_taken_for_sure(fate: Fate) -> None:
    host = flaky.Host(Fixed(fate))
    host.put_off[ADA] = flaky.MOST_TROUBLES
    assert host.fate_of([ADA]) is Fate.TAKEN
    assert host.taken == {ADA: 1}


def test_the_local_part_decides_about_a_recipient() -> None:
    host = flaky.Host(random.Random(1))
    gone, later = "gone.0.0@north.example.net", "later.0.0@north.example.net"
    assert [host.answer_recipient(gone)[:3] for _ in range(2)] == ["550", "550"]
    assert [host.answer_recipient(later)[:3] for _ in range(3)] == ["451", "451", "250"]
    assert host.answer_recipient(ADA).startswith("250")
    assert host.refused == {gone: 2}


def test_chances_make_a_whole() -> None:
    assert sum(flaky.SHARES.values()) == pytest.approx(1)
    assert flaky.SHARES.keys() == set(Fate)
    assert flaky.REPLIES.keys() == set(Fate) - {Fate.DROPPED, Fate.TAKEN_AND_DROPPED}
