"""Costly work takes turns, within an account and within a process."""

import contextlib

import pytest

from postroad import context, errors
from postroad.services import usage_limits

KIND = usage_limits.WorkLimit("digs", per_account=2, per_process=3, retry_seconds=7)
OTHER = usage_limits.WorkLimit("climbs", per_account=1, per_process=1, retry_seconds=7)


def test_an_account_has_its_number_of_turns_and_gets_them_back(ctx: context.Context) -> None:
    with usage_limits.acquire(ctx, KIND, "acc_a"):
        with usage_limits.acquire(ctx, KIND, "acc_a"):
            with (
                pytest.raises(errors.RateLimited, match="digs: at most 2") as refused,
                usage_limits.acquire(ctx, KIND, "acc_a"),
            ):
                pass
            assert refused.value.retry_after == 7
        with usage_limits.acquire(ctx, KIND, "acc_a"):
            pass
    assert not ctx.work_in_progress


def test_all_accounts_together_have_a_bound_for_each_kind(ctx: context.Context) -> None:
    with (
        usage_limits.acquire(ctx, KIND, "acc_a"),
        usage_limits.acquire(ctx, KIND, "acc_a"),
        usage_limits.acquire(ctx, KIND, "acc_b"),
    ):
        with pytest.raises(errors.RateLimited, match="digs: too many"), usage_limits.acquire(ctx, KIND, "acc_c"):
            pass
        with usage_limits.acquire(ctx, OTHER, "acc_c"):
            pass


def test_work_that_fails_gives_its_turn_back(ctx: context.Context) -> None:
    with pytest.raises(LookupError), usage_limits.acquire(ctx, OTHER, "acc_a"):
        raise LookupError
    with usage_limits.acquire(ctx, OTHER, "acc_b"):
        pass


def test_accounts_that_use_all_they_may_leave_something_for_the_next(ctx: context.Context) -> None:
    downloads = usage_limits.WorkLimit("downloads", per_account=8, per_process=32, retry_seconds=5)
    with contextlib.ExitStack() as taken:
        for number in range(6):
            with contextlib.suppress(errors.RateLimited):
                for _ in range(8):
                    taken.enter_context(usage_limits.acquire(ctx, downloads, f"acc_{number}"))
        taken.enter_context(usage_limits.acquire(ctx, downloads, "acc_next"))
    assert not ctx.work_in_progress
