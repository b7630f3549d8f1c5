"""The check of operators: whoever has only a password is counted."""

import pytest

from postroad import context
from postroad.services.people import users as people_users
from postroad.storage.people import users
from tests.contexts import Clock
from tests.services.operations.checks import setups
from tests.services.people import authenticator

ADVICE = "set security.operator_second_factor = true; they must then set one up when they next log in"


async def test_an_operator_with_only_a_password_is_a_warning(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    given = setups.given(store=ctx.store)
    fine = [("ok", "no operator can log in with a password alone", "")]
    assert await setups.told("operators", given) == fine
    await people_users.add_operator(ctx, owner.email)
    assert await setups.told("operators", given) == [
        ("warning", "operators who can log in with a password alone: 1", ADVICE)
    ]
    await authenticator.set_up(ctx, owner, clock)
    assert await setups.told("operators", given) == fine


@pytest.mark.parametrize("has_store", [True, False])
async def test_nothing_is_counted_where_it_is_required(ctx: context.Context, *, has_store: bool) -> None:
    required = {"security": {"secret_key": "x" * 40, "operator_second_factor": True}}
    given = setups.given(None, required, store=ctx.store if has_store else None)
    assert await setups.told("operators", given) == [("ok", "a second factor is required for operators", "")]


async def test_without_a_database_it_is_skipped() -> None:
    assert await setups.told("operators", setups.given()) == [("skipped", "the database cannot be used", "")]
