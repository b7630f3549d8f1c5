"""What is remembered of hosts: who does not answer is passed over, whichever route leads there."""

import pytest

from postroad.delivery import routing
from postroad.model.delivery import adaptive_rate
from tests.delivery import parts

FIRST = parts.host_at(25, address="192.0.2.1", name="mx1.example.net")
SECOND = parts.host_at(25, address="192.0.2.2", name="mx2.example.net")
BOTH = parts.route_to(FIRST, SECOND)


def test_hosts_come_in_the_order_of_the_route_and_a_broken_one_is_left_out() -> None:
    known = routing.Hosts(parts.Time())
    assert list(known.usable(BOTH)) == [FIRST, SECOND]
    assert known.blocked_until(BOTH) is None
    parts.break_down(known, FIRST)
    assert list(known.usable(BOTH)) == [SECOND]
    assert known.blocked_until(BOTH) is None
    assert known.is_proven(BOTH)


def test_a_route_of_broken_hosts_is_blocked_until_the_first_of_them_may_be_tried() -> None:
    time = parts.Time()
    known = routing.Hosts(time)
    parts.break_down(known, FIRST)
    time.now += 10
    parts.break_down(known, SECOND)
    assert known.blocked_until(BOTH) == 1000 + adaptive_rate.FIRST_OPEN_SECONDS
    assert list(known.usable(BOTH)) == []
    assert not known.is_proven(BOTH)


def test_one_probe_at_a_time_tests_a_host_and_takes_its_place_only_when_the_host_is_asked_for() -> None:
    time = parts.Time()
    known = routing.Hosts(time)
    parts.break_down(known, FIRST)
    parts.break_down(known, SECOND)
    time.now += adaptive_rate.FIRST_OPEN_SECONDS
    assert known.blocked_until(BOTH) is None
    assert not known.is_proven(BOTH)
    probes = known.usable(BOTH)
    assert next(probes) == FIRST
    assert list(known.usable(parts.route_to(FIRST))) == []
    assert list(known.usable(parts.route_to(SECOND))) == [SECOND]
    assert list(probes) == []
    # Nobody has reported: the slots are freed by time.
    assert known.blocked_until(BOTH) == time.now + adaptive_rate.PROBE_SECONDS
    time.now += adaptive_rate.PROBE_SECONDS
    assert list(known.usable(BOTH)) == [FIRST, SECOND]


def test_a_host_that_answers_is_like_new() -> None:
    known = routing.Hosts(parts.Time())
    parts.break_down(known, FIRST)
    known.answered(FIRST)
    known.answered(SECOND)  # nothing was known
    assert known.is_proven(parts.route_to(FIRST))
    assert list(known.usable(BOTH)) == [FIRST, SECOND]


def test_hosts_are_known_by_address_and_port_not_by_name() -> None:
    known = routing.Hosts(parts.Time())
    parts.break_down(known, FIRST)
    assert list(known.usable(parts.route_to(parts.host_at(25, address=FIRST.address, name="other.example")))) == []
    elsewhere = parts.host_at(26, address=FIRST.address)
    assert list(known.usable(parts.route_to(elsewhere))) == [elsewhere]


def test_the_memory_is_bounded_and_drops_the_one_that_failed_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "MAX_KNOWN_HOSTS", 1)
    known = routing.Hosts(parts.Time())
    parts.break_down(known, FIRST)
    parts.break_down(known, SECOND)
    assert list(known.usable(BOTH)) == [FIRST]
