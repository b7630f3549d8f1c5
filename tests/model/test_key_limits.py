"""Limits of API keys: networks, what exceeds others, and the use of a day."""

from typing import Any

import pytest

from postroad.model.people import callers
from postroad.model.people.callers import KeyLimits, KeyUsage

DAY = 24 * 60 * 60 * 1_000_000


@pytest.mark.parametrize(
    "address, permitted",
    [
        ("192.0.2.0", True),
        ("192.0.2.255", True),
        ("192.0.3.0", False),
        ("::ffff:192.0.2.7", True),
        ("::ffff:192.0.3.7", False),
        ("2001:db8::1", True),
        ("2001:db8::1%eth0", True),
        ("2001:db9::1", False),
        ("198.51.100.7", True),
        ("198.51.100.8", False),
        ("", False),
        ("unix", False),
    ],
)
def test_a_key_with_networks_is_used_only_from_them(address: str, permitted: bool) -> None:  # noqa: FBT001 - a case
    limits = KeyLimits(networks=("192.0.2.0/24", "2001:db8::/32", "198.51.100.7/32"))
    assert callers.permits_address(limits, address) is permitted
    assert callers.permits_address(callers.NO_LIMITS, address)


OWN: dict[str, Any] = {
    "domains": ("a.example", "b.example"),
    "networks": ("192.0.2.0/24", "2001:db8::/32"),
    "templates": ("welcome",),
    "recipients_per_day": 100,
    "credit_budget": 1000,
    "expires_at": 5,
    "approval_above": 10,
}


@pytest.mark.parametrize(
    "change, member",
    [
        ({}, None),
        ({"domains": ("a.example",), "recipients_per_day": 99, "credit_budget": 0, "expires_at": 4}, None),
        ({"networks": ("192.0.2.128/25",)}, None),
        ({"networks": ("2001:db8:1::/48", "192.0.2.1/32")}, None),
        ({"domains": ()}, "domains"),
        ({"domains": ("a.example", "c.example")}, "domains"),
        ({"networks": ()}, "networks"),
        ({"networks": ("192.0.2.0/23",)}, "networks"),
        ({"networks": ("192.0.2.0/25", "198.51.100.0/24")}, "networks"),
        ({"networks": ("::/0",)}, "networks"),
        ({"templates": ()}, "templates"),
        ({"templates": ("welcome", "bye")}, "templates"),
        ({"recipients_per_day": 101}, "recipients_per_day"),
        ({"recipients_per_day": None}, "recipients_per_day"),
        ({"credit_budget": 1001}, "credit_budget"),
        ({"credit_budget": None}, "credit_budget"),
        ({"expires_at": 6}, "expires_at"),
        ({"expires_at": None}, "expires_at"),
        ({"approval_above": 0}, None),
        ({"approval_above": 11}, "approval_above"),
        ({"approval_above": None}, "approval_above"),
    ],
)
def test_limits_exceed_others_in_any_member(change: dict[str, Any], member: str | None) -> None:
    assert callers.exceeded_limit(KeyLimits(**{**OWN, **change}), KeyLimits(**OWN)) == member
    assert callers.exceeded_limit(KeyLimits(**{**OWN, **change}), callers.NO_LIMITS) is None


@pytest.mark.parametrize(
    "day, usage",
    [
        (10, KeyUsage(10, 7, 9)),
        (11, KeyUsage(11, 0, 9)),
        (9, KeyUsage(10, 7, 9)),
        (8, KeyUsage(8, 7, 9)),
    ],
)
def test_a_new_day_has_no_recipients_yet_and_a_clock_set_back_grants_none_twice(day: int, usage: KeyUsage) -> None:
    assert callers.usage_on_day(KeyUsage(10, 7, 9), now=day * DAY) == usage
    assert callers.usage_on_day(KeyUsage(10, 7, 9), now=day * DAY + DAY - 1) == usage


def test_use_adds_up() -> None:
    assert callers.use_key(KeyUsage(3, 1, 2), recipients=4, credits=5) == KeyUsage(3, 5, 7)
