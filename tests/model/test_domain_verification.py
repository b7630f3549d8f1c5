"""When DNS is asked about a domain, and what its word means for the proof."""

import pytest

from postroad.model.domains import domain_records
from postroad.model.domains.domain_records import ANSWERS, GRACE_PERIOD, MINUTE, RecordState, VerificationChange
from postroad.model.units.times import DAY, HOUR

NOW = 1_800_000_000_000_000
NO = [RecordState.MISSING, RecordState.WRONG]


def change(
    state: RecordState, *, verified: bool = True, by_dns: bool = True, failing_for: int | None = None
) -> VerificationChange:
    failing_since = None if failing_for is None else NOW - failing_for
    return domain_records.verification_change(
        state, verified=verified, by_dns=by_dns, failing_since=failing_since, now=NOW
    )


def next_check(
    *,
    age: int = 0,
    verified: bool = False,
    failing_for: int | None = None,
    check_hours: int = 24,
    random_fraction: float = 0.5,
) -> int:
    at = domain_records.next_check(
        verified=verified,
        failing_since=None if failing_for is None else NOW - failing_for,
        created_at=NOW - age,
        check_hours=check_hours,
        now=NOW,
        random_fraction=random_fraction,
    )
    return at - NOW


def test_the_key_proves_a_domain_also_one_that_has_lost_its_proof() -> None:
    assert change(RecordState.OK, verified=False, by_dns=False) is VerificationChange.VERIFIED
    assert change(RecordState.OK, verified=False, by_dns=False, failing_for=90 * DAY) is VerificationChange.VERIFIED


@pytest.mark.parametrize("state", [*NO, RecordState.UNKNOWN])
def test_without_the_key_nothing_is_proven(state: RecordState) -> None:
    assert change(state, verified=False, by_dns=False) is VerificationChange.NONE


@pytest.mark.parametrize("state", NO)
def test_a_proof_is_lost_only_when_the_key_stays_away(state: RecordState) -> None:
    assert change(state) is VerificationChange.FAILING
    assert change(state, failing_for=GRACE_PERIOD - 1) is VerificationChange.NONE
    assert change(state, failing_for=GRACE_PERIOD) is VerificationChange.LOST


def test_a_key_that_comes_back_in_time_saves_the_proof() -> None:
    assert change(RecordState.OK, failing_for=GRACE_PERIOD + DAY) is VerificationChange.RECOVERED
    assert change(RecordState.OK) is VerificationChange.NONE


def test_silence_of_dns_takes_nothing_away() -> None:
    assert change(RecordState.UNKNOWN) is VerificationChange.NONE
    assert change(RecordState.UNKNOWN, failing_for=GRACE_PERIOD + DAY) is VerificationChange.NONE


@pytest.mark.parametrize("state", ANSWERS)
def test_dns_does_not_overrule_an_operator(state: RecordState) -> None:
    assert change(state, by_dns=False) is VerificationChange.NONE
    assert change(state, by_dns=False, failing_for=GRACE_PERIOD + DAY) is VerificationChange.NONE


@pytest.mark.parametrize(
    "age, delay",
    [
        (0, 5 * MINUTE),
        (HOUR - 1, 5 * MINUTE),
        (HOUR, HOUR),
        (DAY - 1, HOUR),
        (DAY, DAY),
        (30 * DAY - 1, DAY),
        (30 * DAY, 7 * DAY),
        (1000 * DAY, 7 * DAY),
    ],
)
def test_an_unproven_domain_is_asked_less_often_as_it_grows_old(age: int, delay: int) -> None:
    assert next_check(age=age) == delay


def test_a_proven_domain_is_asked_as_often_as_the_operator_says() -> None:
    assert next_check(age=0, verified=True) == DAY
    assert next_check(age=1000 * DAY, verified=True, check_hours=6) == 6 * HOUR


def test_one_that_fails_is_asked_every_hour_but_not_for_ever() -> None:
    assert next_check(age=1000 * DAY, verified=True, failing_for=HOUR) == HOUR
    assert next_check(age=1000 * DAY, failing_for=29 * DAY) == HOUR
    assert next_check(age=1000 * DAY, failing_for=30 * DAY) == 7 * DAY


def test_chance_moves_checks_by_up_to_a_tenth() -> None:
    assert next_check(random_fraction=0.0) == round(4.5 * MINUTE)
    assert next_check(random_fraction=1.0) == round(5.5 * MINUTE)
