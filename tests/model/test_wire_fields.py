"""The public form of a record has the named fields in order, and its times as text."""

from dataclasses import dataclass

from postroad.model.units import times


@dataclass(frozen=True, slots=True)
class Record:
    id: str
    secret: str
    warm: int
    created_at: int
    failing_since: int | None


RECORD = Record("dom_1", "hidden", 1, 1_769_860_800_000_000, None)


def test_only_the_named_fields_are_shown_in_their_order() -> None:
    shown = times.wire_fields(RECORD, ("created_at", "id", "failing_since"))
    assert list(shown.items()) == [
        ("created_at", "2026-01-31T12:00:00.000Z"),
        ("id", "dom_1"),
        ("failing_since", None),
    ]


def test_a_changed_field_stands_at_its_place_and_may_be_missing_from_the_record() -> None:
    shown = times.wire_fields(RECORD, ("id", "warm", "reason"), warm=True, reason="new")
    assert list(shown.items()) == [("id", "dom_1"), ("warm", True), ("reason", "new")]


def test_a_field_may_have_any_name() -> None:
    assert times.wire_fields(RECORD, ("names", "record"), names=["a.example"], record=1) == {
        "names": ["a.example"],
        "record": 1,
    }
