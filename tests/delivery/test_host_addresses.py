"""Addresses of hosts: what DNS published, what of it is to be tried, and for how long to believe it."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroad import config
from postroad.delivery import host_addresses
from postroad.network.dns import resolver
from tests import dns_server


@contextlib.asynccontextmanager
async def finding(
    zones: dns_server.Zones, *, secure: tuple[str, ...] = (), **settings: Any
) -> AsyncIterator[host_addresses.HostAddresses]:
    async with dns_server.running(zones, secure=secure) as server:
        delivery = config.load(
            environment={}, overrides={"delivery": {"allow_private": ["192.0.2.0/24"], **settings}}
        ).delivery
        asking = resolver.Resolver([server.address])
        addresses = host_addresses.HostAddresses(delivery, asking, clock=lambda: 1000.0)
        yield addresses
        await addresses.close()


async def test_what_is_published_is_kept_apart_from_what_is_tried() -> None:
    zones: dns_server.Zones = {"mx.example": {"A": ["127.0.0.1", *(f"192.0.2.{number}" for number in range(1, 7))]}}
    async with finding(zones) as addresses:
        found = await addresses.find("mx.example")
    assert len(found.published) == 7
    assert found.to_try == ("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")
    assert (found.detail, found.is_known, found.is_authentic) == ("", True, False)
    assert found.valid_until == 1300


async def test_of_a_host_with_many_addresses_the_first_of_both_families_are_kept() -> None:
    many = {
        "A": [f"192.0.2.{number}" for number in range(1, 40)],
        "AAAA": [f"2001:db8::{number}" for number in range(1, 4)],
    }
    networks = ["192.0.2.0/24", "2001:db8::/32"]
    async with finding({"mx.example": many}, allow_private=networks) as addresses:
        found = await addresses.find("mx.example")
    assert found.published == (
        "192.0.2.1",
        "2001:db8::1",
        "192.0.2.2",
        "2001:db8::2",
        "192.0.2.3",
        "2001:db8::3",
        "192.0.2.4",
        "192.0.2.5",
    )
    assert found.to_try == ("192.0.2.1", "2001:db8::1", "192.0.2.2", "2001:db8::2")


async def test_a_host_of_the_operator_may_be_anywhere() -> None:
    async with finding({"relay.example": {"A": ["127.0.0.1"]}}) as addresses:
        found = await addresses.find("relay.example")
        trusted = addresses.as_trusted(found)
    assert (found.to_try, trusted.to_try, trusted.detail) == ((), ("127.0.0.1",), "")
    assert trusted.valid_until == found.valid_until


async def test_trust_finds_no_addresses_where_there_are_none() -> None:
    async with finding({}) as addresses:
        found = await addresses.find("relay.example")
        assert addresses.as_trusted(found) == found
    assert found.detail == "the host relay.example does not exist"


async def test_it_is_known_whether_dns_answered_and_whether_it_was_signed() -> None:
    zones: dns_server.Zones = {"a.example": {"A": ["192.0.2.1"]}, "b.example": dns_server.Fault.SERVFAIL}
    async with finding(zones, secure=("a.example",)) as addresses:
        signed, failed = await addresses.find("a.example"), await addresses.find("b.example")
    assert (signed.is_known, signed.is_authentic) == (True, True)
    assert (failed.is_known, failed.is_authentic) == (False, False)
    assert failed.valid_until == 1000 + host_addresses.FAILURE_SECONDS


@pytest.mark.parametrize("ttl, until", [(0, 1001), (60, 1060), (3600, 4600), (10**9, 4600)])
async def test_lifetimes_are_bounded(ttl: int, until: float) -> None:
    async with finding({}) as addresses:
        assert addresses.until(ttl) == until
