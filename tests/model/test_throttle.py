"""The token bucket: exact at the burst, exact at the rate, and never confused by odd clocks or odd figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.model.delivery import throttle
from postroad.model.units import times

SECOND = times.SECOND
NOON = 1_700_000_000 * SECOND
POLICY = throttle.RateLimit(rate=10, burst=5)


def take_many(policy: throttle.RateLimit, times: list[int], full_at: int = 0) -> list[throttle.RateDecision]:
    verdicts = []
    for now in times:
        verdicts.append(throttle.take(policy, full_at=full_at, now=now))
        full_at = verdicts[-1].full_at
    return verdicts


def test_a_full_bucket_lets_its_burst_pass_at_once_and_not_one_more() -> None:
    verdicts = take_many(POLICY, [NOON] * 7)
    assert [decision.allowed for decision in verdicts] == 5 * [True] + 2 * [False]
    assert [decision.remaining for decision in verdicts] == [4, 3, 2, 1, 0, 0, 0]


def test_a_refusal_costs_nothing_and_says_how_long_to_wait() -> None:
    *_, last, refused = take_many(POLICY, [NOON] * 6)
    assert (refused.full_at, refused.wait) == (last.full_at, SECOND // 10)
    assert not throttle.take(POLICY, full_at=refused.full_at, now=NOON + refused.wait - 1).allowed
    assert throttle.take(POLICY, full_at=refused.full_at, now=NOON + refused.wait).allowed


def test_what_was_taken_comes_back_at_the_rate() -> None:
    drained = take_many(POLICY, [NOON] * 5)[-1].full_at
    later = take_many(POLICY, [NOON + 3 * SECOND // 10] * 4, full_at=drained)
    assert [decision.allowed for decision in later] == [True, True, True, False]


def test_rest_fills_the_bucket_but_never_beyond_its_burst() -> None:
    drained = take_many(POLICY, [NOON] * 5)[-1].full_at
    after_a_day = take_many(POLICY, [NOON + 86_400 * SECOND] * 6, full_at=drained)
    assert sum(decision.allowed for decision in after_a_day) == 5


def test_a_clock_that_steps_back_refuses_rather_than_giving_more() -> None:
    drained = take_many(POLICY, [NOON] * 5)[-1].full_at
    assert not throttle.take(POLICY, full_at=drained, now=NOON - 10 * SECOND).allowed


def test_a_clock_that_steps_back_by_an_hour_leaves_an_empty_bucket_that_fills_at_its_rate() -> None:
    drained = take_many(POLICY, [NOON] * 5)[-1].full_at
    earlier = NOON - 3600 * SECOND
    verdicts = take_many(POLICY, [earlier, earlier + POLICY.interval, earlier + POLICY.interval], full_at=drained)
    assert [decision.allowed for decision in verdicts] == [False, True, False]
    assert verdicts[0].wait == POLICY.interval


@pytest.mark.parametrize("rate", [1, 3, 7, 100, 999_999, 1_000_000, 1_000_001, 1_000_000_000])
def test_every_rate_that_can_be_configured_works(rate: int) -> None:
    verdicts = take_many(throttle.RateLimit(rate=rate, burst=2), [NOON] * 3)
    assert [decision.allowed for decision in verdicts] == [True, True, False]
    assert verdicts[2].wait > 0


@given(
    st.integers(1, 1000),
    st.integers(1, 50),
    st.lists(st.integers(0, 2 * SECOND), max_size=200),
)
def test_no_window_lets_more_through_than_burst_and_rate_allow(rate: int, burst: int, gaps: list[int]) -> None:
    policy = throttle.RateLimit(rate=rate, burst=burst)
    now, times = NOON, []
    for gap in gaps:
        now += gap
        times.append(now)
    verdicts = take_many(policy, times)
    passed = [time for time, decision in zip(times, verdicts, strict=True) if decision.allowed]
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + (passed[last] - passed[first]) // policy.interval


def test_no_rate_is_rounded_up() -> None:
    assert throttle.RateLimit(rate=3, burst=1).interval == 333_334


# Buckets that hosts share


def take_shared(
    policy: throttle.RateLimit, nows: list[int], bucket: throttle.SharedBucket | None = None
) -> tuple[list[throttle.RateDecision], throttle.SharedBucket]:
    bucket, verdicts = bucket or throttle.SharedBucket(), []
    for now in nows:
        decision, bucket = throttle.take_shared(policy, bucket, now=now)
        verdicts.append(decision)
    return verdicts, bucket


def test_a_shared_bucket_is_like_any_other_where_the_clocks_agree() -> None:
    nows = [NOON, NOON, NOON + 5, NOON + SECOND // 10, NOON + SECOND // 5, NOON + SECOND // 5, NOON + SECOND // 5]
    verdicts, bucket = take_shared(POLICY, nows)
    assert verdicts == take_many(POLICY, nows)
    assert (bucket.full_at, bucket.seen_at) == (verdicts[-1].full_at, NOON + SECOND // 5)


@pytest.mark.parametrize("behind", [SECOND // 100, SECOND, 2_000_000])
def test_a_host_that_is_behind_gets_what_is_left_and_no_more(behind: int) -> None:
    verdicts, bucket = take_shared(POLICY, [NOON, NOON] + 4 * [NOON - behind])
    assert [decision.allowed for decision in verdicts] == 5 * [True] + [False]
    assert verdicts[-1].wait == behind + POLICY.interval
    assert [decision.wait for decision in verdicts[:-1]] == 5 * [0]
    assert bucket == throttle.SharedBucket(full_at=NOON + POLICY.window, seen_at=NOON)


def test_a_verdict_uses_the_time_of_the_host_that_asked() -> None:
    (_, decision), bucket = take_shared(POLICY, [NOON, NOON - SECOND])
    assert decision.full_at == NOON - SECOND + 2 * POLICY.interval
    assert throttle.full_at(bucket, now=NOON - SECOND) == decision.full_at
    assert throttle.full_at(bucket, now=NOON) == NOON + 2 * POLICY.interval
    assert throttle.full_at(bucket, now=NOON + 1) == NOON + 2 * POLICY.interval


def test_a_clock_that_was_wrong_by_an_hour_leaves_an_empty_bucket_that_fills_at_its_rate() -> None:
    _, bucket = take_shared(POLICY, [NOON + 3600 * SECOND])
    verdicts, bucket = take_shared(POLICY, [NOON, NOON + POLICY.interval, NOON + POLICY.interval], bucket)
    assert [decision.allowed for decision in verdicts] == [False, True, False]
    assert bucket.seen_at == NOON + POLICY.interval


@pytest.mark.parametrize("back", [SECOND // 10, SECOND, 2 * SECOND, 2 * SECOND + 1, 5 * SECOND, 59 * SECOND])
def test_a_clock_that_is_set_back_refuses_for_moments_and_says_how_long(back: int) -> None:
    policy = throttle.RateLimit(rate=100, burst=200)
    _, bucket = take_shared(policy, [NOON])
    refusals: list[tuple[int, int]] = []
    # A customer that sends at half of the rate, for a minute.
    for now in range(NOON - back, NOON - back + 60 * SECOND, SECOND // 50):
        decision, bucket = throttle.take_shared(policy, bucket, now=now)
        if not decision.allowed:
            refusals.append((now, decision.wait))
    assert all(now + wait <= NOON - back + 3 * SECOND for now, wait in refusals)


def test_who_is_behind_and_waits_as_it_was_told_is_let_through() -> None:
    verdicts, bucket = take_shared(POLICY, [NOON] * 5 + [NOON - SECOND])
    refused = verdicts[-1]
    assert not refused.allowed
    just_before, _ = throttle.take_shared(POLICY, bucket, now=NOON - SECOND + refused.wait - 1)
    in_time, _ = throttle.take_shared(POLICY, bucket, now=NOON - SECOND + refused.wait)
    assert (just_before.allowed, in_time.allowed) == (False, True)


@pytest.mark.parametrize("waited", [SECOND, 2 * SECOND, 3 * SECOND, 10 * SECOND])
def test_a_request_that_waited_is_not_refused_because_another_overtook_it(waited: int) -> None:
    policy = throttle.RateLimit(rate=100, burst=200)
    _, bucket = take_shared(policy, [NOON])
    decision, after = throttle.take_shared(policy, bucket, now=NOON - waited, clock=NOON)
    assert (decision.allowed, decision.remaining) == (True, 198)
    assert after == throttle.SharedBucket(full_at=NOON + 2 * policy.interval, seen_at=NOON)


@given(
    st.integers(1, 1000),
    st.integers(1, 20),
    st.lists(st.integers(0, 2_000_000), min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, SECOND)), max_size=100),
)
def test_hosts_let_no_more_through_than_one_would_but_for_what_their_clocks_are_apart(
    rate: int, burst: int, ahead: list[int], requests: list[tuple[int, int]]
) -> None:
    policy = throttle.RateLimit(rate=rate, burst=burst)
    apart = max(ahead) - min(ahead)
    now, bucket, passed = NOON, throttle.SharedBucket(), []
    for host, gap in requests:
        now += gap
        decision, bucket = throttle.take_shared(policy, bucket, now=now + ahead[host])
        if decision.allowed:
            passed.append(now)
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + (passed[last] - passed[first] + apart) / policy.interval
