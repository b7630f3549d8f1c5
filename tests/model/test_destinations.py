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


# Which addresses are special.


# Every range, at its ends.
SPECIAL = {
    "an address of this host": ["0.0.0.0", "0.255.255.255", "::"],
    "a loopback address": ["127.0.0.1", "127.0.0.2", "127.255.255.255", "::1"],
    "a private address": [
        *("10.0.0.0", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.0", "192.168.255.255"),
        *("fc00::", "fd12:3456::1", "fdff:ffff::1", "fec0::1", "feff::1"),
    ],
    "a provider's internal address": ["100.64.0.1", "100.127.255.255", "168.63.129.16"],
    "a link-local address": ["169.254.0.0", "169.254.169.254", "fe80::1", "febf::1"],
    "a reserved address": [
        *("192.0.0.0", "192.0.0.170", "192.88.99.1", "240.0.0.1", "255.255.255.254", "4000::1", "100::1", "5f00::1"),
        *("2001:2::1", "2001:10::1", "2001:20::1", "2001:30::1", "2001:1ff:ffff::1", "1fff::1", "e000::1"),
    ],
    "a documentation address": [
        "192.0.2.1",
        "198.51.100.255",
        "203.0.113.1",
        "2001:db8::1",
        "3fff::1",
        "3fff:fff:ffff::1",
    ],
    "a benchmarking address": ["198.18.0.1", "198.19.255.255"],
    "a multicast address": ["224.0.0.1", "239.255.255.255", "ff00::", "ff02::1"],
    "the broadcast address": ["255.255.255.255"],
    "an IPv6 address that embeds an IPv4 address": [
        *("::127.0.0.1", "::a00:1", "::ffff", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "64:ff9b:1::1"),
        *("2002:7f00:1::1", "2002:808:808::1", "2001::1", "2001:0:ffff::1"),
    ],
}
NEIGHBOURS = [
    *("1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"),
    *("168.63.129.15", "168.63.129.17"),
    *("169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.255"),
    *("192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255"),
    *("198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255"),
    *("2000::1", "2001:200::1", "2001:db7:ffff::1", "2001:db9::1", "2001:ffff::1", "2003::1", "2606:4700::1111"),
    *("3ffe::1", "3fff:1000::1"),
]


@pytest.mark.parametrize("kind, address", [(kind, address) for kind, found in SPECIAL.items() for address in found])
def test_a_special_address_is_named(kind: str, address: str) -> None:
    assert destinations.kind_of(ipaddress.ip_address(address)) == kind


@pytest.mark.parametrize("address", NEIGHBOURS)
def test_the_neighbours_of_special_addresses_are_public(address: str) -> None:
    assert destinations.kind_of(ipaddress.ip_address(address)) is None


@given(st.ip_addresses())
def test_what_the_standard_library_calls_private_is_never_public_here(address: destinations.IpAddress) -> None:
    if destinations.kind_of(address) is None:
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize(
    "address, goes_to",
    [
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::ffff:7f00:1", "127.0.0.1"),
        ("::7f00:1", "::7f00:1"),
        ("2606:4700::1111", "2606:4700::1111"),
        ("8.8.8.8", "8.8.8.8"),
    ],
)
def test_a_mapped_address_is_the_one_inside(address: str, goes_to: str) -> None:
    assert str(destinations.effective(ipaddress.ip_address(address))) == goes_to


def test_a_mapped_address_alone_is_not_public() -> None:
    assert destinations.kind_of(ipaddress.ip_address("::ffff:8.8.8.8")) is not None


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "fd00::1", "8.8.8.8"])
def test_nothing_is_blocked_in_an_allowed_network(address: str) -> None:
    allowed = (ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00::/8"))
    assert destinations.why_blocked(address, allowed=allowed) is None


@pytest.mark.parametrize(
    "address, kind",
    [
        ("10.2.0.1", "a private address"),
        ("::ffff:169.254.169.254", "a link-local address"),
        ("fe80::1", "a link-local address"),
        ("127.0.0.1", "a loopback address"),
    ],
)
def test_what_is_not_public_and_not_allowed_is_blocked(address: str, kind: str) -> None:
    allowed = (ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00::/8"))
    assert destinations.why_blocked(address, allowed=allowed) == kind
