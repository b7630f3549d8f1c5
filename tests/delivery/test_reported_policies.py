"""For which policy sessions are counted, and what is known without one (RFC 8460 sections 4.3 and 4.4)."""

import contextlib
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroad.delivery import tls_choice
from postroad.model.delivery import tls_policy
from postroad.network.http import https_get
from postroad.protocol.dns import mta_sts
from postroad.protocol.reports import tls_report
from tests import dns_server, https_server
from tests.delivery import router_harness

DIGEST = "ab" * 32
NONE = tls_report.Policy(tls_report.PolicyType.NONE, "example.org")
STS = tls_report.Policy(tls_report.PolicyType.STS, "example.org")
NOTED = list[tuple[str, tls_report.Result]]


def sts(mode: str) -> tls_report.Policy:
    lines = ("version: STSv1", f"mode: {mode}", "mx: mx1.example.org", "max_age: 604800")
    return tls_report.Policy(tls_report.PolicyType.STS, "example.org", lines, ("mx1.example.org",))


def excluded(mode: str) -> tls_report.Result:
    return tls_report.Result(sts(mode), tls_report.FailureType.VALIDATION_FAILURE, mx_host="mx2.example.net")


@contextlib.asynccontextmanager
async def publishing(
    answer: bytes | None, *, zones: dns_server.Zones | None = None, names: str = "mta-sts.example.org", **settings: Any
) -> AsyncIterator[tuple[router_harness.RouterHarness, NOTED]]:
    published: dns_server.Zones = {**router_harness.TWO_HOSTS, **(zones or {})}
    if answer is not None:
        published["_mta-sts.example.org"] = {"TXT": ['"v=STSv1; id=1;"']}
    noted: NOTED = []
    async with https_server.running(names) as server:
        server.answer = answer
        async with router_harness.running(
            published,
            https=https_get.Client(server.context, port=server.port),
            report=lambda domain, result: noted.append((domain, result)),
            **{"mta_sts": True, "mx_port": 2525, "allow_private": [*router_harness.PUBLIC, "127.0.0.1"], **settings},
        ) as harness:
            yield harness, noted


def policy(mode: str) -> bytes:
    return https_server.response("\n".join(sts(mode).lines).encode())


async def counted(harness: router_harness.RouterHarness) -> dict[str, tuple[str, Any]]:
    route = await harness.route("example.org")
    return {host.name: (host.tls.mode.value, host.counted_for) for host in route.hosts}


async def test_a_domain_without_a_policy() -> None:
    async with publishing(None) as (harness, noted):
        assert await counted(harness) == {
            "mx1.example.org": ("opportunistic", ("example.org", NONE)),
            "mx2.example.net": ("opportunistic", ("example.org", NONE)),
        }
    assert noted == []


async def test_a_domain_that_enforces_its_policy() -> None:
    async with publishing(policy("enforce")) as (harness, noted):
        assert await counted(harness) == {"mx1.example.org": ("verified", ("example.org", sts("enforce")))}
    assert noted == [("example.org", excluded("enforce"))]


async def test_a_domain_that_tests_its_policy() -> None:
    async with publishing(policy("testing")) as (harness, noted):
        assert await counted(harness) == {
            "mx1.example.org": ("testing", ("example.org", sts("testing"))),
            "mx2.example.net": ("opportunistic", None),
        }
    assert noted == [("example.org", excluded("testing"))]


async def test_a_policy_that_cannot_be_tested_under_a_stricter_setting_is_not_counted_as_success() -> None:
    async with publishing(policy("testing"), tls="required") as (harness, _):
        assert {found for _, found in (await counted(harness)).values()} == {None}


async def test_without_tls_nothing_is_counted() -> None:
    async with publishing(policy("enforce"), tls="off") as (harness, noted):
        assert {found for _, found in (await counted(harness)).values()} == {None}
    assert noted == []


@pytest.mark.parametrize(
    "answer, names, failure",
    [
        (https_server.response(b"", status="404 Not Found"), "mta-sts.example.org", "sts-policy-fetch-error"),
        (https_server.response(b"<html>"), "mta-sts.example.org", "sts-policy-invalid"),
        (policy("enforce"), "www.example.org", "sts-webpki-invalid"),
    ],
)
async def test_a_policy_that_cannot_be_fetched(answer: bytes, names: str, failure: str) -> None:
    async with publishing(answer, names=names) as (harness, noted):
        assert {found for _, found in (await counted(harness)).values()} == {("example.org", NONE)}
    assert noted == [("example.org", tls_report.Result(STS, tls_report.FailureType(failure)))]


async def test_tlsa_records_are_the_policy_of_the_mail_host() -> None:
    records: dns_server.Zones = {
        "_2525._tcp.mx1.example.org": {"TLSA": [f"3 1 1 {DIGEST}"]},
        "_2525._tcp.mx2.example.net": dns_server.Fault.SERVFAIL,
    }
    signed = ("example.org", "mx1.example.org", "mx2.example.net")
    async with publishing(None, zones=records, secure=signed, dane=True) as (harness, noted):
        tlsa = tls_report.Policy(tls_report.PolicyType.TLSA, "mx1.example.org", (f"3 1 1 {DIGEST}",))
        assert await counted(harness) == {"mx1.example.org": ("dane", ("example.org", tlsa))}
    broken = tls_report.Policy(tls_report.PolicyType.TLSA, "mx2.example.net")
    failure = tls_report.Result(broken, tls_report.FailureType.DNSSEC_INVALID, mx_host="mx2.example.net")
    assert noted == [("example.org", failure)]


async def test_tlsa_records_that_cannot_be_used_are_a_result() -> None:
    records: dns_server.Zones = {"_2525._tcp.mx1.example.org": {"TLSA": [f"1 1 1 {DIGEST}"]}}
    async with publishing(None, zones=records, secure=("example.org", "mx1.example.org"), dane=True) as (
        harness,
        noted,
    ):
        assert (await counted(harness))["mx1.example.org"] == ("required", None)
    tlsa = tls_report.Policy(tls_report.PolicyType.TLSA, "mx1.example.org", (f"1 1 1 {DIGEST}",))
    failure = tls_report.Result(tlsa, tls_report.FailureType.TLSA_INVALID, mx_host="mx1.example.org")
    assert noted == [("example.org", failure)]


async def test_a_policy_without_reports_is_not_tested() -> None:
    zones: dns_server.Zones = {"example.org": {"A": ["192.0.2.1"]}}
    async with router_harness.running(zones) as harness:
        (host,) = (await harness.route("example.org")).hosts
    assert (host.tls, host.counted_for) == (tls_policy.OPPORTUNISTIC, None)


async def test_a_policy_of_any_size_is_stored_in_a_bounded_one() -> None:
    certificate = "ab" * 5_000
    records: dns_server.Zones = {
        "_2525._tcp.mx1.example.org": {"TLSA": [f"3 1 1 {DIGEST}", f"3 0 0 {certificate}"]},
        "mx2.example.net": {"A": []},
    }
    signed = ("example.org", "mx1.example.org")
    async with publishing(None, zones=records, secure=signed, dane=True) as (harness, _):
        (host,) = (await harness.route("example.org")).hosts
        assert len(host.tls.tlsa) == 2
        assert host.counted_for is not None
        # The digest of the certificate stands for it.
        digest = hashlib.sha256(bytes.fromhex(certificate)).hexdigest()
        assert set(host.counted_for[1].lines) == {f"3 1 1 {DIGEST}", f"3 0 1 {digest}"}
    many = mta_sts.Policy(mta_sts.Mode.ENFORCE, tuple(f"mx{n}.{'a' * 60}.example.org" for n in range(100)), 86_400)
    allowed = many.patterns[0]
    tls = tls_policy.TlsPolicy(tls_policy.Mode.VERIFIED, names=(allowed,))
    found, _ = tls_choice.reported(tls, host=allowed, domain="example.org", policy=many)
    assert found is not None
    assert found.lines[:2] == ("version: STSv1", "mode: enforce")
    assert 900 < sum(map(len, found.lines)) <= 1_000
    assert 900 < sum(map(len, found.mx_hosts)) <= 1_000
