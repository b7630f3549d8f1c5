"""Each record of a domain is queried and checked on its own, whatever the name servers do."""

import asyncio

import pytest

from postroad import config
from postroad.model.domains import domain_records
from postroad.model.domains.domain_records import RecordPurpose, RecordState
from postroad.network import hostname
from postroad.services.domains import domain_dns
from tests import dns_server
from tests.contexts import SECRET_KEY

KEY = "v=DKIM1; k=rsa; p=MIIBIjANBgkq"
KEY_NAME = "pr1._domainkey.example.com"


def settings(server: dns_server.DnsServer, **delivery: object) -> config.Settings:
    given = {"hostname": "mail.example.net", "resolvers": [server.address]} | delivery
    overrides: dict[str, dict[str, object]] = {
        "security": {"secret_key": SECRET_KEY},
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
    overrides = {"security": {"secret_key": SECRET_KEY}, "domains": {"spf": f"ip4:192.0.2.7 {terms}"}}
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
