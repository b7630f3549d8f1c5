"""Routes follow RFC 5321 section 5.1 and RFC 7505, last as long as DNS allows, or say in words why there are none."""

import asyncio
from typing import Any

import pytest

from postroad.delivery import host_addresses, routing
from postroad.model.delivery import tls_policy
from postroad.protocol.smtp import values
from tests import dns_server
from tests.delivery import router_harness
from tests.dns_server import Fault

THREE = {
    "example.org": {"MX": ["20 b.example.", "10 a.example.", "30 c.example."]},
    "a.example": {"A": ["192.0.2.1"]},
    "b.example": {"A": ["192.0.2.2"]},
    "c.example": {"A": ["192.0.2.3"]},
}
ANY = {"A": [router_harness.ADDRESS]}
RELAY = "upstream:relay"


# Domains without a route.

FINAL = {values.Cause.NULL_MX, values.Cause.DOMAIN_NOT_FOUND, values.Cause.NO_ROUTE, values.Cause.MAIL_LOOP}
NO_HOST = "no usable mail host for example.org: "
ONE_HOST: dns_server.Types = {"MX": ["10 a.example."], "A": [router_harness.ADDRESS]}


@pytest.mark.parametrize(
    "zones, cause, detail",
    [
        ({"example.org": {"MX": ["0 ."], "A": ["192.0.2.1"]}}, "NULL_MX", "example.org does not accept mail (null MX)"),
        ({}, "DOMAIN_NOT_FOUND", "the domain example.org does not exist"),
        ({"example.org": {"TXT": ['"x"']}}, "NO_ROUTE", "example.org has neither MX nor address records"),
        ({"example.org": {"A": Fault.SERVFAIL}}, "DNS_FAILED", "DNS lookup failed for example.org: SERVFAIL"),
        (
            {"example.org": {"MX": ["1 192.0.2.7."]}},
            "DNS_FAILED",
            "the MX records of example.org contain no valid host name",
        ),
        ({"example.org": ONE_HOST}, "DNS_FAILED", f"{NO_HOST}the host a.example does not exist"),
        ({"example.org": ONE_HOST, "a.example": {"TXT": ['"x"']}}, "DNS_FAILED", f"{NO_HOST}a.example has no address"),
        (
            {"example.org": ONE_HOST, "a.example": Fault.SERVFAIL},
            "DNS_FAILED",
            f"{NO_HOST}DNS lookup failed for a.example: SERVFAIL",
        ),
        # A failure of DNS beside a private address is one of DNS.
        (
            {
                "example.org": {"MX": ["10 mx.example.net.", "20 gone.example.net."]},
                "mx.example.net": {"A": ["10.0.0.1"]},
            },
            "DNS_FAILED",
            NO_HOST,
        ),
    ],
)
async def test_a_domain_without_a_route_says_why(zones: dns_server.Zones, cause: str, detail: str) -> None:
    async with router_harness.running(zones) as harness:
        found = await harness.no_route("example.org")
    assert found.cause is values.Cause[cause]
    assert found.permanent is (found.cause in FINAL)
    assert detail in found.detail


@pytest.mark.parametrize(
    "address, kind",
    [
        ("127.0.0.1", "a loopback address"),
        ("10.0.0.25", "a private address"),
        ("169.254.169.254", "a link-local address"),
        ("100.64.0.1", "a provider's internal address"),
    ],
)
@pytest.mark.parametrize("mx_port", [25, 2525])
async def test_a_public_name_must_not_lead_into_our_networks(address: str, kind: str, mx_port: int) -> None:
    zones = {"example.org": {"MX": ["10 mx.example.net."]}, "mx.example.net": {"A": [address], "AAAA": ["fd00::1"]}}
    async with router_harness.running({**zones}, mx_port=mx_port) as harness:
        found = await harness.no_route("example.org")
    assert (found.cause, found.permanent) == (values.Cause.PRIVATE_ADDRESS, False)
    assert found.detail == f"{NO_HOST}delivery to this address is not allowed: {address} is {kind}"


@pytest.mark.parametrize(
    "domain, cause, detail, settings",
    [
        ("example.org", "MAIL_LOOP", "mail for example.org loops back to this host", {"own_names": ["a.example"]}),
        ("example.org", "MAIL_LOOP", "mail for example.org loops back to this host", {"own_names": ["192.0.2.1"]}),
        ("six.example", "DNS_FAILED", "no source address can reach 2001:db8::1", {"sources": ["198.51.100.1"]}),
        (
            RELAY,
            "CONFIGURATION",
            "upstreams.relay.host: the host relay.example does not exist",
            {"upstreams": [{"name": "relay", "host": "relay.example"}]},
        ),
    ],
)
async def test_our_own_names_addresses_and_settings_leave_no_route(
    domain: str, cause: str, detail: str, settings: dict[str, Any]
) -> None:
    zones: dns_server.Zones = {**THREE, "six.example": {"AAAA": ["2001:db8::1"]}}
    async with router_harness.running(zones, **settings) as harness:
        found = await harness.no_route(domain)
    assert (found.cause, found.permanent) == (values.Cause[cause], cause == "MAIL_LOOP")
    assert detail in found.detail


# Mail hosts.


async def test_mail_hosts_are_tried_by_preference() -> None:
    async with router_harness.running({**THREE}, mx_port=2525) as harness:
        route = await harness.route("example.org")
    assert route.hosts == tuple(
        routing.Host(name, address, 2525, tls_policy.OPPORTUNISTIC)
        for name, address in [("a.example", "192.0.2.1"), ("b.example", "192.0.2.2"), ("c.example", "192.0.2.3")]
    )


async def test_hosts_of_equal_preference_are_shuffled_and_only_those() -> None:
    zones = {"example.org": {"MX": ["10 a.example.", "10 b.example.", "5 c.example."]}, "*": ANY}
    async with router_harness.running({**zones}) as harness:
        assert await harness.names("example.org") == ["c.example", "a.example", "b.example"]
    async with router_harness.running({**zones}, shuffle=lambda hosts: hosts.reverse()) as harness:
        assert await harness.names("example.org") == ["c.example", "b.example", "a.example"]


async def test_without_mail_hosts_the_domain_itself_is_the_host() -> None:
    async with router_harness.running({"example.org": ANY}) as harness:
        route = await harness.route("example.org")
    assert [(host.name, host.address) for host in route.hosts] == [("example.org", router_harness.ADDRESS)]


async def test_a_root_beside_other_mail_hosts_is_ignored() -> None:
    async with router_harness.running({"example.org": {"MX": ["0 .", "10 a.example."]}, "*": ANY}) as harness:
        assert await harness.names("example.org") == ["a.example"]


@pytest.mark.parametrize("fault, words", [(Fault.SERVFAIL, "SERVFAIL"), (Fault.SILENCE, "no answer in time")])
async def test_a_failure_of_dns_is_tried_again_soon(fault: Fault, words: str) -> None:
    async with router_harness.running({"example.org": fault}, timeout_seconds=2) as harness:
        found = await harness.no_route("example.org")
        assert found == routing.NoRoute(
            values.Cause.DNS_FAILED,
            detail=f"DNS lookup failed for example.org: {words}",
            valid_until=1000 + host_addresses.FAILURE_SECONDS,
        )
        harness.dns.zones["example.org"] = ANY
        harness.now[0] = found.valid_until
        assert await harness.names("example.org") == ["example.org"]


async def test_one_mail_host_that_can_be_found_is_enough() -> None:
    async with router_harness.running(
        {"example.org": {"MX": ["10 gone.example.", "20 a.example."]}, "a.example": ANY}
    ) as harness:
        assert await harness.names("example.org") == ["a.example"]


async def test_a_mail_host_may_be_an_alias() -> None:
    zones = {"example.org": {"MX": ["10 alias.example."]}, "alias.example": {"CNAME": ["a.example."]}, "a.example": ANY}
    async with router_harness.running({**zones}) as harness:
        assert await harness.names("example.org") == ["alias.example"]


async def test_mail_hosts_that_are_addresses_or_no_names_are_ignored() -> None:
    zones = {"example.org": {"MX": ["1 192.0.2.7.", r"2 a\032b.example.", "3 a.example."]}, "*": ANY}
    async with router_harness.running({**zones}) as harness:
        assert await harness.names("example.org") == ["a.example"]


async def test_a_host_that_is_named_twice_is_tried_where_it_comes_first() -> None:
    async with router_harness.running(
        {"example.org": {"MX": ["30 a.example.", "20 b.example.", "10 a.example."]}, "*": ANY}
    ) as harness:
        assert await harness.names("example.org") == ["a.example", "b.example"]


async def test_hosts_and_addresses_are_bounded() -> None:
    zones = {
        "example.org": {"MX": [f"{number} mx{number:02}.example." for number in range(30)]},
        "*": {"A": [f"192.0.2.{number}" for number in range(1, 20)]},
    }
    async with router_harness.running({**zones}) as harness:
        names = await harness.names("example.org")
    assert names == [f"mx{number:02}.example" for number in range(6) for _ in range(2)]


@pytest.mark.parametrize("hosts, each", [(1, 4), (3, 4), (4, 3), (5, 2), (6, 2)])
async def test_the_more_hosts_there_are_the_fewer_addresses_of_each_are_tried(hosts: int, each: int) -> None:
    zones = {
        "example.org": {"MX": [f"{number} mx{number}.example." for number in range(hosts)]},
        "*": {"A": [f"192.0.2.{number}" for number in range(1, 9)]},
    }
    async with router_harness.running({**zones}) as harness:
        assert await harness.names("example.org") == [
            f"mx{number}.example" for number in range(hosts) for _ in range(each)
        ]


async def test_of_many_hosts_both_families_are_tried() -> None:
    zones = {
        "example.org": {"MX": [f"{number} mx{number}.example." for number in range(10)]},
        "*": {"A": ["192.0.2.1", "192.0.2.2"], "AAAA": ["2001:db8::1"]},
    }
    async with router_harness.running({**zones}) as harness:
        route = await harness.route("example.org")
    assert [host.address for host in route.hosts] == ["192.0.2.1", "2001:db8::1"] * 6


@pytest.mark.parametrize("domain", ["exa mple.org", "a..example", "", "example.org\r\nx", "192.0.2.1"])
async def test_what_is_no_domain_is_final(domain: str) -> None:
    async with router_harness.running({"*": ANY}) as harness:
        assert (await harness.no_route(domain)).cause is values.Cause.BAD_ADDRESS
        assert harness.dns.questions == []


async def test_a_domain_may_be_written_in_capitals_and_with_a_final_dot() -> None:
    async with router_harness.running({**THREE}) as harness:
        assert (await harness.route("Example.ORG.")).hosts == (await harness.route("example.org")).hosts


# Ourselves.


async def test_hosts_from_ourselves_on_are_left_out() -> None:
    async with router_harness.running({**THREE}, own_names=["B.example."]) as harness:
        assert await harness.names("example.org") == ["a.example"]


async def test_equal_preferences_with_ourselves_are_left_out_too() -> None:
    zones = {"example.org": {"MX": ["10 a.example.", "20 b.example.", "20 us.example."]}, "*": ANY}
    async with router_harness.running({**zones}, hostname="us.example") as harness:
        assert await harness.names("example.org") == ["a.example"]


async def test_we_know_ourselves_by_our_addresses() -> None:
    async with router_harness.running({**THREE}, sources=["192.0.2.2"]) as harness:
        assert await harness.names("example.org") == ["a.example"]


async def test_loopback_as_a_source_says_nothing_about_who_listens_there() -> None:
    async with router_harness.running(
        {"example.org": {"A": ["127.0.0.1"]}}, allow_private=["127.0.0.1"], sources=["127.0.0.1"]
    ) as harness:
        assert await harness.names("example.org") == ["example.org"]


# Addresses.


@pytest.mark.parametrize("source, reached", [("198.51.100.1", "192.0.2.1"), ("2001:db8:1::1", "2001:db8::1")])
async def test_only_families_of_our_source_addresses_are_tried(source: str, reached: str) -> None:
    zones = {"example.org": {"A": ["192.0.2.1"], "AAAA": ["2001:db8::1"]}}
    async with router_harness.running({**zones}, sources=[source]) as harness:
        route = await harness.route("example.org")
    assert [host.address for host in route.hosts] == [reached]


async def test_the_operator_may_allow_a_private_network() -> None:
    zones = {"example.org": {"A": ["10.1.2.3", "10.2.2.3"]}}
    async with router_harness.running({**zones}, allow_private=["10.1.0.0/16"]) as harness:
        assert [host.address for host in (await harness.route("example.org")).hosts] == ["10.1.2.3"]


@pytest.mark.parametrize("domain, address", [("[192.0.2.9]", "192.0.2.9"), ("[IPv6:2001:db8::9]", "2001:db8::9")])
async def test_an_address_literal_is_its_own_route(domain: str, address: str) -> None:
    async with router_harness.running({}) as harness:
        route = await harness.route(domain)
        assert harness.dns.questions == []
    assert route.hosts == (routing.Host(domain, address, 25, tls_policy.OPPORTUNISTIC),)
    assert (route.provider_queue, route.provider) == (address, "others")


@pytest.mark.parametrize(
    "domain, cause, detail",
    [
        (
            "[127.0.0.1]",
            values.Cause.NO_ROUTE,
            "[127.0.0.1]: delivery to this address is not allowed: 127.0.0.1 is a loopback address",
        ),
        (
            "[10.0.0.25]",
            values.Cause.NO_ROUTE,
            "[10.0.0.25]: delivery to this address is not allowed: 10.0.0.25 is a private address",
        ),
        ("[192.0.2.77]", values.Cause.MAIL_LOOP, "mail for [192.0.2.77] loops back to this host"),
        ("[example.org]", values.Cause.BAD_ADDRESS, "[example.org] is not an IP address literal"),
    ],
)
async def test_an_address_literal_without_a_route_is_final(domain: str, cause: values.Cause, detail: str) -> None:
    async with router_harness.running({}, own_names=["192.0.2.77"]) as harness:
        found = await harness.no_route(domain)
    assert found.permanent
    assert (found.cause, found.detail) == (cause, detail)


async def test_an_address_literal_of_another_family_is_tried_again_later() -> None:
    async with router_harness.running({}, sources=["198.51.100.1"]) as harness:
        found = await harness.no_route("[IPv6:2001:db8::9]")
    assert not found.permanent
    assert "no source address can reach 2001:db8::9" in found.detail


# Provider queue.


@pytest.mark.parametrize(
    "hosts, provider_queue, provider",
    [
        (["1 aspmx.l.google.com.", "5 alt1.aspmx.l.google.com."], "google", "google"),
        (["1 example-org.mail.protection.outlook.com."], "microsoft", "microsoft"),
        (["1 mta5.am0.yahoodns.net."], "yahoo", "yahoo"),
        (["1 mta5.am0.yahoodns.net.", "9 backup.example."], "backup.example,mta5.am0.yahoodns.net", "others"),
        (["2 b.example.", "1 a.example."], "a.example,b.example", "others"),
        (["1 filter.example.", "9 aspmx.l.google.com."], "aspmx.l.google.com,filter.example", "others"),
        (["1 filter.example.", "1 aspmx.l.google.com."], "aspmx.l.google.com,filter.example", "others"),
    ],
)
async def test_the_provider_queue_is_the_providers_only_when_all_hosts_are(
    hosts: list[str], provider_queue: str, provider: str
) -> None:
    async with router_harness.running({"example.org": {"MX": hosts}, "*": ANY}) as harness:
        route = await harness.route("example.org")
    assert (route.provider_queue, route.provider) == (provider_queue, provider)


# Upstreams.


def relay(host: str = "relay.example", **fields: Any) -> list[dict[str, object]]:
    return [{"name": "relay", "host": host, **fields}]


@pytest.mark.parametrize(
    "fields, port, policy",
    [
        ({"tls": "off", "port": 25}, 25, tls_policy.TlsPolicy(tls_policy.Mode.PLAIN)),
        (
            {},
            587,
            tls_policy.TlsPolicy(tls_policy.Mode.VERIFIED, names=("relay.example",), reason="upstreams.relay.tls"),
        ),
    ],
)
async def test_an_upstream_is_reached_as_its_settings_say(
    fields: dict[str, Any], port: int, policy: tls_policy.TlsPolicy
) -> None:
    async with router_harness.running({"relay.example": ANY}, upstreams=relay(**fields)) as harness:
        route = await harness.route(RELAY)
        assert route.hosts == (routing.Host("relay.example", router_harness.ADDRESS, port, policy, upstream="relay"),)
        assert (route.provider_queue, route.provider, route.is_upstream) == (RELAY, RELAY, True)
        assert await harness.route(RELAY) is harness.router.cached(RELAY) is route
        assert set(harness.dns.questions) == {("relay.example", "A"), ("relay.example", "AAAA")}
        assert len(harness.dns.questions) == 2


@pytest.mark.parametrize(
    "host, addresses", [("127.0.0.1", ["127.0.0.1"]), ("::1", ["::1"]), ("localhost", ["127.0.0.1", "::1"])]
)
async def test_an_upstream_may_be_this_host(host: str, addresses: list[str]) -> None:
    async with router_harness.running({}, upstreams=relay(host, port=2525), own_names=["127.0.0.1"]) as harness:
        route = await harness.route(RELAY)
        assert harness.dns.questions == []
    assert [(host.address, host.port) for host in route.hosts] == [(address, 2525) for address in addresses]


async def test_an_upstream_by_name_may_be_this_host_too() -> None:
    async with router_harness.running({"relay.example": {"A": ["127.0.0.1"]}}, upstreams=relay()) as harness:
        assert [host.address for host in (await harness.route(RELAY)).hosts] == ["127.0.0.1"]


# Memory.


async def test_a_route_is_remembered_for_the_shortest_lifetime() -> None:
    async with router_harness.running({**THREE}) as harness:
        harness.dns.ttls["b.example"] = 60
        assert harness.router.cached("example.org") is None
        route = await harness.route("example.org")
        assert route.valid_until == 1060
        assert harness.router.cached("example.org") is route
        harness.now[0] = 1059
        assert await harness.route("example.org") is route
        assert harness.dns.count("example.org", "MX") == 1
        harness.now[0] = 1060
        assert harness.router.cached("example.org") is route
        await harness.route("example.org")
        assert harness.dns.count("example.org", "MX") == 2
        assert harness.dns.count("b.example", "A") == 2
        assert harness.dns.count("a.example", "A") == 1


async def test_an_expired_route_is_used_for_a_while_as_it_was_until_it_is_looked_up() -> None:
    async with router_harness.running({**THREE}) as harness:
        route = await harness.route("example.org")
        harness.now[0] = route.valid_until
        with harness.dns.holding():
            refresh = asyncio.create_task(harness.route("example.org"))
            await asyncio.sleep(0)
            harness.now[0] = route.valid_until + routing.STALE_SECONDS - 1
            assert harness.router.cached("example.org") is route
            harness.now[0] = route.valid_until + routing.STALE_SECONDS
            assert harness.router.cached("example.org") is None
        fresh = await refresh
        assert harness.router.cached("example.org") is fresh is not route


@pytest.mark.parametrize("silent", ["example.org", "a.example"])
async def test_a_refresh_without_an_answer_keeps_the_route_and_its_end(silent: str) -> None:
    zones: dns_server.Zones = {"example.org": {"MX": ["1 a.example."]}, "a.example": ANY}
    async with router_harness.running(zones, tls="required") as harness:
        route = await harness.route("example.org")
        harness.dns.zones[silent] = Fault.SERVFAIL
        for _ in range(3):
            harness.now[0] = (await harness.route("example.org")).valid_until
            again = await harness.route("example.org")
            assert (again.hosts, again.stale_until) == (route.hosts, route.stale_until)
            assert again.valid_until == harness.now[0] + host_addresses.FAILURE_SECONDS
        harness.now[0] = route.stale_until - 1
        assert (await harness.route("example.org")).valid_until == route.stale_until
        harness.now[0] = route.stale_until
        assert (await harness.no_route("example.org")).cause is values.Cause.DNS_FAILED


@pytest.mark.parametrize(
    "changed",
    [
        {"example.org": {"MX": ["0 ."]}},
        {"a.example": {"A": ["127.0.0.1"]}},
        {"a.example": {"A": []}},
        {"_25._tcp.a.example": Fault.SERVFAIL},
    ],
)
async def test_an_answer_ends_an_expired_route(changed: dns_server.Zones) -> None:
    zones: dns_server.Zones = {"example.org": {"MX": ["1 a.example."]}, "a.example": ANY}
    async with router_harness.running(zones, secure=["example.org", "a.example"], dane=True) as harness:
        harness.now[0] = (await harness.route("example.org")).valid_until
        harness.dns.zones.update(changed)
        found = await harness.no_route("example.org")
        assert harness.router.cached("example.org") is found
        harness.now[0] = found.valid_until
        assert harness.router.cached("example.org") is None


async def test_an_upstream_whose_name_server_is_silent_is_used_for_a_while() -> None:
    async with router_harness.running({"relay.example": ANY}, upstreams=relay()) as harness:
        route = await harness.route(RELAY)
        harness.dns.zones["relay.example"] = Fault.SERVFAIL
        harness.now[0] = route.valid_until
        assert (await harness.route(RELAY)).hosts == route.hosts
        harness.now[0] = route.stale_until
        assert harness.router.cached(RELAY) is None


async def test_what_is_final_is_remembered_too() -> None:
    async with router_harness.running({}) as harness:
        found = await harness.no_route("example.org")
        assert harness.router.cached("example.org") is found
        assert await harness.no_route("example.org") is found
        assert harness.dns.count("example.org", "MX") == 1


async def test_many_who_ask_at_once_ask_dns_once() -> None:
    async with router_harness.running({**THREE}) as harness:
        first, *others = await asyncio.gather(*(harness.route("example.org") for _ in range(50)))
        assert all(other is first for other in others)
        assert sorted(set(harness.dns.questions)) == sorted(harness.dns.questions)


async def test_domains_that_share_hosts_ask_for_their_addresses_once() -> None:
    zones = {f"d{number}.example": {"MX": ["1 aspmx.l.google.com."]} for number in range(20)}
    async with router_harness.running({**zones, "aspmx.l.google.com": ANY}) as harness:
        await asyncio.gather(*(harness.route(domain) for domain in zones))
        assert harness.dns.count("aspmx.l.google.com", "A") == 1


async def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "MAX_DOMAINS", 3)
    async with router_harness.running({"*": ANY}) as harness:
        for number in range(5):
            await harness.route(f"d{number}.example")
        known = [harness.router.cached(f"d{number}.example") is not None for number in range(5)]
    assert known == [False, False, True, True, True]


async def test_who_stops_waiting_takes_nothing_from_the_others() -> None:
    async with router_harness.running({**THREE}) as harness:
        with harness.dns.holding():
            leaving, staying = (asyncio.create_task(harness.route("example.org")) for _ in range(2))
            await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.wait([leaving])
        assert leaving.cancelled()
        assert len((await staying).hosts) == 3


async def test_closing_ends_look_ups_that_are_under_way() -> None:
    async with router_harness.running({**THREE}) as harness:
        with harness.dns.holding():
            waiting = asyncio.create_task(harness.route("example.org"))
            async with asyncio.timeout(30):
                while not harness.dns.questions:
                    await asyncio.sleep(0.01)
            await harness.router.close()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        assert harness.router.cached("example.org") is None
