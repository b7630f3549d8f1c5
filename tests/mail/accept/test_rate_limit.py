"""Request rates: a bucket for each credential, a wait that is true, and figures that callers can plan with."""

import pytest

from postroad import errors
from postroad.mail.accept import send_limits
from postroad.model.delivery import throttle
from postroad.model.units import times

NOON = 1_700_000_000 * times.SECOND


def test_several_at_once_get_what_is_left_and_may_give_it_back() -> None:
    buckets = send_limits.RateLimiter(throttle.RateLimit(rate=100, burst=200))
    assert buckets.take_up_to(150, "acc_a", now=NOON) == 150
    assert buckets.take_up_to(150, "acc_a", now=NOON) == 50
    with pytest.raises(errors.RateLimited):
        buckets.take_up_to(150, "acc_a", now=NOON)
    buckets.give_back(30, "acc_a")
    assert buckets.take_up_to(150, "acc_a", now=NOON) == 30
    assert buckets.take_up_to(150, "acc_a", now=NOON + 20_000) == 2


def test_a_refusal_says_when_to_come_back_and_keeps_its_word() -> None:
    buckets = send_limits.RateLimiter(throttle.RateLimit(rate=1, burst=2))
    buckets.take("acc_a", now=NOON)
    buckets.take("acc_a", now=NOON)
    with pytest.raises(errors.RateLimited, match="1 sends per second") as refusal:
        buckets.take("acc_a", now=NOON + 1)
    assert refusal.value.retry_after == 1
    buckets.take("acc_a", now=NOON + 1 + times.SECOND)
    # A wait of a moment is rounded up to a second.
    quick = send_limits.RateLimiter(throttle.RateLimit(rate=1000, burst=1))
    quick.take("acc_a", now=NOON)
    with pytest.raises(errors.RateLimited) as refusal:
        quick.take("acc_a", now=NOON)
    assert refusal.value.retry_after == 1


def test_the_header_fields_have_the_policy_and_what_is_left() -> None:
    buckets = send_limits.RateLimiter(throttle.RateLimit(rate=100, burst=200))
    assert buckets.headers("acc_a", now=NOON) == ()
    buckets.take("acc_a", now=NOON)
    assert dict(buckets.headers("acc_a", now=NOON)) == {
        "RateLimit-Policy": '"account";q=200;w=2',
        "RateLimit": '"account";r=199;t=1',
    }
    for _ in range(149):
        buckets.take("acc_a", now=NOON)
    assert dict(buckets.headers("acc_a", now=NOON))["RateLimit"] == '"account";r=50;t=2'
    for _ in range(50):
        buckets.take("acc_a", now=NOON)
    assert dict(buckets.headers("acc_a", now=NOON))["RateLimit"] == '"account";r=0;t=2'


def test_buckets_that_are_full_again_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_limits, "MAX_BUCKETS", 10)
    buckets = send_limits.RateLimiter(throttle.RateLimit(rate=1, burst=1))
    for number in range(10):
        buckets.take(f"cred_{number}", now=NOON)
    buckets.take("cred_late", now=NOON + times.SECOND)
    assert list(buckets._full_at) == ["cred_late"]


def test_dropping_full_buckets_gives_nobody_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_limits, "MAX_BUCKETS", 2)
    buckets = send_limits.RateLimiter(throttle.RateLimit(rate=1, burst=1))
    for name in ("acc_a", "acc_b", "cred_c", "cred_d"):
        buckets.take(name, now=NOON)
    for name in ("acc_a", "acc_b", "cred_c", "cred_d"):
        with pytest.raises(errors.RateLimited):
            buckets.take(name, now=NOON)


def test_an_account_with_its_own_rate_is_filtered_by_it_and_told_so() -> None:
    limits = send_limits.RateLimiter(throttle.RateLimit(rate=10, burst=20))
    for _ in range(4):
        limits.take("cred_1", now=NOON, rate=2)
    with pytest.raises(errors.RateLimited, match=r"^more than 2 sends per second from this account;"):
        limits.take("cred_1", now=NOON, rate=2)
    assert dict(limits.headers("cred_1", now=NOON, rate=2)) == {
        "RateLimit-Policy": '"account";q=4;w=2',
        "RateLimit": '"account";r=0;t=2',
    }
    for _ in range(25):
        limits.take("cred_2", now=NOON, rate=50)


def test_the_word_of_the_store_counts_both_ways() -> None:
    buckets = send_limits.RateLimiter(throttle.RateLimit(rate=1, burst=2))
    buckets.learn("acc_a", NOON + 2 * times.SECOND)
    assert dict(buckets.headers("acc_a", now=NOON))["RateLimit"] == '"account";r=0;t=2'
    with pytest.raises(errors.RateLimited):
        buckets.take("acc_a", now=NOON)
    buckets.learn("acc_a", NOON)
    buckets.take("acc_a", now=NOON)
    # Figures stay within the bucket when the clock is set back.
    buckets.learn("acc_a", NOON + 3600 * times.SECOND)
    assert dict(buckets.headers("acc_a", now=NOON))["RateLimit"] == '"account";r=0;t=2'


def test_only_a_refusal_of_the_store_knows_when_the_bucket_is_full_again() -> None:
    policy = throttle.RateLimit(rate=1, burst=2)
    decision = throttle.take(policy, full_at=NOON + 2 * times.SECOND, now=NOON)
    here, stored = send_limits.rate_exceeded(policy, decision), send_limits.rate_exceeded(policy, decision, full_at=1)
    assert [(one.code, one.retry_after) for one in (here, stored)] == [("rate_limited", 1)] * 2
    assert (here.full_at, stored.full_at) == (None, 1)
