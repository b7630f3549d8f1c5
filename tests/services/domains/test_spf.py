"""An SPF record is searched as receivers go through it, with their bounds."""

from collections.abc import Sequence

import pytest

from postroad.network.dns import resolver
from postroad.protocol.dns import spf_record
from postroad.services.domains import domain_dns
from tests import dns_server

OURS = "include:spf.example.net"
DOMAIN = "example.com"


async def missing(zones: dns_server.Zones, record: str, *wanted: str) -> Sequence[str]:
    """The wanted terms that the record does not allow."""
    async with dns_server.running(zones) as server:
        search = domain_dns.Search(resolver.Resolver([server.address]))
        terms = [spf_record.parse_term(word) for word in wanted or (OURS,)]
        absent = await search.missing(DOMAIN, spf_record.parse(f"v=spf1 {record}"), terms)
        return [term.written for term in absent]


def txt(*records: str) -> dns_server.Types:
    return {"TXT": [f'"{record}"' for record in records]}


def chain(length: int, *, end: str) -> dns_server.Zones:
    """Records of which each includes the next."""
    zones: dns_server.Zones = {f"{at}.example": txt(f"v=spf1 include:{at + 1}.example -all") for at in range(1, length)}
    zones[f"{length}.example"] = txt(f"v=spf1 {end} -all")
    return zones


async def test_a_term_is_found_directly_and_in_what_is_included_or_comes_after() -> None:
    assert await missing({}, f"{OURS} ~all") == []
    assert await missing({"a.example": txt(f"v=spf1 {OURS} -all")}, "include:a.example ~all") == []
    assert await missing({"a.example": txt(f"v=spf1 {OURS} -all")}, "redirect=a.example") == []
    assert await missing({}, "redirect=spf.example.net") == []
    assert await missing({}, "+all") == []


async def test_a_term_that_is_not_there_or_stands_behind_the_end_is_missing() -> None:
    assert await missing({}, "ip4:192.0.2.1 ~all") == [OURS]
    assert await missing({}, f"-all {OURS}") == [OURS]
    assert await missing({"a.example": txt(f"v=spf1 -{OURS} +all")}, "include:a.example -all") == [OURS]
    assert await missing({}, "exists:%{i}.a.example include:%{d}.a.example redirect=%{d}.b.example") == [OURS]


async def test_every_wanted_term_has_to_be_there() -> None:
    wanted = ("ip4:192.0.2.1", "ip4:192.0.2.200", "ip6:2001:db8::1")
    assert await missing({}, "ip4:192.0.2.0/25 ip6:2001:db8::/32 -all", *wanted) == ["ip4:192.0.2.200"]


async def test_a_host_may_be_allowed_by_its_name_as_a_mail_host_and_by_its_addresses() -> None:
    ours = "a:mail.example.net"
    zones: dns_server.Zones = {
        "mail.example.net": {"A": ["192.0.2.7"], "AAAA": ["2001:db8::7"]},
        DOMAIN: {"MX": ["10 mail.example.net."]},
    }
    assert await missing(zones, "a:mail.example.net -all", ours) == []
    assert await missing(zones, "mx -all", ours) == []
    assert await missing(zones, "mx:example.com -all", ours) == []
    assert await missing(zones, "ip4:192.0.2.0/24 ip6:2001:db8::/32 -all", ours) == []
    assert await missing(zones, "ip4:192.0.2.0/24 -all", ours) == [ours]
    assert await missing(zones, "a mx:other.example -all", ours) == [ours]


@pytest.mark.parametrize("record", ["a:other.example", "a:mail.example.net/32", "mx/24//64", "mx:example.com/24", "a"])
async def test_a_host_is_allowed_by_the_addresses_of_other_names(record: str) -> None:
    host: dns_server.Types = {"A": ["192.0.2.7"], "AAAA": ["2001:db8::7"]}
    zones: dns_server.Zones = {
        "mail.example.net": host,
        "other.example": host,
        DOMAIN: {"MX": ["10 mail.example.net."], **host},
    }
    for ours in ("a:mail.example.net", "ip4:192.0.2.7"):
        assert await missing(zones, f"{record} -all", ours) == []


async def test_the_bits_that_a_term_compares_decide() -> None:
    zones: dns_server.Zones = {"near.example": {"A": ["192.0.2.9"]}, "mx.example": {"MX": ["5 near.example."]}}
    for term in ("a:near.example", "mx:mx.example"):
        assert await missing(zones, f"{term}/24 -all", "ip4:192.0.2.7") == []
        assert await missing(zones, f"{term}/31 -all", "ip4:192.0.2.7") == ["ip4:192.0.2.7"]
        assert await missing(zones, f"{term}//0 -all", "ip4:192.0.2.7") == ["ip4:192.0.2.7"]
    assert await missing(zones, "a:near.example/24 -all", "ip4:192.0.0.0/16") == ["ip4:192.0.0.0/16"]


async def test_names_of_hosts_count_as_look_ups_and_are_asked_once() -> None:
    zones: dns_server.Zones = {"a.example": {"A": ["192.0.2.1"]}}
    async with dns_server.running(zones) as server:
        search = domain_dns.Search(resolver.Resolver([server.address]))
        wanted = [spf_record.parse_term(f"ip4:192.0.2.{number}") for number in (7, 8)]
        record = spf_record.parse(f"v=spf1 {'a:a.example ' * 10}-all")
        assert await search.missing(DOMAIN, record, wanted) == wanted
        assert sorted(server.questions) == [("a.example", "A"), ("a.example", "AAAA")]
    with pytest.raises(domain_dns.PermError, match="more than 10 DNS lookups"):
        await missing(zones, f"{'a:a.example ' * 11}-all", "ip4:192.0.2.7")


async def test_more_mail_hosts_than_receivers_look_at_break_a_record() -> None:
    zones: dns_server.Zones = {"many.example": {"MX": [f"10 mx{number}.example." for number in range(11)]}}
    with pytest.raises(domain_dns.PermError, match=r"many\.example has more than 10 mail hosts"):
        await missing(zones, "mx:many.example -all", "ip4:192.0.2.7")


async def test_a_search_asks_for_a_bounded_number_of_hosts() -> None:
    zones: dns_server.Zones = {
        f"d{at}.example": {"MX": [f"1 mx{at}-{number}.example." for number in range(10)]} for at in range(5)
    }
    async with dns_server.running(zones) as server:
        search = domain_dns.Search(resolver.Resolver([server.address]))
        record = spf_record.parse(f"v=spf1 {' '.join(f'mx:{name}' for name in zones)} -all")
        assert len(await search.missing(DOMAIN, record, [spf_record.parse_term("ip4:192.0.2.7")])) == 1
        assert len({name for name, kind in server.questions if kind == "A"}) == 20


async def test_ten_look_ups_are_enough_and_eleven_are_too_many() -> None:
    zones = chain(9, end=OURS)
    assert await missing(zones, "include:1.example -all") == []
    with pytest.raises(domain_dns.PermError, match="more than 10 DNS lookups"):
        await missing(zones, "a include:1.example -all")
    # What comes after the term is not counted.
    assert await missing({}, f"{OURS} {'a ' * 20}-all") == []


async def test_a_loop_ends() -> None:
    zones: dns_server.Zones = {"a.example": txt("v=spf1 include:a.example -all")}
    with pytest.raises(domain_dns.PermError, match="more than 10 DNS lookups"):
        await missing(zones, "include:a.example -all")
    zones = {"a.example": txt("v=spf1 redirect=a.example")}
    with pytest.raises(domain_dns.PermError, match="more than 10 DNS lookups"):
        await missing(zones, "redirect=a.example")


@pytest.mark.parametrize(
    "included, reason",
    [
        ([], "a.example has no SPF record"),
        (["v=spf1 -all", "v=spf1 ~all"], "a.example has 2 SPF records"),
        (["v=spf1 nonsense"], "'nonsense' is not a valid SPF term"),
    ],
)
async def test_a_broken_record_breaks_those_that_include_it(included: list[str], reason: str) -> None:
    zones: dns_server.Zones = {"a.example": txt(*included)} if included else {}
    with pytest.raises(domain_dns.PermError, match=reason):
        await missing(zones, f"include:a.example {OURS} -all")
    assert await missing(zones, f"{OURS} include:a.example -all") == []
    with pytest.raises(domain_dns.PermError, match="without the qualifier in front"):
        await missing({}, f"-{OURS} +all")


async def test_a_question_without_an_answer_is_no_answer() -> None:
    for record in ("include:a.example -all", "redirect=a.example"):
        with pytest.raises(domain_dns.TempError, match=r"a\.example: SERVFAIL"):
            await missing({"a.example": dns_server.Fault.SERVFAIL}, record)
    with pytest.raises(domain_dns.TempError, match=r"a\.example: SERVFAIL"):
        await missing({"a.example": dns_server.Fault.SERVFAIL}, "mx:a.example -all", "a:mail.example.net")
    with pytest.raises(domain_dns.TempError, match=r"a\.example: SERVFAIL"):
        await missing({"a.example": dns_server.Fault.SERVFAIL}, "a:a.example -all", "ip4:192.0.2.7")
