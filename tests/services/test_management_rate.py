"""The rate of management: by user and by account, and no limit for sending and reading mail."""

import contextlib

import pytest

from postroad import errors
from postroad.model import caller, throttle
from postroad.services import management_rate
from tests.contexts import Clock

EVERYTHING = frozenset(caller.Permission)


def user(user_id: str, account_id: str = "acc_1") -> caller.Caller:
    return caller.Caller(account_id, "cred_1", caller.Scheme.TOKEN, EVERYTHING, user_id=user_id)


def allowed(rate: management_rate.ManagementRate, who: caller.Caller, permission: caller.Permission) -> int:
    """How many of 200 requests at once are allowed."""
    count = 0
    for _ in range(200):
        with contextlib.suppress(errors.RateLimited):
            rate.require(who, permission)
            count += 1
    return count


@pytest.fixture
def rate(clock: Clock) -> management_rate.ManagementRate:
    return management_rate.ManagementRate(throttle.RateLimit(rate=50, burst=100), clock=clock)


@pytest.mark.parametrize("permission", [caller.Permission.VIEW, caller.Permission.CHANGE, caller.Permission.MANAGE])
def test_a_user_has_half_of_what_the_account_has(
    rate: management_rate.ManagementRate, clock: Clock, permission: caller.Permission
) -> None:
    assert allowed(rate, user("usr_1"), permission) == 50
    assert allowed(rate, user("usr_2"), permission) == 50
    with pytest.raises(errors.RateLimited, match=r"^too many management requests: more than 50 per second$") as refusal:
        rate.require(user("usr_3"), permission)
    assert refusal.value.retry_after == 1
    assert allowed(rate, user("usr_4", "acc_2"), permission) == 50
    clock.pass_seconds(1)
    assert allowed(rate, user("usr_1"), permission) == 25
    assert allowed(rate, user("usr_2"), permission) == 25


@pytest.mark.parametrize("permission", [caller.Permission.SEND, caller.Permission.READ])
def test_sending_and_reading_mail_are_not_counted(
    rate: management_rate.ManagementRate, permission: caller.Permission
) -> None:
    assert allowed(rate, user("usr_1"), permission) == 200


def test_a_caller_without_the_permission_is_refused_first(rate: management_rate.ManagementRate) -> None:
    key = caller.Caller("acc_1", "cred_1", caller.Scheme.API_KEY, caller.PASSWORD_PERMISSIONS)
    for _ in range(200):
        with pytest.raises(errors.Unauthorized):
            rate.require(key, caller.Permission.VIEW)
    assert allowed(rate, user("usr_1"), caller.Permission.VIEW) == 50
