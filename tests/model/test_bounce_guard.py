"""The bounce guard acts exactly at its thresholds, from its minimum of recipients on, and by whole days."""

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.model.bounces import bounce_guard
from postroad.model.bounces.bounce_guard import Counts, Level, Trigger
from postroad.model.units import labels, times

RULES = bounce_guard.Rules(
    days=7,
    recipients=200,
    bounces=bounce_guard.Thresholds(Fraction(4), Fraction(8)),
    complaints=bounce_guard.Thresholds(Fraction("0.08"), Fraction("0.3"), 2),
)


def level(recipients: int, bounces: int = 0, complaints: int = 0) -> tuple[Level, Trigger | None]:
    assessment = bounce_guard.assess(Counts(recipients, bounces, complaints), RULES)
    return assessment.level, assessment.trigger


def test_one_bounce_suspends_where_the_rules_ask_for_no_more() -> None:
    strict = bounce_guard.Thresholds(Fraction(4), Fraction(8))
    rules = bounce_guard.Rules(days=7, recipients=10, bounces=strict, complaints=strict)
    assert bounce_guard.assess(Counts(12, 1, 0), rules).level is Level.SUSPENDED


@pytest.mark.parametrize(
    "recipients, bounces, expected",
    [
        (200, 0, Level.OK),
        (200, 7, Level.OK),
        (200, 8, Level.WARNED),
        (201, 8, Level.OK),
        (200, 15, Level.WARNED),
        (200, 16, Level.SUSPENDED),
        (201, 16, Level.WARNED),
        (199, 199, Level.OK),
        (1_000_000_000, 79_999_999, Level.WARNED),
        (1_000_000_000, 80_000_000, Level.SUSPENDED),
    ],
)
def test_bounces_are_assessed_exactly_at_the_thresholds(recipients: int, bounces: int, expected: Level) -> None:
    assert level(recipients, bounces) == (expected, None if expected is Level.OK else Trigger.BOUNCES)


@pytest.mark.parametrize(
    "recipients, complaints, expected",
    [
        (1250, 1, Level.WARNED),
        (1251, 1, Level.OK),
        (1000, 3, Level.SUSPENDED),
        (1001, 3, Level.WARNED),
        (200, 1, Level.WARNED),
        (200, 2, Level.SUSPENDED),
        (199, 50, Level.OK),
    ],
)
def test_complaints_are_assessed_likewise_but_one_alone_suspends_nobody(
    recipients: int, complaints: int, expected: Level
) -> None:
    assert level(recipients, complaints=complaints) == (expected, None if expected is Level.OK else Trigger.COMPLAINTS)


def test_the_worse_of_the_two_counts() -> None:
    assert level(1000, bounces=40, complaints=3) == (Level.SUSPENDED, Trigger.COMPLAINTS)
    assert level(1000, bounces=80, complaints=3) == (Level.SUSPENDED, Trigger.BOUNCES)
    assert level(1000, bounces=40, complaints=1) == (Level.WARNED, Trigger.BOUNCES)


@given(st.integers(200, 10**9), st.integers(0, 10**9), st.integers(1, 100_000), st.integers(0, 100_000))
def test_a_threshold_of_any_size_is_exact(recipients: int, bounces: int, warn: int, more: int) -> None:
    """Thousandths of a percent, against a comparison of whole numbers."""
    thresholds = bounce_guard.Thresholds(Fraction(warn, 1000), Fraction(warn + more, 1000))
    rules = bounce_guard.Rules(7, 200, bounces=thresholds, complaints=RULES.complaints)
    found = bounce_guard.assess(Counts(recipients, bounces), rules).level
    share = bounces * 100 * 1000
    expected = (
        Level.SUSPENDED
        if share >= (warn + more) * recipients
        else Level.WARNED
        if share >= warn * recipients
        else Level.OK
    )
    assert found is expected


@given(st.integers(0, 10**17))
def test_a_day_begins_at_midnight_utc(time: int) -> None:
    day = times.day_of(time)
    assert day * times.DAY <= time < (day + 1) * times.DAY


@given(*[st.builds(Counts, *[st.integers(0, 10**9)] * 3)] * 2)
def test_what_was_before_is_what_is_left(one: Counts, other: Counts) -> None:
    assert one.plus(other).minus(other) == one


@pytest.mark.parametrize("trigger", Trigger)
def test_the_reason_has_numbers_and_what_to_do_and_fits_into_a_refusal(trigger: Trigger) -> None:
    reason = bounce_guard.reason(trigger, Counts(240, 22, 5), until=None)
    assert ("22 of the last 240 recipients (9.17%)" if trigger is Trigger.BOUNCES else "5 complaints") in reason
    assert reason.endswith(". The operator can resume the account")
    until = 1_800_000_000_000_000
    reason = bounce_guard.reason(trigger, Counts(10**12, 10**12, 10**12), until=until)
    assert reason.endswith(". Sending resumes on 2027-01-15 at 08:00 UTC")
    assert len(reason) <= labels.REASON_CHARACTERS


@pytest.mark.parametrize(
    "address, mailbox",
    [
        ("eve@example.net", "eve@example.net"),
        ("eve+1@example.net", "eve@example.net"),
        ("eve+1+2@example.net", "eve@example.net"),
        ("e.ve@example.net", "e.ve@example.net"),
        ("e.v.e+x@gmail.com", "eve@gmail.com"),
        ("eve@googlemail.com", "eve@gmail.com"),
        ("+x@example.net", "+x@example.net"),
        ("eve@mail.gmail.com", "eve@mail.gmail.com"),
        ("eve-shop@yahoo.com", "eve@yahoo.com"),
        ("eve-shop-2+x@yahoo.co.uk", "eve@yahoo.co.uk"),
        ("eve-1@aol.com", "eve@aol.com"),
        ("e.ve@yahoo.com", "e.ve@yahoo.com"),
        ("-x@yahoo.com", "-x@yahoo.com"),
        ("eve-shop@example.net", "eve-shop@example.net"),
        ("x@eve.fastmail.com", "eve@fastmail.com"),
        ("eve+y@fastmail.com", "eve@fastmail.com"),
        ("x@y.eve.fastmail.com", "x@y.eve.fastmail.com"),
        ("x@eve.example.net", "x@eve.example.net"),
        ("e.v-e_1+x@protonmail.com", "eve1@proton.me"),
        ("eve1@pm.me", "eve1@proton.me"),
        ("...@gmail.com", "...@gmail.com"),
    ],
)
def test_what_the_owner_of_a_mailbox_can_vary_makes_no_other(address: str, mailbox: str) -> None:
    assert bounce_guard.mailbox_of(address) == mailbox


def test_a_suspension_lasts_as_long_as_the_cool_down() -> None:
    rules = msgspec.structs.replace(RULES, cooldown=5)
    assert (rules.suspended_until(10), RULES.suspended_until(10)) == (15, None)


def test_a_share_of_nothing_is_nothing() -> None:
    assert bounce_guard.percent(3, 0) == 0.0
    assert bounce_guard.percent(1, 3) == 33.3333
