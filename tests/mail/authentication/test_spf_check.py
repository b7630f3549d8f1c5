"""SPF gives what the test suite of RFC 7208 expects, and whatever a record says, few lookups are made."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from postroad.mail.authentication import lookups, spf_check
from postroad.network.dns import resolver
from postroad.protocol.dns import tag_lists
from tests import dns_server

SUITE: Final = Path(__file__).parent / "rfc7208" / "tests.yml"


class Case(NamedTuple):
    """One test of the suite, and the zones of its section."""

    name: str
    zones: Mapping[str, Any]
    given: Mapping[str, Any]


def cases() -> list[Case]:
    sections = [section for section in yaml.safe_load_all(SUITE.read_text(encoding="utf-8")) if section]
    return [Case(name, each["zonedata"], given) for each in sections for name, given in each["tests"].items()]


def zones_of(data: Mapping[str, Any]) -> dns_server.Zones:
    """The suite writes a timeout for a name after the types that have an answer."""
    zones: dns_server.Zones = {}
    for name, records in data.items():
        types: dict[str, list[str] | dns_server.Fault] = {}
        written = [record for record in records if record != "TIMEOUT"]
        for record in written:
            ((kind, value),) = record.items()
            # Type SPF stands for TXT, unless there is one, or the suite says that there is none.
            if kind == "SPF" and any("TXT" in other for other in written):
                continue
            if value == "NONE":
                continue
            found = types.setdefault("TXT" if kind == "SPF" else kind, [])
            if value == "TIMEOUT":
                types["TXT" if kind == "SPF" else kind] = dns_server.Fault.SERVFAIL
            elif isinstance(found, list):
                found.append(_written(kind, value))
        if len(written) < len(records):
            for kind in ("TXT", "A", "AAAA", "MX", "PTR"):
                types.setdefault(kind, dns_server.Fault.SERVFAIL)
        zones[name.lower().replace(" ", "\\032")] = types
    return zones


def _written(kind: str, value: Any) -> str:  # noqa: ANN401 - as the suite has it
    if kind in {"TXT", "SPF"}:
        texts = value if isinstance(value, list) else [value]
        return " ".join(_quoted(text) for text in texts or [""])
    if kind == "MX":
        return f"{value[0]} {value[1]}."
    return f"{value}." if kind in {"PTR", "CNAME"} else str(value)


def _quoted(text: str) -> str:
    octets = [chr(octet) if chr(octet).isalnum() and octet < 128 else f"\\{octet:03}" for octet in text.encode()]
    return f'"{"".join(octets)}"'


@contextlib.asynccontextmanager
async def asking(zones: dns_server.Zones) -> AsyncIterator[tuple[lookups.Lookups, dns_server.DnsServer]]:
    async with dns_server.running(zones) as server:
        dns = resolver.Resolver([server.address])
        yield lookups.Lookups(lambda: contextlib.nullcontext(dns)), server


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
async def test_the_suite_of_the_standard_passes(case: Case) -> None:
    async with asking(zones_of(case.zones)) as (dns, _):
        found = await spf_check.check(
            dns, client_address=case.given["host"], helo=case.given["helo"], sender=case.given["mailfrom"]
        )
    expected = case.given["result"]
    assert found.result in (expected if isinstance(expected, list) else [expected]), found.reason


# Records of an enemy: each costs few lookups, whatever it says.


def spf_of(text: str) -> dns_server.Zones:
    return {"evil.example": {"TXT": [" ".join(f'"{part}"' for part in tag_lists.txt_strings(text))]}}


@pytest.mark.parametrize(
    "zones, result, most",
    [
        (spf_of("v=spf1 include:evil.example -all"), "permerror", 1),
        (spf_of("v=spf1 redirect=evil.example"), "permerror", 1),
        ({"*": {"TXT": ['"v=spf1 include:l.%{d} include:r.%{d} -all"']}}, "permerror", 12),
        (spf_of("v=spf1 " + " ".join(f"a:h{number}.example" for number in range(250)) + " -all"), "permerror", 4),
        (spf_of("v=spf1 " + "exists:%{i}.%{l}.evil.example " * 200 + "-all"), "permerror", 2),
        (
            {
                **spf_of("v=spf1 " + " ".join(f"mx:m{number}.example" for number in range(10)) + " -all"),
                **{
                    f"m{number}.example": {"MX": [f"1 h{host}.m{number}.example." for host in range(10)]}
                    for number in range(10)
                },
                "*": {"A": ["198.51.100.1"]},
            },
            "temperror",
            lookups.MAX_LOOKUPS,
        ),
        (
            {"evil.example": {"TXT": ['"v=spf1 mx -all"'], "MX": [f"1 h{host}.example." for host in range(11)]}},
            "permerror",
            2,
        ),
        (
            {
                "evil.example": {"TXT": ['"v=spf1 ptr -all"']},
                "9.2.0.192.in-addr.arpa": {"PTR": [f"h{host}.evil.example." for host in range(90)]},
                "*": {"A": ["198.51.100.1"]},
            },
            "fail",
            12,
        ),
        (spf_of("v=spf1 a:" + "%{s}" * 400 + ".example -all"), "fail", 2),
        (spf_of("v=spf1 a:" + "%{s}." * 40 + "%{l999r+-.,/_=} -all"), "fail", 2),
        (spf_of("v=spf1 " + "ip4:192.0.2.7 " * 550 + "-all"), "fail", 1),
        (spf_of("v=spf1 " + "ip4:192.0.2.7 " * 600 + "-all"), "permerror", 1),
        ({"evil.example": {"TXT": ['"v=spf1 -all"', '"v=spf1 +all"']}}, "permerror", 1),
        ({"evil.example": dns_server.Fault.SERVFAIL}, "temperror", 1),
        ({"evil.example": dns_server.Fault.REFUSED}, "temperror", 1),
        ({}, "none", 1),
    ],
)  # fmt: skip
async def test_no_record_costs_many_lookups(zones: dns_server.Zones, result: str, most: int) -> None:
    async with asking(zones) as (dns, server):
        found = await spf_check.check(dns, client_address="192.0.2.9", helo="evil.example", sender="a@evil.example")
    assert (found.result, found.domain, found.identity) == (result, "evil.example", "mailfrom")
    assert len(set(server.questions)) <= most


SENDERS = ["", "@", "a@", "a@b", "a@ evil.example", "a@" + "x." * 200 + "y", "a@\xfcber.example", "\0@evil.example"]


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("helo", ["", "[192.0.2.9]", "x" * 300, "\0\r\n", "evil.example"])
async def test_any_sender_and_any_greeting_have_a_result(sender: str, helo: str) -> None:
    async with asking(spf_of("v=spf1 exists:%{l}.%{h}.%{o}.example -all")) as (dns, _):
        found = await spf_check.check(dns, client_address="192.0.2.9", helo=helo, sender=sender)
    assert found.result in {"none", "fail"}


async def test_the_name_of_the_greeting_counts_for_the_null_sender() -> None:
    async with asking(spf_of("v=spf1 ip4:192.0.2.9 -all")) as (dns, _):
        found = await spf_check.check(dns, client_address="::ffff:192.0.2.9", helo="Evil.Example.", sender="")
    assert (found.result, found.domain, found.identity) == ("pass", "evil.example", "helo")


async def test_silent_name_servers_hold_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "LOOKUP_SECONDS", 0.05)
    async with asking({"*": dns_server.Fault.SILENCE}) as (dns, _):
        found = await spf_check.check(dns, client_address="192.0.2.9", helo="x.example", sender="a@evil.example")
    assert (found.result, found.reason) == ("temperror", "evil.example: no answer in time")
