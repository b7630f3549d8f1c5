"""Names and addresses of destinations: valid hosts, address literals, and provider queue names."""

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.model.units import destinations


@pytest.mark.parametrize("name", ["mx.example.org", "a", "mx_1.example.org", "xn--mnchen-3ya.example", "1.2.3.example"])
def test_host_names(name: str) -> None:
    assert destinations.is_host_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "192.0.2.1",
        "2001:db8::1",
        "mx..example",
        ".example",
        "mx.example.",
        "-mx.example",
        "mx-.example",
        "m x.example",
        "mx\\000.example",
        "MX.example",
        "mx\n",
        "mx.example\n",
        "a" * 64,
        ".".join(["a" * 50] * 6),
        "mx.123",
    ],
)
def test_what_is_no_host_name(name: str) -> None:
    assert not destinations.is_host_name(name)


@pytest.mark.parametrize(
    "domain, address",
    [
        ("[192.0.2.1]", "192.0.2.1"),
        ("[IPv6:2001:db8::1]", "2001:db8::1"),
        ("[ipv6:2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]", None),
        ("192.0.2.1", None),
        ("[192.0.2.1", None),
        ("[192.0.2.256]", None),
        ("[IPv6:192.0.2.1]", None),
        ("[]", None),
        ("", None),
    ],
)
def test_address_literals(domain: str, address: str | None) -> None:
    assert destinations.literal(domain) == (ipaddress.ip_address(address) if address else None)


def test_a_set_of_hosts_has_one_name_in_any_order() -> None:
    assert destinations.provider_queue_name(["b.example", "a.example", "b.example"]) == "a.example,b.example"


def test_a_long_set_is_named_by_its_first_host_a_number_and_a_digest_of_all() -> None:
    hosts = [f"mx{number:02}.example.org" for number in range(30)]
    name = destinations.provider_queue_name(hosts)
    assert re.fullmatch(r"mx00\.example\.org\+29#[0-9a-f]{16}", name)
    assert destinations.provider_queue_name([*hosts[:-1], "mx.example.com"]) != name


@given(st.sets(st.text("abc.-", min_size=1, max_size=253), min_size=1, max_size=20))
def test_no_name_of_a_provider_queue_is_too_long(hosts: set[str]) -> None:
    name = destinations.provider_queue_name(hosts)
    assert 1 <= len(name) <= 200
    assert destinations.provider_queue_name(sorted(hosts, reverse=True)) == name
