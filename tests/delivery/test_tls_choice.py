"""How strict a connection is: the setting, or DANE where DNSSEC covers the whole way, which wins over MTA-STS."""

import contextlib
from collections.abc import AsyncIterator, Collection
from typing import Any

import pytest

from postroad import config
from postroad.delivery import tls_choice
from postroad.model.delivery import tls_policy
from postroad.network.dns import resolver
from postroad.protocol.dns import mta_sts
from postroad.protocol.reports import tls_report
from tests import dns_server
from tests.delivery import router_harness

DIGEST = "ab" * 32
TLSA = tls_policy.Tlsa(3, 1, 1, bytes.fromhex(DIGEST))
SIGNED = ("example.org", "mx.example.net")
DANE = tls_policy.TlsPolicy(
    tls_policy.Mode.DANE, names=("mx.example.net", "example.org"), tlsa=(TLSA,), reason="TLSA of mx.example.net"
)


@contextlib.asynccontextmanager
async def publishing(
    *records: str, secure: Collection[str] = SIGNED, **settings: Any
) -> AsyncIterator[router_harness.RouterHarness]:
    zones: dns_server.Zones = {
        "example.org": {"MX": ["10 mx.example.net."]},
        "mx.example.net": {"A": ["192.0.2.1"]},
        "_25._tcp.mx.example.net": {"TLSA": list(records)},
    }
    async with router_harness.running(zones, secure=secure, **{"dane": True, **settings}) as harness:
        yield harness


async def only(harness: router_harness.RouterHarness) -> tls_policy.TlsPolicy:
    (host,) = (await harness.route("example.org")).hosts
    return host.tls


@pytest.mark.parametrize(
    "setting, mode",
    [
        ("off", tls_policy.Mode.PLAIN),
        ("opportunistic", tls_policy.Mode.OPPORTUNISTIC),
        ("required", tls_policy.Mode.REQUIRED),
    ],
)
async def test_the_setting_holds_where_the_destination_wants_nothing(setting: str, mode: tls_policy.Mode) -> None:
    async with publishing(secure=(), tls=setting) as harness:
        assert (await only(harness)).mode is mode


async def test_records_that_dnssec_covers_are_obeyed() -> None:
    async with publishing(f"3 1 1 {DIGEST}") as harness:
        assert await only(harness) == DANE


async def test_a_domain_that_is_its_own_mail_host_has_one_name() -> None:
    async with publishing(secure={"example.org"}) as harness:
        harness.dns.zones["example.org"] = {"A": ["192.0.2.1"]}
        harness.dns.zones["_25._tcp.example.org"] = {"TLSA": [f"3 1 1 {DIGEST}"]}
        found = await only(harness)
    assert (found.mode, found.names) == (tls_policy.Mode.DANE, ("example.org",))


async def test_the_port_is_part_of_the_name() -> None:
    async with publishing(mx_port=2525) as harness:
        harness.dns.zones["_2525._tcp.mx.example.net"] = {"TLSA": [f"3 1 1 {DIGEST}"]}
        assert await only(harness) == DANE


@pytest.mark.parametrize("secure", [(), ("example.org",), ("mx.example.net",)])
async def test_records_count_only_when_the_whole_way_is_signed(secure: tuple[str, ...]) -> None:
    async with publishing(f"3 1 1 {DIGEST}", secure=secure) as harness:
        assert await only(harness) == tls_policy.OPPORTUNISTIC
        assert harness.dns.count("_25._tcp.mx.example.net", "TLSA") == 0


async def test_records_that_are_not_signed_themselves_do_not_count() -> None:
    async with publishing() as harness:
        harness.dns.zones["_25._tcp.mx.example.net"] = {"CNAME": ["tlsa.example."]}
        harness.dns.zones["tlsa.example"] = {"TLSA": [f"3 1 1 {DIGEST}"]}
        assert await only(harness) == tls_policy.OPPORTUNISTIC


@pytest.mark.parametrize("settings", [{"dane": False}, {"tls": "off"}])
async def test_when_it_is_off_nobody_is_asked(settings: dict[str, Any]) -> None:
    async with publishing(f"3 1 1 {DIGEST}", **settings) as harness:
        assert (await only(harness)).mode in {tls_policy.Mode.PLAIN, tls_policy.Mode.OPPORTUNISTIC}
        assert harness.dns.count("_25._tcp.mx.example.net", "TLSA") == 0


@pytest.mark.parametrize("record", [f"0 1 1 {DIGEST}", f"1 1 1 {DIGEST}", f"3 2 1 {DIGEST}", f"3 1 3 {DIGEST}"])
async def test_records_of_which_none_is_usable_ask_for_encryption_alone(record: str) -> None:
    async with publishing(record) as harness:
        assert (await only(harness)).mode is tls_policy.Mode.REQUIRED


async def test_of_many_records_some_are_kept_and_dane_still_applies() -> None:
    unusable = [f"1 1 1 {number:064x}" for number in range(20)]
    async with publishing(*unusable, *(f"3 1 1 {number:064x}" for number in range(20))) as harness:
        found = await only(harness)
    assert found.mode is tls_policy.Mode.DANE
    assert len(found.tlsa) == 16
    assert all(record.is_usable for record in found.tlsa)


@pytest.mark.parametrize("missing", [True, False])
async def test_a_signed_host_without_records_is_an_ordinary_one(missing: bool) -> None:  # noqa: FBT001 - a column
    async with publishing() as harness:
        if missing:
            del harness.dns.zones["_25._tcp.mx.example.net"]
        assert await only(harness) == tls_policy.OPPORTUNISTIC


async def test_a_host_about_whose_records_dns_fails_is_not_used_now() -> None:
    async with publishing() as harness:
        harness.dns.zones["_25._tcp.mx.example.net"] = dns_server.Fault.SERVFAIL
        found = await harness.no_route("example.org")
    assert not found.permanent
    assert found.detail.endswith("DNS lookup failed for _25._tcp.mx.example.net: SERVFAIL")


async def test_the_hosts_beside_it_are() -> None:
    async with publishing() as harness:
        harness.dns.zones["example.org"] = {"MX": ["10 mx.example.net.", "20 mx.example.com."]}
        harness.dns.zones["mx.example.com"] = {"A": ["192.0.2.2"]}
        harness.dns.zones["_25._tcp.mx.example.net"] = dns_server.Fault.SERVFAIL
        assert await harness.names("example.org") == ["mx.example.com"]


async def test_dane_wins_over_an_mta_sts_policy_even_one_that_does_not_name_the_host() -> None:
    policy = mta_sts.Policy(mta_sts.Mode.ENFORCE, ("mx.example.com",), 86_400)
    settings = config.load(environment={}, overrides={"delivery": {"dane": True}}).delivery
    zones: dns_server.Zones = {"_25._tcp.mx.example.net": {"TLSA": [f"3 1 1 {DIGEST}"]}}
    async with dns_server.running(zones, secure=SIGNED) as server:
        choice = tls_choice.TlsChoice(settings, resolver.Resolver([server.address]))
        signed = await choice.choose("mx.example.net", domain="example.org", policy=policy, is_authentic=True)
        plain = await choice.choose("mx.example.net", domain="example.org", policy=policy, is_authentic=False)
    assert signed == DANE
    detail = "the MTA-STS policy of example.org does not allow mx.example.net"
    assert plain == tls_choice.Refusal(detail, tls_report.FailureType.VALIDATION_FAILURE)
