"""The rate of management: by user and by account, and no limit for sending and reading mail."""

import contextlib

import pytest

from postroad import errors
from postroad.model.delivery import throttle
from postroad.model.people import callers
from postroad.services.people import authentication
from tests.contexts import Clock

EVERYTHING = frozenset(callers.Permission)


def user(user_id: str, account_id: str = "acc_1") -> callers.Caller:
    return callers.Caller(account_id, "cred_1", callers.Scheme.TOKEN, EVERYTHING, user_id=user_id)


def allowed(rate: authentication.ManagementRate, who: callers.Caller, permission: callers.Permission) -> int:
    """How many of 200 requests at once are allowed."""
    count = 0
    for _ in range(200):
        with contextlib.suppress(errors.RateLimited):
            rate.require(who, permission)
            count += 1
    return count


@pytest.fixture
def rate(clock: Clock) -> authentication.ManagementRate:
    return authentication.ManagementRate(throttle.RateLimit(rate=50, burst=100), clock=clock)


@pytest.mark.parametrize("permission", [callers.Permission.VIEW, callers.Permission.CHANGE, callers.Permission.MANAGE])
def test_a_user_has_half_of_what_the_account_has(
    rate: authentication.ManagementRate, clock: Clock, permission: callers.Permission
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


@pytest.mark.parametrize("permission", [callers.Permission.SEND, callers.Permission.READ])
def test_sending_and_reading_mail_are_not_counted(
    rate: authentication.ManagementRate, permission: callers.Permission
) -> None:
    assert allowed(rate, user("usr_1"), permission) == 200


def test_a_caller_without_the_permission_is_refused_first(rate: authentication.ManagementRate) -> None:
    key = callers.Caller("acc_1", "cred_1", callers.Scheme.API_KEY, callers.PASSWORD_PERMISSIONS)
    for _ in range(200):
        with pytest.raises(errors.Unauthorized):
            rate.require(key, callers.Permission.VIEW)
    assert allowed(rate, user("usr_1"), callers.Permission.VIEW) == 50
