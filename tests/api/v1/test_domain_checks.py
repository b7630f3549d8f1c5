"""`/v1/domains/{id}`: the records that DNS should have, checked when the owner asks."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from postroad import config, context
from postroad.model.domains.domain_records import RecordPurpose
from postroad.model.reports import dmarc_rows
from postroad.model.units import times
from postroad.protocol.reports import dmarc_report
from postroad.services.domains import domain_registry as domains
from postroad.storage.mail import received_reports
from tests import contexts, dns_server
from tests.api.management import AccountClients
from tests.services import domain_zones


@pytest_asyncio.fixture
async def server() -> AsyncIterator[dns_server.DnsServer]:
    async with dns_server.running({}) as running:
        yield running


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    return domain_zones.settings(database_url, server)


async def register(clients: AccountClients, name: str = domain_zones.DOMAIN) -> dict[str, Any]:
    made: dict[str, Any] = (await clients.owner.post("/v1/domains", json={"name": name})).json()["domain"]
    return made


async def publish(
    ctx: context.Context, server: dns_server.DnsServer, clients: AccountClients, domain: dict[str, Any]
) -> str:
    return await domain_zones.publish_all(ctx, server, await domains.find(ctx, clients.account_id, domain["id"]))


async def test_a_new_domain_shows_every_record_to_add(mine: AccountClients) -> None:
    domain = await register(mine)
    dkim, second = domain["dkim"], domain["records"][-1]
    assert second["value"].startswith("v=DKIM1; k=ed25519; p=")
    wanted = [
        ("dkim", dkim["name"], "TXT", dkim["value"], True),
        ("spf", "bounces.example.com", "TXT", "v=spf1 include:spf.example.net ~all", True),
        ("return_path", "bounces.example.com", "MX", "10 mail.example.net", True),
        ("dmarc", "_dmarc.example.com", "TXT", "v=DMARC1; p=none; rua=mailto:reports@bounces.example.com", False),
        ("dkim_ed25519", f"pe{dkim['name'][2:]}", "TXT", second["value"], False),
    ]
    assert domain["records"] == [
        {
            "purpose": purpose,
            "name": name,
            "type": kind,
            "value": value,
            "required": required,
            "managed": False,
            "state": "pending",
            "detail": "not checked yet",
            "checked_at": None,
        }
        for purpose, name, kind, value, required in wanted
    ]


async def test_a_check_proves_a_domain_whose_records_are_there(
    ctx: context.Context, mine: AccountClients, server: dns_server.DnsServer
) -> None:
    domain = await register(mine)
    await publish(ctx, server, mine, domain)
    response = await mine.owner.post(f"/v1/domains/{domain['id']}/check")
    checked = response.json()["domain"]
    assert response.status_code == 200
    assert (checked["verified"], checked["verified_by"]) == (True, "dns")
    assert [record["state"] for record in checked["records"]] == ["ok", "ok", "ok", "ok", "missing"]
    assert {record["checked_at"] for record in checked["records"]} == {"2027-01-15T08:00:00.000Z"}
    assert (await mine.reader.get(f"/v1/domains/{domain['id']}")).json()["domain"] == checked


async def test_a_check_says_what_was_found_and_what_to_do(mine: AccountClients, server: dns_server.DnsServer) -> None:
    server.zones["bounces.example.com"] = {
        "TXT": ['"v=spf1 include:_spf.google.com ~all"'],
        "MX": dns_server.Fault.SERVFAIL,
    }
    server.zones["_spf.google.com"] = {"TXT": ['"v=spf1 ip4:192.0.2.0/24 ~all"']}
    domain = await register(mine)
    checked = (await mine.owner.post(f"/v1/domains/{domain['id']}/check")).json()["domain"]
    records = {record["purpose"]: record for record in checked["records"]}
    assert {purpose: record["state"] for purpose, record in records.items()} == {
        "dkim": "missing",
        "spf": "wrong",
        "return_path": "unknown",
        "dmarc": "missing",
        "dkim_ed25519": "missing",
    }
    assert records["spf"]["detail"] == (
        "found v=spf1 include:_spf.google.com ~all; add include:spf.example.net before ~all"
    )
    assert records["spf"]["value"] == "v=spf1 include:_spf.google.com include:spf.example.net ~all"
    assert not checked["verified"]


async def test_a_new_key_signs_when_its_record_is_there(
    ctx: context.Context, mine: AccountClients, server: dns_server.DnsServer, clock: contexts.Clock
) -> None:
    domain = await register(mine)
    await publish(ctx, server, mine, domain)
    path = f"/v1/domains/{domain['id']}"
    await mine.owner.post(f"{path}/check")
    response = await mine.owner.post(f"{path}/rotate-key")
    rotating = response.json()["domain"]
    assert (response.status_code, rotating["dkim"]) == (200, domain["dkim"])
    pending = {record["purpose"]: record for record in rotating["records"]}
    assert list(pending) == ["dkim", "dkim_next", "spf", "return_path", "dmarc", "dkim_ed25519", "dkim_ed25519_next"]
    assert (pending["dkim_next"]["state"], pending["dkim_next"]["required"]) == ("pending", False)
    assert (await mine.owner.post(f"{path}/rotate-key")).json()["domain"] == rotating
    found = await domains.find(ctx, mine.account_id, domain["id"])
    await domain_zones.publish_keys(ctx, server, found, RecordPurpose.DKIM_NEXT)
    clock.pass_seconds(10)
    switched = (await mine.owner.post(f"{path}/check")).json()["domain"]
    assert switched["dkim"]["name"] == pending["dkim_next"]["name"]
    assert (switched["records"][-1]["purpose"], switched["records"][-1]["name"]) == ("dkim_old", domain["dkim"]["name"])
    refused = await mine.owner.post(f"{path}/rotate-key")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


async def test_checks_are_not_for_every_second(mine: AccountClients, clock: contexts.Clock) -> None:
    path = f"/v1/domains/{(await register(mine))['id']}/check"
    assert (await mine.owner.post(path)).status_code == 200
    clock.pass_seconds(4)
    refused = await mine.owner.post(path)
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert refused.headers["retry-after"] == "6"
    clock.pass_seconds(6)
    assert (await mine.owner.post(path)).status_code == 200


async def test_a_young_domain_shows_how_much_it_may_send(mine: AccountClients) -> None:
    assert (await register(mine))["warmup"] == {
        "used": 0,
        "cap": 200,
        "tomorrow": 200,
        "next_at": "2027-01-16T00:00:00.000Z",
    }


async def test_a_domain_that_needs_no_warm_up_shows_none(ctx: context.Context, mine: AccountClients) -> None:
    domain = await register(mine)
    await domains.set_warm(ctx, mine.account_id, domain["id"], warm=True)
    shown = (await mine.owner.get(f"/v1/domains/{domain['id']}")).json()["domain"]
    assert (shown["warm"], shown["warmup"]) == (True, None)


class TestWhereTheOperatorHasAReturnPath:
    """The same with `delivery.return_path_domain`."""

    @pytest.fixture
    def settings(self, database_url: str, server: dns_server.DnsServer) -> config.Settings:
        usual = domain_zones.settings(database_url, server)
        delivery = msgspec.structs.replace(usual.delivery, return_path_domain="bounces.example.net")
        return msgspec.structs.replace(usual, delivery=delivery)

    async def test_what_stands_there_is_not_the_customers_business(self, mine: AccountClients) -> None:
        records = {record["purpose"]: record for record in (await register(mine))["records"]}
        assert {purpose: record["managed"] for purpose, record in records.items()} == {
            "dkim": False,
            "spf": True,
            "return_path": True,
            "dmarc": False,
            "dkim_ed25519": False,
        }
        assert records["spf"]["name"] == "bounces.example.net"


async def test_the_reports_about_a_domain_are_those_of_its_page(ctx: context.Context, mine: AccountClients) -> None:
    domain = await register(mine)
    today = times.day_of(ctx.clock())
    none = dmarc_report.Disposition.NONE
    rows = {
        dmarc_rows.Key(today, "example.com", "mail.example", source, "example.com", none, dkim=passes, spf=False): count
        for source, passes, count in (("192.0.2.9", True, 3), ("203.0.113.0/24", False, 1))
    }
    async with ctx.store.transaction() as tx:
        await received_reports.add_dmarc(tx, mine.account_id, rows, is_authenticated=True)
        await received_reports.add_dmarc(tx, mine.account_id, rows, is_authenticated=False)
        await received_reports.dismiss(tx, mine.account_id, "example.com", "203.0.113.0/24")
        tls = [received_reports.TlsRow("mail.example", "sts", "certificate-expired", 2)]
        await received_reports.add_tls(tx, mine.account_id, "example.com", today, tls)
    found = (await mine.reader.get(f"/v1/domains/{domain['id']}/reports")).json()["reports"]
    assert found == {
        "address": "reports@bounces.example.com",
        "can_reject": False,
        "obstacles": ["few_days", "few_messages"],
        "messages": 4,
        "passed": 3,
        "days": [{"date": "2027-01-15", "messages": 4, "passed": 3}],
        "reporters": [{"domain": "mail.example", "messages": 4, "passed": 3}],
        "sources": [
            {"network": "192.0.2.0/24", "is_own": False, "is_dismissed": False, "messages": 3, "passed": 3, "days": 1},
            {"network": "203.0.113.0/24", "is_own": False, "is_dismissed": True, "messages": 1, "passed": 0, "days": 1},
        ],
        "tls": [{"reporter": "mail.example", "policy": "sts", "failure": "certificate-expired", "sessions": 2}],
        "unauthenticated_messages": 4,
        "unreadable_reports": 0,
    }


async def test_a_host_for_links_is_set_when_dns_leads_here_and_removed_with_null(
    mine: AccountClients, theirs: AccountClients, server: dns_server.DnsServer
) -> None:
    domain = await register(mine)
    path, wanted = f"/v1/domains/{domain['id']}", {"link_host": "links.example.com"}
    refused = await mine.owner.patch(path, json=wanted)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "publish 'links.example.com. CNAME mail.example.net.'" in refused.json()["error"]
    server.zones["links.example.com"] = {"CNAME": ["mail.example.net."]}
    changed = await mine.owner.patch(path, json=wanted)
    assert changed.status_code == 200, changed.text
    assert changed.json()["domain"] == domain | wanted
    assert (await mine.reader.get(path)).json()["domain"]["link_host"] == "links.example.com"
    assert (await theirs.owner.patch(path, json={"link_host": None})).status_code == 404
    assert (await mine.reader.patch(path, json={"link_host": None})).status_code == 403
    for body in ({}, {"link_host": "links.example.org"}, {"link_host": ""}, {"link_host": 1}):
        assert (await mine.owner.patch(path, json=body)).status_code == 400
    assert (await mine.reader.get(path)).json()["domain"]["link_host"] == "links.example.com"
    assert (await mine.owner.patch(path, json={"link_host": None})).json()["domain"] == domain
