"""Costly work takes turns, within an account and within a process."""

import contextlib

import pytest

from postroad import errors
from postroad.services import context, quota

KIND = quota.Quota("digs", per_account=2, per_process=3, retry_seconds=7)
OTHER = quota.Quota("climbs", per_account=1, per_process=1, retry_seconds=7)


def test_an_account_has_its_number_of_turns_and_gets_them_back(ctx: context.Context) -> None:
    with quota.acquire(ctx, KIND, "acc_a"):
        with quota.acquire(ctx, KIND, "acc_a"):
            with (
                pytest.raises(errors.RateLimited, match="digs: at most 2") as refused,
                quota.acquire(ctx, KIND, "acc_a"),
            ):
                pass
            assert refused.value.retry_after == 7
        with quota.acquire(ctx, KIND, "acc_a"):
            pass
    assert not ctx.quota_usage


def test_all_accounts_together_have_a_bound_for_each_kind(ctx: context.Context) -> None:
    with quota.acquire(ctx, KIND, "acc_a"), quota.acquire(ctx, KIND, "acc_a"), quota.acquire(ctx, KIND, "acc_b"):
        with pytest.raises(errors.RateLimited, match="digs: too many"), quota.acquire(ctx, KIND, "acc_c"):
            pass
        with quota.acquire(ctx, OTHER, "acc_c"):
            pass


def test_work_that_fails_gives_its_turn_back(ctx: context.Context) -> None:
    with pytest.raises(LookupError), quota.acquire(ctx, OTHER, "acc_a"):
        raise LookupError
    with quota.acquire(ctx, OTHER, "acc_b"):
        pass


def test_accounts_that_use_all_they_may_leave_something_for_the_next(ctx: context.Context) -> None:
    downloads = quota.Quota("downloads", per_account=8, per_process=32, retry_seconds=5)
    with contextlib.ExitStack() as taken:
        for number in range(6):
            with contextlib.suppress(errors.RateLimited):
                for _ in range(8):
                    taken.enter_context(quota.acquire(ctx, downloads, f"acc_{number}"))
        taken.enter_context(quota.acquire(ctx, downloads, "acc_next"))
    assert not ctx.quota_usage
