"""MTA-STS policies are fetched, kept and respected as RFC 8461 says, and who has none is not kept waiting."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroad.delivery import tls_choice
from postroad.model.delivery import tls_policy
from postroad.network.http import https_get
from tests import dns_server, https_server
from tests.delivery import parts, router_harness

VERIFIED = tls_policy.TlsPolicy(tls_policy.Mode.VERIFIED, names=("mx1.example.org",), reason="MTA-STS of example.org")
DAY = 86_400


def policy(*patterns: str, mode: str = "enforce", max_age: int = 604_800) -> bytes:
    lines = ["version: STSv1", f"mode: {mode}", *(f"mx: {pattern}" for pattern in patterns), f"max_age: {max_age}"]
    return https_server.response("\n".join(lines).encode())


def announce(policy_id: str) -> dns_server.Types:
    return {"TXT": [f'"v=STSv1; id={policy_id};"']}


@contextlib.asynccontextmanager
async def publishing(
    answer: bytes, *, seconds: float = 30, **settings: Any
) -> AsyncIterator[tuple[router_harness.RouterHarness, https_server.HttpsServer]]:
    zones: dns_server.Zones = {**router_harness.TWO_HOSTS, "_mta-sts.example.org": announce("1")}
    async with https_server.running("mta-sts.example.org") as server:
        server.answer = answer
        client = https_get.Client(server.context, port=server.port, seconds=seconds)
        async with router_harness.running(
            zones, https=client, **{"mta_sts": True, "allow_private": [*router_harness.PUBLIC, "127.0.0.1"], **settings}
        ) as harness:
            yield harness, server


async def policies(harness: router_harness.RouterHarness) -> dict[str, tls_policy.TlsPolicy]:
    """The policy for each host of the route, which is looked up anew."""
    harness.now[0] += 3600
    return {host.name: host.tls for host in (await harness.route("example.org")).hosts}


async def test_an_enforced_policy_leaves_only_hosts_that_it_names_and_wants_their_certificates() -> None:
    async with publishing(policy("mx1.example.org")) as (harness, _):
        assert await policies(harness) == {"mx1.example.org": VERIFIED}


async def test_a_policy_that_allows_no_host_is_tried_again_later() -> None:
    async with publishing(policy("mx.example.com")) as (harness, _):
        found = await harness.no_route("example.org")
    assert not found.permanent
    assert "the MTA-STS policy of example.org does not allow mx1.example.org" in found.detail


@pytest.mark.parametrize("mode", ["testing", "none"])
async def test_a_policy_that_is_not_enforced_changes_nothing(mode: str) -> None:
    async with publishing(policy("mx.example.com", mode=mode)) as (harness, _):
        assert set((await policies(harness)).values()) == {tls_policy.OPPORTUNISTIC}


async def test_the_setting_required_holds_where_no_policy_does() -> None:
    async with publishing(policy("mx.example.com", mode="testing"), tls="required") as (harness, _):
        assert {tls.mode for tls in (await policies(harness)).values()} == {tls_policy.Mode.REQUIRED}


@pytest.mark.parametrize("settings", [{"mta_sts": False}, {"tls": "off"}])
async def test_when_it_is_off_nobody_is_asked(settings: dict[str, Any]) -> None:
    async with publishing(policy("mx.example.com"), **settings) as (harness, server):
        assert len(await policies(harness)) == 2
        assert server.requests == []
        assert harness.dns.count("_mta-sts.example.org", "TXT") == 0


async def test_a_domain_without_a_policy_costs_one_question() -> None:
    async with publishing(policy("mx1.example.org")) as (harness, server):
        del harness.dns.zones["_mta-sts.example.org"]
        assert len(await policies(harness)) == 2
        assert server.requests == []
        assert harness.dns.count("_mta-sts.example.org", "TXT") == 1
        assert harness.dns.count("mta-sts.example.org", "A") == 0


@pytest.mark.parametrize(
    "answer",
    [
        https_server.response(b"not found", status="404 Not Found"),
        https_server.response(b"", "Location: https://example.org/", status="302 Found"),
        policy("mx.example.com").replace(b"text/plain", b"text/html"),
        https_server.response(b"<html>welcome</html>"),
        b"",
    ],
)
async def test_a_policy_that_cannot_be_fetched_is_none_and_is_not_fetched_again_at_once(answer: bytes) -> None:
    async with publishing(answer) as (harness, server):
        assert len((await harness.route("example.org")).hosts) == 2
        requests = len(server.requests)
        assert requests == 1
        harness.dns.ttl = 1
        harness.now[0] += tls_choice.FAILURE_SECONDS - 1
        await harness.route("example.org")
        assert len(server.requests) == requests
        server.answer = policy("mx1.example.org")
        assert await policies(harness) == {"mx1.example.org": VERIFIED}


async def test_the_log_says_why_a_policy_was_not_fetched() -> None:
    log, heard = parts.logger()
    answer = https_server.response(b"", status="404 Not Found")
    async with publishing(answer, log=log) as (harness, _):
        await policies(harness)
        await policies(harness)
    event = {
        "event": "mta_sts_fetch_failed",
        "log_level": "warning",
        "domain": "example.org",
        "detail": "mta-sts.example.org: status 404, text/plain",
        "cached": False,
    }
    assert heard == [event, event]


async def test_a_host_without_an_address_or_a_good_certificate_has_no_policy() -> None:
    async with publishing(policy("mx1.example.org")) as (harness, server):
        del harness.dns.zones["mta-sts.example.org"]
        assert len(await policies(harness)) == 2
        harness.dns.zones["_mta-sts.other.example"] = announce("1")
        harness.dns.zones["mta-sts.other.example"] = {"A": ["127.0.0.1"]}
        harness.dns.zones["other.example"] = {"A": ["192.0.2.1"]}
        assert len((await harness.route("other.example")).hosts) == 1
        assert server.requests == []


async def test_a_web_host_that_says_nothing_is_not_waited_for_long() -> None:
    async with publishing(b"", seconds=0.3) as (harness, server):
        server.answer = None
        assert len(await policies(harness)) == 2


async def test_a_policy_is_fetched_once_while_its_id_stays() -> None:
    async with publishing(policy("mx1.example.org")) as (harness, server):
        for _ in range(3):
            assert await policies(harness) == {"mx1.example.org": VERIFIED}
        assert len(server.requests) == 1


async def test_a_new_id_fetches_the_policy_anew() -> None:
    async with publishing(policy("mx1.example.org")) as (harness, server):
        await policies(harness)
        server.answer = policy("mx2.example.net")
        harness.dns.zones["_mta-sts.example.org"] = announce("2")
        assert list(await policies(harness)) == ["mx2.example.net"]
        assert len(server.requests) == 2


@pytest.mark.parametrize("record", [None, dns_server.Fault.SERVFAIL, announce("2"), announce("not an id")])
async def test_a_policy_holds_on_when_its_announcement_or_its_host_is_gone(
    record: dns_server.Types | dns_server.Fault | None,
) -> None:
    async with publishing(policy("mx1.example.org")) as (harness, server):
        await policies(harness)
        server.answer = https_server.response(b"", status="500 Internal Server Error")
        if record is None:
            del harness.dns.zones["_mta-sts.example.org"]
        else:
            harness.dns.zones["_mta-sts.example.org"] = record
        assert await policies(harness) == {"mx1.example.org": VERIFIED}
        harness.now[0] += 604_800
        assert len(await policies(harness)) == 2


async def test_a_policy_is_fetched_again_every_day_and_when_it_has_run_out() -> None:
    async with publishing(policy("mx1.example.org")) as (harness, server):
        await policies(harness)
        harness.now[0] += DAY
        await policies(harness)
        assert len(server.requests) == 2
        server.answer = policy("mx1.example.org", max_age=7200)
        harness.now[0] += DAY
        await policies(harness)
        harness.now[0] += 7200
        await policies(harness)
        assert len(server.requests) == 4


async def test_a_policy_that_forbids_to_be_kept_is_not_fetched_for_every_message() -> None:
    async with publishing(policy("mx1.example.org", max_age=0)) as (harness, server):
        harness.dns.ttl = 1
        for _ in range(3):
            harness.now[0] += 60
            await harness.route("example.org")
        assert len(server.requests) == 1


async def test_an_upstream_has_no_policy_but_its_own() -> None:
    upstreams = [{"name": "relay", "host": "mx1.example.org"}]
    async with publishing(policy("mx.example.com"), upstreams=upstreams) as (harness, server):
        (host,) = (await harness.route("upstream:relay")).hosts
        assert (host.tls.mode, host.tls.names) == (tls_policy.Mode.VERIFIED, ("mx1.example.org",))
        assert server.requests == []


async def test_a_policy_host_must_not_lead_into_our_networks() -> None:
    async with publishing(policy("mx1.example.org"), allow_private=router_harness.PUBLIC) as (harness, server):
        assert set((await policies(harness)).values()) == {tls_policy.OPPORTUNISTIC}
        assert server.requests == []
