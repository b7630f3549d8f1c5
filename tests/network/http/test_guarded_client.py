"""The guard of webhooks: where a name may lead, when it is saved and at every attempt, and whom it connects to."""

import asyncio
import collections
from collections.abc import Iterator, Sequence

import pytest

from postroad import errors
from postroad.network.http import guarded_client as webhook_client
from tests import dns_server, webhook_server
from tests.services.webhook_clients import NAME, NEIGHBOUR, PRIVATE, PUBLIC, running_client, twins

HEADERS = (("Content-Type", "application/json"), ("X-Test", "yes"))


def zones(*addresses: str, name: str = NAME) -> dns_server.Zones:
    return {
        name: {
            "A": [address for address in addresses if ":" not in address],
            "AAAA": [address for address in addresses if ":" in address],
        }
    }


class Rebinding(collections.UserDict[str, Sequence[str]]):
    """Addresses of a name that are public for the first question and private from then on."""

    server: dns_server.DnsServer

    def __getitem__(self, kind: str) -> Sequence[str]:
        if kind != "A":
            raise KeyError(kind)
        return [PUBLIC if self.server.count(NAME, "A") <= 1 else PRIVATE]

    def __iter__(self) -> Iterator[str]:
        return iter(["A"])

    def __contains__(self, kind: object) -> bool:
        return kind == "A"


async def test_an_endpoint_gets_exactly_the_request() -> None:
    async with (
        dns_server.running(zones(PUBLIC)) as dns,
        webhook_server.running() as endpoint,
        running_client(dns, endpoint) as guard,
    ):
        answer = await guard.post(endpoint.at(NAME, "/a/b?c=%C3%A9"), b'{"\xc3\xa9": 1}', HEADERS)
        assert (answer.status_code, answer.body, answer.error, answer.succeeded) == (200, "ok", None, True)
        [request] = endpoint.requests
        assert (request.method, request.path, request.body) == ("POST", "/a/b?c=%C3%A9", b'{"\xc3\xa9": 1}')
        assert request.headers == {
            "host": f"{NAME}:{endpoint.port}",
            "content-type": "application/json",
            "x-test": "yes",
            "content-length": "9",
        }


async def test_an_address_in_a_url_is_never_looked_up() -> None:
    async with (
        dns_server.running({}) as dns,
        webhook_server.running() as endpoint,
        running_client(dns, endpoint) as guard,
    ):
        assert await guard.check(endpoint.literal_url) == endpoint.literal_url
        assert (await guard.post(endpoint.literal_url, b"{}", HEADERS)).succeeded
        assert dns.questions == []


async def test_a_url_that_was_saved_under_other_rules_is_blocked() -> None:
    async with (
        webhook_server.running(tls=False, host=PRIVATE) as plain,
        webhook_server.running(host=PRIVATE) as private,
        running_client(endpoint=private) as guard,
    ):
        answer = await guard.post(plain.url, b"{}", HEADERS)
        assert answer.error == "blocked_destination: must use HTTPS; write https://"
        answer = await guard.post(private.literal_url, b"{}", HEADERS)
        assert (answer.status_code, answer.body) == (None, None)
        assert answer.error is not None
        assert answer.error.startswith("blocked_destination: 127.0.0.1 is a loopback address")
        assert (plain.connections, private.connections) == (0, 0)


@pytest.mark.parametrize(
    "addresses",
    [
        [PRIVATE],
        [PUBLIC, PRIVATE],
        [PRIVATE, PUBLIC],
        [PUBLIC, "::1"],
        [PUBLIC, "::ffff:127.0.0.1"],
        [*[PUBLIC] * 1, *(f"10.0.0.{last}" for last in range(1, 5))],
        ["10.0.0.1"],
        ["169.254.169.254"],
        ["fd00::1"],
        ["64:ff9b::7f00:1"],
    ],
)
async def test_one_private_address_of_a_name_blocks_it(addresses: list[str]) -> None:
    async with (
        dns_server.running(zones(*addresses)) as dns,
        twins() as (public, private),
        running_client(dns, public) as guard,
    ):
        answer = await guard.post(public.url, b"{}", HEADERS)
        assert answer.error is not None
        assert answer.error.startswith(f"blocked_destination: {NAME} resolves to ")
        with pytest.raises(errors.InvalidRequest, match=f"^url: {NAME} resolves to .*public addresses only$"):
            await guard.check(public.url)
        assert (public.connections, private.connections) == (0, 0)


async def test_all_addresses_of_a_name_are_checked_and_three_are_kept() -> None:
    public = [f"127.0.0.{last}" for last in range(1, 7)]
    names = {**zones(*public), **zones(*public, "127.0.0.9", name="last.example.org")}
    async with dns_server.running(names) as dns, running_client(dns, allow_private=["127.0.0.0/29"]) as guard:
        found = await guard._look_up(NAME)
        assert (found.addresses, found.refusal) == (("127.0.0.1", "127.0.0.2", "127.0.0.3"), None)
        with pytest.raises(errors.InvalidRequest, match=r"^url: last\.example\.org resolves to a loopback address"):
            await guard.check("https://last.example.org/")


async def test_where_an_endpoint_that_is_not_used_leads_does_not_matter() -> None:
    async with dns_server.running(zones(PRIVATE)) as dns, running_client(dns) as guard:
        assert await guard.check(f"https://{NAME}/", is_enabled=False) == f"https://{NAME}/"
        with pytest.raises(errors.InvalidRequest, match="https://"):
            await guard.check(f"http://{NAME}/", is_enabled=False)


async def test_an_alias_of_a_private_name_is_blocked() -> None:
    aliased: dns_server.Zones = {
        NAME: {"CNAME": ["inside.example.org."]},
        **zones("10.0.0.1", name="inside.example.org"),
    }
    async with dns_server.running(aliased) as dns, running_client(dns) as guard:
        answer = await guard.post(f"https://{NAME}/", b"{}", HEADERS)
        assert answer.error == f"blocked_destination: {NAME} resolves to a private address"


async def test_a_name_that_turns_private_is_blocked_at_the_next_attempt_although_a_connection_is_kept() -> None:
    async with (
        dns_server.running(zones(PUBLIC), ttl=0) as dns,
        twins() as (public, private),
        running_client(dns, public) as guard,
    ):
        assert await guard.check(public.url) == public.url
        assert (await guard.post(public.url, b"{}", HEADERS)).succeeded
        dns.zones.update(zones(PRIVATE))
        answer = await guard.post(public.url, b"{}", HEADERS)
        assert answer.error == f"blocked_destination: {NAME} resolves to a loopback address"
        assert (len(public.requests), private.connections) == (1, 0)


async def test_a_rebound_name_is_only_connected_where_it_was_checked() -> None:
    rebinding = Rebinding()
    async with (
        dns_server.running({NAME: rebinding}, ttl=0) as dns,
        twins() as (public, private),
        running_client(dns, public) as guard,
    ):
        rebinding.server = dns
        assert (await guard.post(public.url, b"{}", HEADERS)).succeeded
        assert len(public.requests) == 1
        for _ in range(3):
            answer = await guard.post(public.url, b"{}", HEADERS)
            assert answer.error is not None
            assert answer.error.startswith("blocked_destination: ")
        assert private.connections == 0


async def test_a_kept_connection_serves_only_the_address_that_the_name_has_now() -> None:
    async with (
        dns_server.running(zones(PUBLIC), ttl=0) as dns,
        twins(PUBLIC, NEIGHBOUR) as (first, second),
        running_client(dns, first) as guard,
    ):
        assert (await guard.post(first.url, b"{}", HEADERS)).succeeded
        dns.zones.update(zones(NEIGHBOUR))
        answer = await guard.post(first.url, b"{}", HEADERS)
        assert answer.error is not None
        assert answer.error.startswith("tls_failure: ")  # the other one has an authority of its own
        assert (len(first.requests), second.connections) == (1, 1)


@pytest.mark.parametrize(
    "types, sentence",
    [
        (None, f"{NAME} does not exist"),
        ({"TXT": ["nothing"]}, f"{NAME} has no address"),
        (dns_server.Fault.SERVFAIL, f"{NAME}: SERVFAIL"),
    ],
)
async def test_a_name_that_does_not_resolve_may_be_saved_and_fails_at_the_attempt(
    types: dns_server.Types | dns_server.Fault | None, sentence: str
) -> None:
    async with dns_server.running({NAME: types} if types else {}) as dns, running_client(dns) as guard:
        assert await guard.check(f"https://{NAME}/hook") == f"https://{NAME}/hook"
        answer = await guard.post(f"https://{NAME}/", b"{}", HEADERS)
        assert answer.error == f"dns_failure: {sentence}"


async def test_the_saved_url_is_in_its_normal_form() -> None:
    async with dns_server.running({}) as dns, running_client(dns) as guard:
        assert await guard.check("HTTPS://Bücher.Example:443/x") == "https://xn--bcher-kva.example/x"
        with pytest.raises(errors.InvalidRequest, match="must not have a fragment"):
            await guard.check("https://hooks.example.org/#x")


async def test_the_next_address_is_tried_when_one_cannot_be_reached() -> None:
    async with (
        dns_server.running(zones(NEIGHBOUR, PUBLIC)) as dns,
        webhook_server.running() as endpoint,
        running_client(dns, endpoint, allow_private=["127.0.0.2/31", "::1/128"]) as guard,
    ):
        assert (await guard.post(endpoint.url, b"{}", HEADERS)).succeeded
        dns.zones["gone.example.org"] = {"A": [NEIGHBOUR], "AAAA": ["::1"]}
        answer = await guard.post(endpoint.at("gone.example.org"), b"{}", HEADERS)
        assert answer.error == f"connection_failed: gone.example.org at {NEIGHBOUR}: connection refused"


async def test_an_address_that_is_silent_leaves_time_for_the_next() -> None:
    async with (
        dns_server.running(zones(NEIGHBOUR, PUBLIC)) as dns,
        twins(PUBLIC, NEIGHBOUR, other_tls=False) as (endpoint, silent),
        running_client(dns, endpoint) as guard,
    ):
        assert (await guard.post(endpoint.url, b"{}", HEADERS)).succeeded
        assert (silent.connections, silent.requests) == (1, [])


async def test_a_request_that_may_have_arrived_is_not_sent_to_another_address() -> None:
    async with (
        dns_server.running(zones(PUBLIC, NEIGHBOUR)) as dns,
        twins(PUBLIC, NEIGHBOUR) as (first, second),
        running_client(dns, first) as guard,
    ):
        for answer in (b"", b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhalf"):
            first.answer = answer
            assert not (await guard.post(first.url, b"{}", HEADERS)).succeeded
        assert (len(first.requests), second.connections) == (2, 0)


async def test_a_burst_asks_once_and_a_record_without_a_lifetime_is_asked_for_every_time() -> None:
    async with (
        dns_server.running(zones(PUBLIC)) as dns,
        webhook_server.running() as endpoint,
        running_client(dns, endpoint) as guard,
    ):
        with dns.holding():
            burst = [asyncio.create_task(guard.post(endpoint.url, b"{}", HEADERS)) for _ in range(10)]
            await endpoint.left_alone()
        assert all(answer.succeeded for answer in await asyncio.gather(*burst))
        assert dns.count(NAME, "A") == 1
        dns.zones.update(zones(PUBLIC, name="fleeting.example.org"))
        dns.ttls["fleeting.example.org"] = 0
        for _ in range(3):
            await guard.post(endpoint.at("fleeting.example.org"), b"{}", HEADERS)
        assert dns.count("fleeting.example.org", "A") == 3


def test_waits_and_bounds() -> None:
    """In seconds: an attempt, a look-up and one question of it, how long its answer is kept, one address of several."""
    limits = webhook_client
    assert (limits.ATTEMPT_SECONDS, limits.QUERY_SECONDS, limits.TRY_SECONDS) == (5.0, 3.0, 1.0)
    assert (limits.FRESH_SECONDS, limits.CONNECT_SECONDS, limits.NAME_SECONDS) == (1.0, 1.5, 1.0)
    assert (limits.MAX_HOSTS, limits.MAX_URLS, limits.MAX_ADDRESSES, limits.BODY_BYTES) == (5_000, 5_000, 3, 2048)


async def test_in_development_localhost_is_this_host_without_dns() -> None:
    async with (
        dns_server.running({}) as dns,
        webhook_server.running(tls=False, host=PRIVATE) as endpoint,
        running_client(dns, allow_insecure=True) as guard,
    ):
        for host in ("localhost", "shop.localhost", PRIVATE):
            url = endpoint.at(host)
            assert await guard.check(url) == url
            assert (await guard.post(url, b"{}", HEADERS)).succeeded
        assert dns.questions == []


async def test_the_services_own_names_are_refused() -> None:
    others = {
        "http": {"base_url": "https://API.postroad.example:8443/x"},
        "delivery": {"hostname": "mx.postroad.example", "return_path_domain": "bounces.postroad.example"},
    }
    async with running_client(others=others) as guard:
        for host in ("api.postroad.example", "mx.postroad.example", "a.bounces.postroad.example"):
            with pytest.raises(errors.InvalidRequest, match="this service itself"):
                await guard.check(f"https://{host}/")
        with pytest.raises(errors.InvalidRequest, match=r"postroad\.example is the domain of this service"):
            await guard.check("https://postroad.example/")


async def test_the_services_own_name_is_refused_when_it_is_configured_in_another_script() -> None:
    async with running_client(others={"http": {"base_url": "https://api.Bücher.example"}}) as guard:
        for host in ("api.bücher.example", "api.xn--bcher-kva.example", "bücher.example"):
            with pytest.raises(errors.InvalidRequest, match="this service"):
                await guard.check(f"https://{host}/")


async def test_authorities_that_cannot_be_read_fail_the_attempt() -> None:
    async with webhook_server.running() as endpoint, running_client(ca_file="no/such/file.pem") as guard:
        answer = await guard.post(endpoint.literal_url, b"{}", HEADERS)
        assert answer.error == "tls_failure: this service cannot read webhooks.ca_file"
