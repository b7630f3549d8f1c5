"""Costly work takes turns, within an account and within a process."""

import pytest

from postroad import errors
from postroad.services import context, turns

KIND = turns.Kind("digs", of_account=2, of_process=3, retry_seconds=7)
OTHER = turns.Kind("climbs", of_account=1, of_process=1, retry_seconds=7)


def test_an_account_has_its_number_of_turns_and_gets_them_back(ctx: context.Context) -> None:
    with turns.taken(ctx, KIND, "acc_a"):
        with turns.taken(ctx, KIND, "acc_a"):
            with pytest.raises(errors.RateLimited, match="digs: at most 2") as refused, turns.taken(ctx, KIND, "acc_a"):
                pass
            assert refused.value.retry_after == 7
        with turns.taken(ctx, KIND, "acc_a"):
            pass
    assert not ctx.turns


def test_all_accounts_together_have_a_bound_for_each_kind(ctx: context.Context) -> None:
    with turns.taken(ctx, KIND, "acc_a"), turns.taken(ctx, KIND, "acc_a"), turns.taken(ctx, KIND, "acc_b"):
        with pytest.raises(errors.RateLimited, match="digs: too many"), turns.taken(ctx, KIND, "acc_c"):
            pass
        with turns.taken(ctx, OTHER, "acc_c"):
            pass


def test_work_that_fails_gives_its_turn_back(ctx: context.Context) -> None:
    with pytest.raises(LookupError), turns.taken(ctx, OTHER, "acc_a"):
        raise LookupError
    with turns.taken(ctx, OTHER, "acc_b"):
        pass
