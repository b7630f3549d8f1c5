"""Host name, resolver, DNSSEC, reverse DNS and blocklists: one broken set-up each, and what is said about it."""

from typing import Any

import pytest

from tests import dns_server
from tests.services.operations.checks import setups

LISTS = {"doctor": {"blocklists": {"bl.example.net": "https://bl.example.net/removal"}}}
FROM_LOOPBACK = {"sources": [{"name": "out", "address": "127.0.0.1"}]}
RELAYED = {"upstreams": [{"name": "relay", "host": "relay.example.net"}]}


@pytest.mark.parametrize("name", ["vm", "localhost", "vm.localdomain", "mail.lan", "127.0.0.1", "ip-10-0-0-7.internal"])
async def test_a_name_that_is_not_in_public_dns_is_an_error(name: str) -> None:
    assert await setups.told("hostname", setups.given(hostname=name)) == [
        (
            "error",
            f"this host says EHLO {name!r}, which is not a fully qualified name in public DNS",
            "set delivery.hostname to a name of yours, such as mail.example.org, that resolves to this host",
        )
    ]


@pytest.mark.parametrize("check", ["hostname", "reverse_dns"])
async def test_the_name_of_a_host_for_development_is_not_looked_up(check: str) -> None:
    assert await setups.told(check, setups.given(hostname="mail.postroad.example")) == [
        ("skipped", "no receiving server sees the name of a host for development", "")
    ]


FORWARD: dict[str, tuple[Any, tuple[str, str, str]]] = {
    "an address": (
        {"AAAA": ["2001:db8::1"]},
        ("ok", "this host says EHLO mail.example.org, which resolves", ""),
    ),
    "no address": (
        {"TXT": ['"x"']},
        (
            "error",
            "this host says EHLO mail.example.org, which has no address in DNS",
            "add an A or AAAA record for mail.example.org, or set delivery.hostname to a name that has one",
        ),
    ),
    "no answer": (
        dns_server.Fault.SERVFAIL,
        ("warning", "DNS did not answer for mail.example.org: SERVFAIL", "try again later"),
    ),
}


@pytest.mark.parametrize("overrides", [{}, RELAYED], ids=["direct", "relayed"])
@pytest.mark.parametrize("case", FORWARD)
async def test_a_fully_qualified_name_is_looked_up(case: str, overrides: setups.Overrides) -> None:
    records, expected = FORWARD[case]
    async with dns_server.running(setups.zones(mail_example_org=records)) as server:
        assert await setups.told("hostname", setups.given(server, overrides)) == [expected]


BROKEN: dict[str, tuple[str, setups.Overrides, dict[str, Any], list[tuple[str, str, str]]]] = {
    "the name has no address": (
        "reverse_dns",
        {},
        {"mail_example_org": {}},
        [
            (
                "error",
                "mail.example.org has no address in DNS",
                "add an A or AAAA record for mail.example.org with the address that mail is sent from",
            )
        ],
    ),
    "the name has another address": (
        "reverse_dns",
        FROM_LOOPBACK,
        {"mail_example_org": {"A": ["127.0.0.2"]}},
        [
            (
                "error",
                "mail.example.org does not resolve to 127.0.0.1, which mail is sent from",
                "add an A record for mail.example.org with 127.0.0.1",
            )
        ],
    ),
    "the address has no name": (
        "reverse_dns",
        FROM_LOOPBACK,
        {"1_0_0_127_in__addr_arpa": {}},
        [
            (
                "error",
                "127.0.0.1 has no reverse DNS",
                "ask its provider to set the PTR record to mail.example.org; many receivers refuse mail without one",
            )
        ],
    ),
    "the address has another name": (
        "reverse_dns",
        {},
        {"1_0_0_127_in__addr_arpa": {"PTR": ["vps7.example.net."]}},
        [
            (
                "warning",
                "the reverse DNS of 127.0.0.1 is vps7.example.net, not mail.example.org",
                (
                    "ask its provider to set the PTR record to mail.example.org, "
                    "or set delivery.hostname to vps7.example.net"
                ),
            )
        ],
    ),
    "the name server of the name is broken": (
        "reverse_dns",
        {},
        {"mail_example_org": dns_server.Fault.SERVFAIL},
        [("warning", "DNS did not answer for mail.example.org: SERVFAIL", "try again later")],
    ),
    "the address is listed": (
        "blocklists",
        LISTS,
        {"1_0_0_127_bl_example_net": {"A": ["127.0.0.2"]}},
        [
            (
                "error",
                "127.0.0.1 is listed by bl.example.net",
                "find the cause, then ask for removal: https://bl.example.net/removal",
            )
        ],
    ),
    "the list does not answer this resolver": (
        "blocklists",
        LISTS,
        {"1_0_0_127_bl_example_net": {"A": ["127.255.255.254"]}},
        [
            (
                "warning",
                "bl.example.net does not answer queries from this resolver",
                "use a resolver of your own in delivery.resolvers, or remove the list from doctor.blocklists",
            )
        ],
    ),
    "DANE without DNSSEC": (
        "dnssec",
        {"delivery": {"dane": True}},
        {},
        [
            (
                "error",
                "the resolver does not validate DNSSEC, so delivery.dane has no effect",
                "run a validating resolver such as Unbound on this host and name it in delivery.resolvers",
            )
        ],
    ),
}


@pytest.mark.parametrize("setup", BROKEN)
async def test_a_broken_set_up_is_named_with_what_to_do(setup: str) -> None:
    check, overrides, changes, expected = BROKEN[setup]
    async with dns_server.running(setups.zones(**changes)) as dns:
        assert await setups.told(check, setups.given(dns, overrides)) == expected


async def test_a_resolver_that_refuses_is_an_error() -> None:
    async with dns_server.running({"*": dns_server.Fault.REFUSED}) as dns:
        seen = setups.given(dns, {"delivery": {"resolvers": [dns.address]}})
        assert await setups.told("resolver", seen) == [
            (
                "error",
                f"DNS does not work with {dns.address}: REFUSED",
                "check delivery.resolvers, or /etc/resolv.conf, and that the firewall lets DNS through",
            )
        ]


@pytest.mark.parametrize(
    "check, overrides, found",
    [
        ("resolver", {}, "DNS works with the name servers of the system"),
        ("dnssec", {"delivery": {"dane": True}}, "the resolver validates DNSSEC"),
        ("reverse_dns", {}, "mail.example.org and 127.0.0.1 resolve to each other"),
        # The source address is translated by a router: what the name resolves to is what others see.
        (
            "reverse_dns",
            {"sources": [{"name": "out", "address": "10.0.0.7"}]},
            "mail.example.org and 127.0.0.1 resolve to each other",
        ),
        ("blocklists", LISTS, "127.0.0.1: not listed by bl.example.net"),
    ],
)
async def test_a_good_set_up_is_fine(check: str, overrides: setups.Overrides, found: str) -> None:
    async with dns_server.running(setups.zones(), secure={"."}) as dns:
        assert await setups.told(check, setups.given(dns, overrides)) == [("ok", found, "")]


@pytest.mark.parametrize(
    "check, overrides, reason",
    [
        ("dnssec", {}, "delivery.dane is off"),
        ("blocklists", {}, "doctor.blocklists is empty"),
        ("blocklists", {**LISTS, **RELAYED}, "all mail goes through upstreams"),
        ("reverse_dns", RELAYED, "all mail goes through upstreams"),
    ],
)
async def test_what_does_not_apply_is_skipped_with_the_reason(
    check: str, overrides: setups.Overrides, reason: str
) -> None:
    assert await setups.told(check, setups.given(None, overrides)) == [("skipped", reason, "")]
