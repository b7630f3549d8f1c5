"""SPF gives what the test suite of RFC 7208 expects, and whatever a record says, few lookups are made."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from postroad.mail.authentication import lookups, spf
from postroad.network.dns import resolver
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
        yield lookups.Lookups(resolver.Resolver([server.address])), server


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
async def test_the_suite_of_the_standard_passes(case: Case) -> None:
    async with asking(zones_of(case.zones)) as (dns, _):
        found = await spf.check(
            dns, client_address=case.given["host"], helo=case.given["helo"], sender=case.given["mailfrom"]
        )
    expected = case.given["result"]
    assert found.result in (expected if isinstance(expected, list) else [expected]), found.reason
