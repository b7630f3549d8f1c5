"""The mail host of a trial remembers what it has said: the reconciliation believes it."""

import random

import pytest

from tests.chaos import flaky_host
from tests.chaos.flaky_host import ContentOutcome

ADA = "fine.0.0@north.example.net"


class Fixed(random.Random):
    """Chance that has decided already."""

    def __init__(self, fate: ContentOutcome) -> None:
        super().__init__(1)
        self.fate = fate

    def choices(self, *_arguments: object, **_options: object) -> list[ContentOutcome]:  # type: ignore[override] # one answer
        return [self.fate]


@pytest.mark.parametrize("fate", ContentOutcome)
def test_what_is_taken_and_what_is_refused_is_counted(fate: ContentOutcome) -> None:
    host = flaky_host.Host(Fixed(fate))
    assert host.outcome_of([ADA]) is fate
    taken = fate in {ContentOutcome.ACCEPTED, ContentOutcome.ACCEPTED_SLOWLY, ContentOutcome.ACCEPTED_AND_DROPPED}
    assert (host.taken[ADA], host.refused[ADA]) == (int(taken), int(fate is ContentOutcome.REFUSED))


@pytest.mark.parametrize("fate", [ContentOutcome.DEFERRED, ContentOutcome.DROPPED, ContentOutcome.ACCEPTED_AND_DROPPED])
def test_after_some_trouble_a_message_is_taken_for_sure(fate: ContentOutcome) -> None:
    host = flaky_host.Host(Fixed(fate))
    host.deferred[ADA] = flaky_host.MAX_TEMPORARY_FAILURES
    assert host.outcome_of([ADA]) is ContentOutcome.ACCEPTED
    assert host.taken == {ADA: 1}


def test_the_local_part_decides_about_a_recipient() -> None:
    host = flaky_host.Host(random.Random(1))
    gone, later = "gone.0.0@north.example.net", "later.0.0@north.example.net"
    assert [host.answer_recipient(gone)[:3] for _ in range(2)] == ["550", "550"]
    assert [host.answer_recipient(later)[:3] for _ in range(3)] == ["451", "451", "250"]
    assert host.answer_recipient(ADA).startswith("250")
    assert host.refused == {gone: 2}
