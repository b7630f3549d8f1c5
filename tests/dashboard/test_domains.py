"""The pages of sender domains: the list, the records with what DNS says of them, the calendar of the warm-up."""

import re
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.dashboard.settings import domains as pages
from postroad.mail.signing import domain_keys
from postroad.model.domains import domain_records, warmup
from postroad.model.reports import dmarc_rows
from postroad.model.units import times
from postroad.protocol.reports import dmarc_report
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.domains import key_rotation
from postroad.storage.mail import domains as stored_checks
from postroad.storage.mail import received_reports
from tests import contexts, dns_server
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser
from tests.services import domain_zones

NONE = dmarc_report.Disposition.NONE


@pytest_asyncio.fixture
async def server() -> AsyncIterator[dns_server.DnsServer]:
    async with dns_server.running({}) as running:
        yield running


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    """An installation with a name server of its own, and with warm-up."""
    return domain_zones.settings(database_url, server)


async def add(ctx: context.Context, browser: Browser, name: str = "example.com") -> stored_checks.Domain:
    """A domain as the form registers it."""
    added = await browser.post("/domains", {"name": name})
    assert added.status_code == 303, added.text
    return await domains.by_name(ctx, browser.account_id, name)


async def test_an_empty_page_teaches_and_offers_the_form(browser: Browser, reader: Browser) -> None:
    page = await browser.get("/domains")
    assert page.status_code == 200
    assert "No domains yet" in page.text
    assert 'action="/domains"' in page.text
    looked = await reader.get("/domains")
    assert 'action="/domains"' not in looked.text
    assert "ask a developer, an admin or an owner" in looked.text


async def test_the_form_registers_a_domain_and_leads_to_its_records(ctx: context.Context, browser: Browser) -> None:
    added = await browser.post("/domains", {"name": "Bücher.example"})
    domain = await domains.by_name(ctx, browser.account_id, "bücher.example")
    assert browser_client.location_of(added) == f"/domains/{domain.id}"
    page = (await browser.follow(added)).text
    assert "xn--bcher-kva.example added. Now add its DNS records." in page
    key = await domain_keys.record(ctx, domain)
    assert f'data-copy="{key.name}"' in page
    assert f'data-copy="{key.value}"' in page
    assert 'data-copy="v=spf1 include:spf.example.net ~all"' in page
    assert 'data-copy="10 mail.example.net"' in page
    assert 'data-copy="v=DMARC1; p=none; rua=mailto:reports@bounces.xn--bcher-kva.example"' in page
    assert "status-unverified" in page
    assert page.count("status-pending") == 5


async def test_a_domain_without_a_key_gets_one_with_a_check_and_not_with_a_view(
    ctx: context.Context, browser: Browser, settings: config.Settings
) -> None:
    domain = await domains.add(ctx, browser.account_id, "example.com", verified=False)
    before = await sample_account.dump(settings.database.url)
    for path in ("/domains", f"/domains/{domain.id}"):
        assert (await browser.get(path)).status_code == 200
    page = (await browser.get(f"/domains/{domain.id}")).text
    assert "This domain has no DKIM key yet." in page
    assert "_domainkey" not in page
    assert await sample_account.dump(settings.database.url) == before
    checked = (await browser.follow(await browser.post(f"/domains/{domain.id}/check"))).text
    assert "This domain has no DKIM key yet." not in checked
    assert f'data-copy="{(await domain_keys.record(ctx, domain)).name}"' in checked


async def test_the_list_shows_how_each_domain_stands(
    ctx: context.Context, clock: contexts.Clock, browser: Browser, server: dns_server.DnsServer
) -> None:
    proven = await add(ctx, browser)
    await domain_zones.publish_all(ctx, server, proven)
    await browser.post(f"/domains/{proven.id}/check")
    clock.pass_seconds(1)
    other = await add(ctx, browser, "example.org")
    today = times.day_of(ctx.clock())
    async with ctx.store.transaction() as tx:
        await stored_checks.put_warmups(tx, {(browser.account_id, proven.name): warmup.State(today, 1, 150)})
    page = (await browser.get("/domains")).text
    first, second = page.partition(f'href="/domains/{other.id}"')[::2]
    assert "status-verified" in first
    assert "4 of 4 correct" in first
    assert "150 of 400" in first
    assert "status-unverified" in second
    assert "not checked yet" in second
    assert "0 of 200" in second


async def test_a_check_proves_the_domain_and_says_so(
    ctx: context.Context, browser: Browser, server: dns_server.DnsServer
) -> None:
    domain = await add(ctx, browser)
    await domain_zones.publish_all(ctx, server, domain)
    checked = await browser.post(f"/domains/{domain.id}/check")
    assert browser_client.notice_of(checked) == "example.com is verified. You can send from it."
    page = (await browser.follow(checked)).text
    assert page.count("status-ok") == 4
    assert "4 of 4 required and recommended records are correct" in page
    assert "Key found." in page
    assert (await domains.find(ctx, browser.account_id, domain.id)).verified_by == stored_checks.DNS


async def test_a_check_shows_what_was_found_and_what_to_do(
    ctx: context.Context, browser: Browser, server: dns_server.DnsServer
) -> None:
    server.zones["bounces.example.com"] = {
        "TXT": ['"v=spf1 include:_spf.example.org ~all"'],
        "MX": ["10 mx.example.org."],
    }
    server.zones["_spf.example.org"] = {"TXT": ['"v=spf1 ip4:192.0.2.0/24 ~all"']}
    server.zones["_dmarc.example.com"] = {"TXT": ['"v=DMARC1; p=<script>alert(1)</script>"']}
    domain = await add(ctx, browser)
    checked = await browser.post(f"/domains/{domain.id}/check")
    assert browser_client.notice_of(checked) == "DNS checked: 0 of 4 required and recommended records are correct."
    page = (await browser.follow(checked)).text
    assert "No TXT record with this name; add it." in page
    assert "Found mx.example.org, which is not this service; replace it" in page
    assert 'data-copy="v=spf1 include:_spf.example.org include:spf.example.net ~all"' in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page


async def test_a_domain_whose_key_is_gone_is_called_failing_and_then_unverified(
    ctx: context.Context, clock: contexts.Clock, browser: Browser, server: dns_server.DnsServer
) -> None:
    domain = await add(ctx, browser)
    name = await domain_zones.publish_all(ctx, server, domain)
    await browser.post(f"/domains/{domain.id}/check")
    del server.zones[name]
    clock.pass_seconds(60)
    page = (await browser.follow(await browser.post(f"/domains/{domain.id}/check"))).text
    assert "status-failing" in page
    assert "can send for 72 hours" in page
    current = await domains.find(ctx, browser.account_id, domain.id)
    assert current.failing_since is not None
    assert await domains.unverify(ctx, browser.account_id, domain.id, failing_before=ctx.clock())
    assert "No longer verified:" in (await browser.get(f"/domains/{domain.id}")).text


async def test_a_check_that_takes_the_proof_back_says_so(
    ctx: context.Context, clock: contexts.Clock, browser: Browser, server: dns_server.DnsServer
) -> None:
    domain = await add(ctx, browser)
    name = await domain_zones.publish_all(ctx, server, domain)
    await browser.post(f"/domains/{domain.id}/check")
    del server.zones[name]
    clock.pass_seconds(60)
    await browser.post(f"/domains/{domain.id}/check")
    # The session ends before the grace period does.
    seen = await domains.find(ctx, browser.account_id, domain.id)
    long_ago = ctx.clock() - domain_records.GRACE_PERIOD - times.HOUR
    async with ctx.store.transaction() as tx:
        await stored_checks.record_check(
            tx, browser.account_id, domain.id, check_at=seen.check_at, failing_since=long_ago, return_path_domain=""
        )
    clock.pass_seconds(60)
    checked = await browser.post(f"/domains/{domain.id}/check")
    assert browser_client.notice_of(checked).startswith("example.com is no longer verified")


async def test_the_calendar_shows_the_days_done_today_and_ahead(ctx: context.Context, browser: Browser) -> None:
    domain = await add(ctx, browser)
    today = times.day_of(ctx.clock())
    async with ctx.store.transaction() as tx:
        await stored_checks.put_warmups(tx, {(browser.account_id, domain.name): warmup.State(today, 1, 150)})
    page = (await browser.get(f"/domains/{domain.id}")).text
    assert "<strong>150 of 400</strong> recipients today" in page
    assert '<meter min="0" max="400" value="150"' in page
    steps = len(ctx.settings.warmup.recipients_per_day)
    assert (page.count("day-done"), page.count("day-today"), page.count("day-ahead")) == (1, 1, steps - 2)
    assert pages.date_of(today + 1) in page
    async with ctx.store.transaction() as tx:
        await stored_checks.put_warmups(tx, {(browser.account_id, domain.name): warmup.State(today, steps, 5)})
    assert "no daily limit" in (await browser.get(f"/domains/{domain.id}")).text
    assert "no limit" in (await browser.get("/domains")).text
    await domains.set_warm(ctx, browser.account_id, domain.id, warm=True)
    assert "marked this domain as established" in (await browser.get(f"/domains/{domain.id}")).text


def test_a_day_is_written_as_people_write_it() -> None:
    assert (pages.date_of(0), pages.date_of(31)) == ("Jan 1", "Feb 1")


def test_every_purpose_has_its_meaning() -> None:
    assert set(pages.RECORD_GUIDES) == set(domain_records.RecordPurpose)


class TestReturnPathsOfTheOperator:
    """Where return paths have a domain of the operator, two records are theirs."""

    @pytest.fixture
    def settings(self, database_url: str, server: dns_server.DnsServer) -> config.Settings:
        usual = domain_zones.settings(database_url, server)
        delivery = msgspec.structs.replace(usual.delivery, return_path_domain="bounces.example.net")
        return msgspec.structs.replace(usual, delivery=delivery)

    async def test_they_are_shown_and_not_counted(self, ctx: context.Context, browser: Browser) -> None:
        domain = await add(ctx, browser)
        page = (await browser.get(f"/domains/{domain.id}")).text
        assert page.count("Managed by the operator") == 2
        assert "Not checked yet." in page
        assert "records are correct" not in page
        checked = await browser.post(f"/domains/{domain.id}/check")
        assert "0 of 2 required and recommended records are correct" in (await browser.follow(checked)).text


async def test_a_key_is_rotated_and_the_page_leads_through_it(
    ctx: context.Context, browser: Browser, server: dns_server.DnsServer, clock: contexts.Clock
) -> None:
    domain = await add(ctx, browser)
    await domain_zones.publish_all(ctx, server, domain)
    await browser.post(f"/domains/{domain.id}/check")
    assert "must then stay published for 7 days" in (await browser.get(f"/domains/{domain.id}")).text
    begun = await browser.post(f"/domains/{domain.id}/rotate-key")
    assert browser_client.notice_of(begun).startswith("New DKIM key created. Add its record, then check")
    page = (await browser.follow(begun)).text
    assert "DKIM, next key" in page
    assert "Create new key" not in page
    await domain_zones.publish_keys(ctx, server, domain, domain_records.RecordPurpose.DKIM_NEXT)
    clock.pass_seconds(10)
    page = (await browser.follow(await browser.post(f"/domains/{domain.id}/check"))).text
    assert 'Needed until <time datetime="2027-01-22T08:00:10.000Z"' in page
    assert "keep the record until 2027" not in page
    assert page.count(">Optional<") == 1  # the second signature; the old key is not
    assert "Create new key" not in page
    assert (await browser.post(f"/domains/{domain.id}/rotate-key")).status_code == 409


class TestKeysInTheZoneOfTheOperator:
    @pytest.fixture
    def settings(self, database_url: str, server: dns_server.DnsServer) -> config.Settings:
        usual = domain_zones.settings(database_url, server)
        zoned = msgspec.structs.replace(usual.domains, key_zone="dkim.example.net")
        return msgspec.structs.replace(usual, domains=zoned)

    async def test_no_new_key_is_offered_while_the_old_one_is_needed(
        self, ctx: context.Context, browser: Browser, server: dns_server.DnsServer, clock: contexts.Clock
    ) -> None:
        domain = await add(ctx, browser)
        for record in await domain_keys.records(ctx, domain):
            server.zones[record.name] = {"CNAME": [f"{record.value}."]}
        await browser.post(f"/domains/{domain.id}/rotate-key")
        for key in await key_rotation.zone_records(ctx):
            half = len(key.value) // 2
            server.zones[key.name] = {"TXT": [f'"{key.value[:half]}" "{key.value[half:]}"']}
        clock.pass_seconds(10)
        page = (await browser.follow(await browser.post(f"/domains/{domain.id}/check"))).text
        assert "Create new key" not in page
        assert 'Needed until <time datetime="2027-01-22T08:00:10.000Z"' in page
        assert "Keep the record afterwards: the next key uses it." in page
        clock.pass_seconds(7 * 24 * 3600)
        assert not pages.is_rotating(await domain_checks.records(ctx, domain))


async def test_a_domain_is_removed(ctx: context.Context, browser: Browser) -> None:
    domain = await add(ctx, browser)
    assert 'name="question" value="Remove example.com? ' in (await browser.get(f"/domains/{domain.id}")).text
    # Without scripts the question comes with the form, and has a page of its own.
    question = {"question": "Remove example.com? Its DKIM key is deleted.", "verb": "Remove example.com"}
    asked = await browser.post(f"/domains/{domain.id}/remove", question)
    assert "<h1>Remove example.com?</h1>" in asked.text
    assert "<p>Its DKIM key is deleted.</p>" in asked.text
    assert '<button type="submit" class="danger">Remove example.com</button>' in asked.text
    assert (await domains.find(ctx, browser.account_id, domain.id)).name == "example.com"
    removed = await browser.post(f"/domains/{domain.id}/remove")
    assert browser_client.location_of(removed) == "/domains"
    assert "example.com removed." in (await browser.follow(removed)).text
    with pytest.raises(errors.NotFound):
        await domains.find(ctx, browser.account_id, domain.id)
    assert (await browser.get(f"/domains/{domain.id}")).status_code == 404


async def test_a_domain_that_the_operator_verified_is_shown_so(ctx: context.Context, browser: Browser) -> None:
    domain = await domains.add(ctx, browser.account_id, "example.com", verified=True)
    listed = (await browser.get("/domains")).text
    assert "verified without DNS" in listed
    assert "not checked yet" not in listed
    assert "The operator verified this domain" in (await browser.get(f"/domains/{domain.id}")).text


async def test_what_was_found_is_shown_if_there_are_words_for_it(ctx: context.Context, browser: Browser) -> None:
    domain = await add(ctx, browser)
    pages_seen = []
    for detail in ("", "key found"):
        check = stored_checks.Check(browser.account_id, domain.id, "dkim", "ok", detail, "", ctx.clock())
        async with ctx.store.transaction() as tx:
            await stored_checks.put_checks(tx, [check])
        pages_seen.append((await browser.get(f"/domains/{domain.id}")).text)
    assert [page.count("Key found.") for page in pages_seen] == [0, 1]
    assert '<span class="status status-ok">ok</span></td>' in pages_seen[0]


async def test_where_no_verification_is_required_the_page_says_so(ctx: context.Context, browser: Browser) -> None:
    domain = await add(ctx, browser)
    said = "You can send from it in the meantime: this installation does not require verification."
    assert said not in (await browser.get(f"/domains/{domain.id}")).text
    lax = msgspec.structs.replace(ctx.settings.domains, require_verified=False)
    msgspec.structs.force_setattr(ctx.settings, "domains", lax)
    assert said in (await browser.get(f"/domains/{domain.id}")).text


async def test_the_records_can_be_taken_along_as_a_zone_file_or_a_mail(ctx: context.Context, browser: Browser) -> None:
    domain = await add(ctx, browser)
    saved = await browser.get(f"/domains/{domain.id}/zone")
    assert saved.headers["content-disposition"] == 'attachment; filename="example.com.zone"'
    lines = saved.text.splitlines()
    assert lines[0] == "; Records of example.com"
    key = next(line for line in lines if "._domainkey.example.com. IN TXT ( " in line and "k=rsa" in line)
    # An RSA key is longer than one string of a record may be.
    assert len(re.findall(r'"[^"]{1,255}"', key)) == 2
    assert 'bounces.example.com. IN TXT ( "v=spf1 include:spf.example.net ~all" )' in lines
    assert "bounces.example.com. IN MX 10 mail.example.net." in lines
    assert '_dmarc.example.com. IN TXT ( "v=DMARC1; p=none; rua=mailto:reports@bounces.example.com" )' in lines
    page = (await browser.get(f"/domains/{domain.id}")).text
    assert 'href="mailto:?subject=DNS%20records%20for%20example.com&amp;body=Please%20add' in page
    assert "<strong>bounces</strong><wbr><span" in page


# What receivers report.


async def report(
    ctx: context.Context, domain: stored_checks.Domain, *, days: int = 25, forged: str = "203.0.113.0/24"
) -> None:
    """Reports about as many days: this service sends, another service does, and somebody forges."""
    today = times.day_of(ctx.clock())
    sent = (("198.51.100.7", True, 90), ("192.0.2.9", True, 10), (forged, False, 2))
    rows = {
        dmarc_rows.Key(
            today - day, domain.name, "mail.example", source, domain.name, NONE, dkim=passes, spf=False
        ): count
        for day in range(days)
        for source, passes, count in sent
    }
    async with ctx.store.transaction() as tx:
        await received_reports.add_dmarc(tx, domain.account_id, rows, is_authenticated=True)


async def test_without_reports_the_page_shows_the_records_that_ask_for_them(
    ctx: context.Context, browser: Browser
) -> None:
    domain = await add(ctx, browser)
    page = (await browser.get(f"/domains/{domain.id}/reports")).text
    assert "No DMARC reports yet" in page
    assert 'data-copy="v=DMARC1; p=none; rua=mailto:reports@bounces.example.com"' in page
    assert 'data-copy="_smtp._tls.example.com"' in page
    assert 'data-copy="v=TLSRPTv1; rua=mailto:reports@bounces.example.com"' in page
    assert f'<a href="/domains/{domain.id}/reports">Reports</a>' in (await browser.get(f"/domains/{domain.id}")).text


async def test_the_verdict_says_what_stands_in_the_way_until_its_owner_dismisses_it(
    ctx: context.Context, browser: Browser, server: dns_server.DnsServer
) -> None:
    server.zones["mail.example.net"] = {"A": ["198.51.100.20"]}
    domain = await add(ctx, browser)
    await report(ctx, domain)
    path = f"/domains/{domain.id}/reports"
    page = (await browser.get(path)).text
    assert "Not ready for p=reject yet" in page
    assert "<code>203.0.113.0/24</code> sent 50 messages that failed: nothing from it passes." in page
    assert re.search(r"198\.51\.100\.0/24.*?This service", page, re.DOTALL)
    assert "2,550</strong> messages, <strong>98.0%</strong> of them passed" in page
    dismissed = await browser.post(f"{path}/dismiss", {"network": "203.0.113.0/24"})
    assert browser_client.notice_of(dismissed) == "203.0.113.0/24 no longer counts."
    page = (await browser.get(path)).text
    assert "You can move to p=reject" in page
    assert "change <code>p=none</code> to <code>p=reject</code>" in page
    restored = await browser.post(f"{path}/restore", {"network": "203.0.113.0/24"})
    assert browser_client.notice_of(restored) == "203.0.113.0/24 counts again."
    assert "Not ready for p=reject yet" in (await browser.get(path)).text


async def test_few_reports_are_no_verdict(ctx: context.Context, browser: Browser) -> None:
    domain = await add(ctx, browser)
    await report(ctx, domain, days=3)
    page = (await browser.get(f"/domains/{domain.id}/reports")).text
    assert "The reports are about 3 of the last 30 days. Wait until they are about 21." in page
    assert "They count 300 messages that passed. Wait until there are 500." in page


async def test_what_is_not_a_network_is_not_dismissed(ctx: context.Context, browser: Browser, reader: Browser) -> None:
    domain = await add(ctx, browser)
    path = f"/domains/{domain.id}/reports/dismiss"
    assert (await browser.post(path, {"network": "<script>"})).status_code == 400
    assert (await reader.post(path, {"network": "203.0.113.0/24"})).status_code == 403


async def test_tls_reports_and_what_does_not_count_are_shown(ctx: context.Context, browser: Browser) -> None:
    domain = await add(ctx, browser)
    today = times.day_of(ctx.clock())
    rows = [
        received_reports.TlsRow("mail.example", "sts", "", 40),
        received_reports.TlsRow("mail.example", "sts", "certificate-expired", 2),
    ]
    forged = {dmarc_rows.Key(today, domain.name, "", "192.0.2.1", domain.name, NONE, dkim=True, spf=True): 7}
    arrival = received_reports.Arrival(
        domain.account_id, domain.name, "x", today, "192.0.2.0/24", "", is_authenticated=False, result="unreadable"
    )
    async with ctx.store.transaction() as tx:
        await received_reports.add_tls(tx, domain.account_id, domain.name, today, rows)
        await received_reports.add_dmarc(tx, domain.account_id, forged, is_authenticated=False)
        await received_reports.add(tx, arrival)
    page = (await browser.get(f"/domains/{domain.id}/reports")).text
    assert "No DMARC reports that count yet" in page
    assert "<code>certificate-expired</code>" in page
    assert "Reports about 7 messages do not count, because neither DMARC nor DKIM authenticates the reports." in page
    assert "1 report could not be read." in page


async def test_the_form_for_the_host_of_links_says_which_record_to_publish(
    ctx: context.Context, browser: Browser, reader: Browser, server: dns_server.DnsServer
) -> None:
    domain = await add(ctx, browser)
    path = f"/domains/{domain.id}/link-host"
    refused = await browser.post(path, {"link_host": "links.example.com"})
    assert refused.status_code == 409
    assert "CNAME mail.example.net." in refused.text
    server.zones["links.example.com"] = {"CNAME": ["mail.example.net."]}
    saved = await browser.post(path, {"link_host": "Links.example.com"})
    assert browser_client.notice_of(saved) == "Unsubscribe links now lead to links.example.com."
    assert 'value="links.example.com"' in (await browser.follow(saved)).text
    removed = await browser.post(path, {"link_host": ""})
    assert browser_client.notice_of(removed) == "Unsubscribe links now lead to this service."
    assert (await domains.find(ctx, browser.account_id, domain.id)).link_host is None
    assert path not in (await reader.get(f"/domains/{domain.id}")).text
