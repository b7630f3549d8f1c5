"""Each record of a domain is queried and checked on its own, whatever the name servers do."""

import asyncio
from collections.abc import Sequence

import pytest

from postroad import config
from postroad.model.domains import domain_records
from postroad.model.domains.domain_records import RecordPurpose, RecordState
from postroad.network import hostname
from postroad.network.dns import resolver
from postroad.protocol.dns import spf_record
from postroad.services.domains import domain_dns
from tests import dns_server
from tests.contexts import SECRET_KEY

KEY = "v=DKIM1; k=rsa; p=MIIBIjANBgkq"
KEY_NAME = "pr1._domainkey.example.com"


def settings(server: dns_server.DnsServer, **delivery: object) -> config.Settings:
    given = {"hostname": "mail.example.net", "resolvers": [server.address]} | delivery
    overrides: dict[str, dict[str, object]] = {
        "security": {"installation_key": SECRET_KEY},
        "domains": {"spf": "include:spf.example.net"},
        "delivery": given,
    }
    return config.load(environment={}, overrides=overrides)


async def look(
    server: dns_server.DnsServer, purpose: RecordPurpose, *, domain: str = "example.com"
) -> domain_records.Finding:
    asking = domain_dns.DomainDns(settings(server))
    keys = [domain_records.Record(one, KEY_NAME, "TXT", KEY) for one in RecordPurpose if one.startswith("dkim")]
    wanted = domain_records.records(domain, keys=keys, service=await asking.service())
    (record,) = [one for one in wanted if one.purpose is purpose]
    return await asking.check(record, domain=domain)


async def test_a_key_is_found_in_strings_and_behind_an_alias(server: dns_server.DnsServer) -> None:
    server.zones[KEY_NAME] = {"TXT": [f'"{KEY[:20]}" "{KEY[20:]}"']}
    assert (await look(server, RecordPurpose.DKIM)).state is RecordState.OK
    server.zones["keys.example.net"] = server.zones.pop(KEY_NAME)
    server.zones[KEY_NAME] = {"CNAME": ["keys.example.net."]}
    assert (await look(server, RecordPurpose.DKIM)).state is RecordState.OK


async def test_a_key_with_the_domain_twice_in_its_name_is_noticed(server: dns_server.DnsServer) -> None:
    assert (await look(server, RecordPurpose.DKIM)).detail == "no TXT record with this name; add it"
    server.zones[f"{KEY_NAME}.example.com"] = {"TXT": [f'"{KEY}"']}
    finding = await look(server, RecordPurpose.DKIM)
    assert finding.state is RecordState.MISSING
    assert finding.detail.endswith("enter the name as pr1._domainkey")


async def test_the_return_path_is_checked_by_its_mail_hosts_and_their_addresses(server: dns_server.DnsServer) -> None:
    assert (await look(server, RecordPurpose.RETURN_PATH)).state is RecordState.MISSING
    server.zones["bounces.example.com"] = {"MX": ["0 ."]}
    assert "accepts no mail" in (await look(server, RecordPurpose.RETURN_PATH)).detail
    server.zones["bounces.example.com"] = {"MX": ["10 MAIL.example.net."]}
    finding = await look(server, RecordPurpose.RETURN_PATH)
    assert finding.state is RecordState.WRONG
    assert finding.detail == (
        "the MX record is right, but mail.example.net has no address in DNS, so bounces are lost; "
        "the operator has to add an A or AAAA record for it"
    )
    server.zones["mail.example.net"] = dns_server.Fault.SERVFAIL
    finding = await look(server, RecordPurpose.RETURN_PATH)
    assert finding.state is RecordState.UNKNOWN
    assert finding.detail.startswith("DNS did not answer for mail.example.net (SERVFAIL)")
    server.zones["mail.example.net"] = {"A": ["192.0.2.1"]}
    assert (await look(server, RecordPurpose.RETURN_PATH)).state is RecordState.OK


async def test_a_policy_of_the_organisation_holds_for_what_is_below_it(server: dns_server.DnsServer) -> None:
    domain = "news.shop.example.com"
    assert (await look(server, RecordPurpose.DMARC, domain=domain)).state is RecordState.MISSING
    server.zones["_dmarc.example.com"] = {"TXT": ['"v=DMARC1; p=reject"']}
    finding = await look(server, RecordPurpose.DMARC, domain=domain)
    assert finding == domain_records.Finding(RecordState.OK, "found p=reject at _dmarc.example.com")
    server.zones["_dmarc.shop.example.com"] = {"TXT": ['"v=DMARC1; rua=mailto:x@example.com"']}
    assert (await look(server, RecordPurpose.DMARC, domain=domain)).state is RecordState.WRONG


async def test_spf_says_what_to_add_and_where(server: dns_server.DnsServer) -> None:
    assert (await look(server, RecordPurpose.SPF)).state is RecordState.MISSING
    server.zones["bounces.example.com"] = {"TXT": ['"v=spf1 ip4:192.0.2.1 ~all"', '"something else"']}
    finding = await look(server, RecordPurpose.SPF)
    assert finding.state is RecordState.WRONG
    assert finding.detail == "found v=spf1 ip4:192.0.2.1 ~all; add include:spf.example.net before ~all"
    assert finding.found == ("v=spf1 ip4:192.0.2.1 ~all",)
    server.zones["bounces.example.com"] = {"TXT": ['"v=spf1 include:spf.example.net ~all"']}
    assert (await look(server, RecordPurpose.SPF)).state is RecordState.OK


@pytest.mark.parametrize(
    "records, state, detail, found",
    [
        (
            ["v=spf1 include:spf.example.net ipv4:192.0.2.1 ~all"],
            "wrong",
            "'ipv4:192.0.2.1' is not a valid SPF term",
            1,
        ),
        (["v=spf1 include:gone.example ~all"], "wrong", "gone.example has no SPF record", 1),
        (["v=spf1 include:spf.example.net ~all", "v=spf1 mx ~all"], "wrong", "merge them", 2),
        # What nobody could store is not kept.
        (["v=spf1 \\000\\010\\255 ~all"], "wrong", "", 0),
        (["v=spf1 include:refused.example ~all"], "unknown", "refused.example: REFUSED", 0),
    ],
)
async def test_an_spf_record_that_receivers_refuse_is_wrong(
    server: dns_server.DnsServer, records: list[str], state: str, detail: str, found: int
) -> None:
    server.zones["refused.example"] = dns_server.Fault.REFUSED
    server.zones["bounces.example.com"] = {"TXT": [f'"{record}"' for record in records]}
    finding = await look(server, RecordPurpose.SPF)
    assert finding.state == state
    assert detail in finding.detail
    assert finding.detail.isprintable()
    assert sorted(finding.found) == sorted(records)[:found]


async def test_a_zone_full_of_records_is_read_up_to_a_bound(server: dns_server.DnsServer) -> None:
    many = [f'"v=spf1 ip4:192.0.{at // 250}.{at % 250} ~all"' for at in range(140)]
    server.zones["bounces.example.com"] = {"TXT": many, "TC": []}
    finding = await look(server, RecordPurpose.SPF)
    assert finding.state is RecordState.WRONG
    assert len(finding.found) == 5


async def test_the_time_of_a_look_begins_when_it_has_its_place(
    server: dns_server.DnsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain_dns, "MAX_CONCURRENT_CHECKS", 1)
    monkeypatch.setattr(domain_dns, "CHECK_SECONDS", 1.0)
    server.zones["slow.example"] = {"MX": dns_server.Fault.SILENCE}
    server.zones["_dmarc.example.com"] = {"TXT": ['"v=DMARC1; p=none"']}
    asking = domain_dns.DomainDns(settings(server))
    slow = domain_records.Record(RecordPurpose.RETURN_PATH, "slow.example", "MX", "10 mail.example.net")
    quick = domain_records.Record(RecordPurpose.DMARC, "_dmarc.example.com", "TXT", "v=DMARC1; p=none")
    findings = await asyncio.gather(
        asking.check(slow, domain="slow.example"), asking.check(quick, domain="example.com")
    )
    assert [finding.state for finding in findings] == [RecordState.UNKNOWN, RecordState.OK]


async def test_silent_zones_of_one_account_keep_no_other_from_its_lookups(
    server: dns_server.DnsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain_dns, "MAX_CONCURRENT_CHECKS", 5)
    monkeypatch.setattr(domain_dns, "CHECK_SECONDS", 300.0)
    monkeypatch.setattr(domain_dns, "QUERY_SECONDS", 300.0)
    server.zones["slow.example"] = {"MX": dns_server.Fault.SILENCE}
    server.zones["_dmarc.example.com"] = {"TXT": ['"v=DMARC1; p=none"']}
    asking = domain_dns.DomainDns(settings(server))
    slow = domain_records.Record(RecordPurpose.RETURN_PATH, "slow.example", "MX", "10 mail.example.net")
    quick = domain_records.Record(RecordPurpose.DMARC, "_dmarc.example.com", "TXT", "v=DMARC1; p=none")
    silent = [
        asyncio.create_task(asking.check(slow, domain="slow.example", account_id="acc_greedy")) for _ in range(20)
    ]
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        for _ in range(3):
            finding = await asking.check(quick, domain="example.com", account_id="acc_modest")
            assert finding.state is RecordState.OK
    for task in silent:
        task.cancel()
    await asyncio.wait(silent)


async def test_a_server_that_fails_makes_every_record_unknown(server: dns_server.DnsServer) -> None:
    server.zones["*"] = dns_server.Fault.SERVFAIL
    for purpose in RecordPurpose:
        finding = await look(server, purpose)
        assert finding.state is RecordState.UNKNOWN
        assert "(SERVFAIL)" in finding.detail


async def test_what_the_service_does_not_know_is_not_asked(server: dns_server.DnsServer) -> None:
    asking = domain_dns.DomainDns(settings(server))
    record = domain_records.Record(RecordPurpose.SPF, "example.com", "TXT", None)
    assert (await asking.check(record, domain="example.com")).state is RecordState.UNKNOWN
    assert server.questions == []


@pytest.mark.parametrize(
    "terms", ["include:", "spf.example.net", "ip4:300.1.1.1", "-all", "~include:a.example", "redirect=a.example"]
)
def test_what_receivers_could_not_read_is_refused_as_a_setting(terms: str) -> None:
    overrides = {"security": {"installation_key": SECRET_KEY}, "domains": {"spf": f"ip4:192.0.2.7 {terms}"}}
    with pytest.raises(config.ConfigError, match=r"^domains\.spf: "):
        domain_dns.DomainDns(config.load(environment={}, overrides=overrides))


@pytest.mark.parametrize(
    "name, host",
    [("MX1.example.net", "mx1.example.net"), ("laptop.local", ""), ("localhost", ""), ("1.0.0.127.in-addr.arpa", "")],
)
async def test_the_systems_name_is_used_when_it_can_be_one(
    server: dns_server.DnsServer, monkeypatch: pytest.MonkeyPatch, name: str, host: str
) -> None:
    async def system_name() -> str:
        return name

    monkeypatch.setattr(hostname, "name", system_name)
    assert (await domain_dns.DomainDns(settings(server, hostname="")).service()).host == host


async def test_the_settings_say_what_records_say_of_the_service(server: dns_server.DnsServer) -> None:
    given = settings(server, return_path_domain="Bounces.example.net")
    assert await domain_dns.DomainDns(given).service() == domain_records.Service(
        "mail.example.net", ("include:spf.example.net",), "bounces.example.net"
    )


# An SPF record is searched as receivers go through it, with their bounds.

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
