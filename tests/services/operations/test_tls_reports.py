"""Reports reach the domains that ask for them, once, over HTTPS and by mail, and nobody else."""

import asyncio
import contextlib
import dataclasses
import email
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from postroad import config, context
from postroad.protocol.reports import tls_report
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.operations import operator_jobs
from postroad.services.operations import tls_reports as tls_reporter
from postroad.storage.mail import messages, queue, tls_policies
from tests import accepted_mail, contexts, dns_server, webhook_server
from tests.storage import samples

DAY = 20_834
HOUR = 3600
MIDNIGHT = (DAY + 1) * 86_400 * contexts.SECOND
DOMAIN = "example.net"
RECORD = f"_smtp._tls.{DOMAIN}"
SUCCESS = tls_report.Result(tls_report.Policy(tls_report.PolicyType.NONE, DOMAIN))
REPORT = {
    "organization-name": "example.com",
    "date-range": {"start-datetime": "2027-01-16T00:00:00Z", "end-datetime": "2027-01-16T23:59:59Z"},
    "contact-info": "tls-reports@example.com",
    "report-id": "2027-01-16.example.net@example.com",
    "policies": [
        {
            "policy": {"policy-type": "no-policy-found", "policy-domain": "example.net"},
            "summary": {"total-successful-session-count": 3, "total-failure-session-count": 0},
        }
    ],
}


@dataclasses.dataclass
class Host:
    """A host of the installation, with its log; `dns` and the clock are those of all hosts."""

    ctx: context.Context
    reporter: tls_reporter.Reporter
    log: list[Any]
    dns: dns_server.DnsServer
    clock: contexts.Clock
    settings: config.Settings

    def publish(self, *uris: str) -> None:
        self.dns.zones[RECORD] = {"TXT": [f'"v=TLSRPTv1; rua={",".join(uris)}"']}

    async def count(self, domain: str = DOMAIN, sessions: int = 3) -> None:
        async with self.ctx.store.transaction() as tx:
            await tls_policies.add_sessions(
                tx, DAY, {domain: {SUCCESS: sessions}}, due_at={domain: MIDNIGHT + contexts.SECOND}
            )

    async def left(self) -> tuple[int, int]:
        store = self.ctx.store
        return await samples.count(store, "tls_reports"), await samples.count(store, "tls_results")

    async def queued(self) -> list[bytes]:
        """The contents of all messages."""
        async with self.ctx.store.scanning() as tx:
            keys = await queue.queue_keys(tx, after="", limit=1000)
            ids = await tx.fetch("test.messages")
            assert len(keys) <= len(ids)
            found = [await messages.body(tx, row[0], row[1]) for row in ids]
        return [body for body in found if body is not None]


@contextlib.asynccontextmanager
async def another(host: Host) -> AsyncIterator[Host]:
    """A second host on the same store."""
    async with composition.open_context(host.settings, clock=host.clock) as ctx:
        yield make(ctx, host.dns, host.clock)


def make(ctx: context.Context, dns: dns_server.DnsServer, clock: contexts.Clock) -> Host:
    heard = structlog.testing.LogCapture()
    log = structlog.wrap_logger(None, processors=[heard], wrapper_class=structlog.make_filtering_bound_logger("info"))
    samples.teach(ctx.store, messages="SELECT account_id, id FROM messages ORDER BY id")
    return Host(ctx, tls_reporter.Reporter(ctx, log), heard.entries, dns, clock, ctx.settings)


@pytest.fixture
async def endpoint() -> AsyncIterator[webhook_server.WebhookServer]:
    async with webhook_server.running(host=webhook_server.PUBLIC) as running:
        running.answer = webhook_server.ok(201)
        yield running


@pytest.fixture
async def host(database_url: str, clock: contexts.Clock, endpoint: webhook_server.WebhookServer) -> AsyncIterator[Host]:
    clock.now = MIDNIGHT + 2 * contexts.SECOND
    zones: dns_server.Zones = {
        webhook_server.NAME: {"A": [webhook_server.PUBLIC]},
        "private.example.org": {"A": ["127.0.0.1"]},
    }
    async with dns_server.running(zones) as dns:
        settings = contexts.load(
            database_url,
            delivery={"resolvers": [dns.address]},
            webhooks={"allow_private": ["127.0.0.2/31"], "ca_file": endpoint.ca_file},
            tls_reports={"from": "tls-reports@example.com"},
            warmup={"enabled": False},
        )
        async with composition.open_context(settings, clock=clock) as ctx:
            account = await accounts.create(ctx, "Shop")
            await accepted_mail.allow_sending(ctx, account.id)
            yield make(ctx, dns, clock)


async def test_a_report_is_posted_once_to_the_url_of_the_domain(
    host: Host, endpoint: webhook_server.WebhookServer
) -> None:
    host.publish(f"{endpoint.url}?v1")
    await host.count()
    assert await host.reporter.report_due() == 1
    assert await host.reporter.report_due() == 0
    (request,) = endpoint.requests
    assert (request.method, request.path) == ("POST", "/hook?v1")
    assert request.headers["content-type"] == "application/tlsrpt+gzip"
    assert json.loads(gzip.decompress(request.body)) == REPORT
    assert await host.left() == (0, 0)
    assert host.log == [
        {
            "event": "tls_report_sent",
            "log_level": "info",
            "domain": DOMAIN,
            "uri": f"{endpoint.url}?v1",
            "report_id": "2027-01-16.example.net@example.com",
        }
    ]
    assert host.ctx.metrics.tls_reports.values["https", "sent"] == 1


async def test_a_report_is_mail_of_the_account_that_has_verified_the_senders_domain(host: Host) -> None:
    host.publish("mailto:reports@example.net")
    await host.count()
    await host.reporter.report_due()
    (body,) = await host.queued()
    message = email.message_from_bytes(body)
    assert (message["From"], message["To"]) == ("<tls-reports@example.com>", "<reports@example.net>")
    assert (message.get_content_type(), message.get_param("report-type")) == ("multipart/report", "tlsrpt")
    assert message["TLS-Report-Domain"] == DOMAIN
    assert message["TLS-Report-Submitter"] == "example.com"
    assert message["TLS-Required"] == "No"
    assert message["Idempotency-Key"] is None
    part = list(message.walk())[2]
    assert part.get_filename() == "example.com!example.net!1800057600!1800143999.json.gz"
    assert json.loads(gzip.decompress(bytes(part.get_payload(decode=True)))) == REPORT
    assert await host.left() == (0, 0)
    assert (await operator_jobs.check_consistency(host.ctx)).findings == []
    assert host.ctx.metrics.tls_reports.values["mail", "sent"] == 1


async def test_two_hosts_report_once(host: Host, endpoint: webhook_server.WebhookServer) -> None:
    host.publish(endpoint.url, "mailto:reports@example.net")
    await host.count()
    async with another(host) as second:
        assert sorted([await host.reporter.report_due(), await second.reporter.report_due()]) == [0, 1]
        host.clock.pass_seconds(48 * HOUR)
        assert await second.reporter.report_due() == 0
    assert len(endpoint.requests) == len(await host.queued()) == 1


async def test_a_host_that_dies_after_the_mail_leaves_a_report_that_is_mailed_once(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.publish("mailto:reports@example.net")
    await host.count()

    async def die(*_: object, **__: object) -> None:
        raise RuntimeError("the power went out")

    with monkeypatch.context() as patch:
        patch.setattr(tls_reporter.Reporter, "_finish", die)
        await host.reporter.report_due()
    assert await host.left() == (1, 1)
    async with another(host) as second:
        assert await second.reporter.report_due() == 0
        host.clock.pass_seconds(10 * 60)
        assert await second.reporter.report_due() == 1
    assert len(await host.queued()) == 1
    assert await host.left() == (0, 0)


@pytest.mark.parametrize("record", [None, "v=TLSRPTv1; rua=", "v=spf1 -all"])
async def test_a_domain_that_asks_for_none_gets_none(host: Host, record: str | None) -> None:
    if record is not None:
        host.dns.zones[RECORD] = {"TXT": [f'"{record}"']}
    await host.count()
    assert await host.reporter.report_due() == 1
    assert (await host.left(), await host.queued(), host.log) == ((0, 0), [], [])
    assert host.dns.count(RECORD, "TXT") == 1


async def test_a_url_that_fails_is_tried_for_a_day_and_then_dropped(
    host: Host, endpoint: webhook_server.WebhookServer
) -> None:
    endpoint.answer = webhook_server.ok(503)
    host.publish(endpoint.url, "mailto:reports@example.net")
    await host.count()
    for _ in range(30 * 4):
        await host.reporter.report_due()
        host.clock.pass_seconds(HOUR / 4)
    assert len(endpoint.requests) == 7
    assert len({request.body for request in endpoint.requests}) == 1
    assert len(await host.queued()) == 1
    assert await host.left() == (0, 0)
    failures = [entry for entry in host.log if entry["event"] == "tls_report_failed"]
    assert [entry["retries"] for entry in failures] == [True] * 6 + [False]
    assert failures[0]["error"] == "status 503"
    counts = host.ctx.metrics.tls_reports.values
    assert (counts["https", "retried"], counts["https", "failed"], counts["https", "sent"]) == (6, 1, 0)


async def test_a_name_server_that_never_answers_is_asked_three_times(host: Host) -> None:
    host.dns.zones[RECORD] = dns_server.Fault.SERVFAIL
    await host.count()
    for _ in range(8):
        await host.reporter.report_due()
        host.clock.pass_seconds(HOUR)
    assert await host.left() == (0, 0)
    assert host.dns.count(RECORD, "TXT") == 3


async def test_a_slow_receiver_delays_no_other(
    host: Host, endpoint: webhook_server.WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_reporter, "MAX_CONCURRENT_REPORTS", 2)
    names = [f"domain{number}.example" for number in range(5)]
    for name in names:
        await host.count(name)
        host.dns.zones[f"_smtp._tls.{name}"] = {"TXT": [f'"v=TLSRPTv1; rua={endpoint.url}"']}
    others, go_on = asyncio.Event(), asyncio.Event()
    begun: list[str] = []
    send = tls_reporter.Reporter._report

    async def report(self: tls_reporter.Reporter, due: tls_policies.DueReport) -> None:
        begun.append(due.domain)
        if len(begun) == 1:
            await go_on.wait()
        await send(self, due)
        if len(endpoint.requests) == len(names) - 1:
            others.set()

    monkeypatch.setattr(tls_reporter.Reporter, "_report", report)
    sending = asyncio.create_task(host.reporter.report_due())
    async with asyncio.timeout(30):
        await others.wait()
        go_on.set()
        assert await sending == len(names)
    assert sorted(begun) == names


@pytest.mark.parametrize("status, requests", [(404, 1), (408, 2), (429, 2), (500, 2)])
async def test_a_url_that_refuses_a_report_is_not_asked_again(
    host: Host, endpoint: webhook_server.WebhookServer, status: int, requests: int
) -> None:
    endpoint.answer = webhook_server.ok(status)
    host.publish(endpoint.url)
    await host.count()
    for _ in range(2):
        await host.reporter.report_due()
        host.clock.pass_seconds(HOUR / 4)
    assert len(endpoint.requests) == requests
    assert [entry["retries"] for entry in host.log] == [requests > 1] * requests
    assert (await host.left() == (0, 0)) == (requests == 1)


@pytest.mark.parametrize("uri", ["https://private.example.org/", "https://[::1]/"])
async def test_a_report_is_no_way_into_the_network_of_the_operator(host: Host, uri: str) -> None:
    host.publish(uri)
    await host.count()
    await host.reporter.report_due()
    (entry,) = host.log
    assert (entry["event"], entry["error"].partition(":")[0]) == ("tls_report_failed", "blocked_destination")


async def test_many_domains_cannot_flood_one_mailbox_however_written(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_reporter, "MAX_MAILS_PER_MAILBOX", 2)
    for number, written in enumerate(["Victim", "vIctim", "victim+1", "victim+2", "victim"]):
        await host.count(f"domain{number}.example")
        record = f'"v=TLSRPTv1; rua=mailto:{written}@example.org"'
        host.dns.zones[f"_smtp._tls.domain{number}.example"] = {"TXT": [record]}
    await host.reporter.report_due()
    assert len(await host.queued()) == 2
    assert await host.left() == (0, 0)


async def test_many_domains_cannot_flood_one_web_host(
    host: Host, endpoint: webhook_server.WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_reporter, "MAX_POSTS_PER_HOST", 2)
    for number in range(5):
        await host.count(f"domain{number}.example")
        url = endpoint.url.replace(webhook_server.NAME, webhook_server.NAME.upper()) if number % 2 else endpoint.url
        record = f'"v=TLSRPTv1; rua={url}?{number}"'
        host.dns.zones[f"_smtp._tls.domain{number}.example"] = {"TXT": [record]}
    await host.reporter.report_due()
    assert len(endpoint.requests) == 2
    assert await host.left() == (0, 0)
    refusals = [entry["error"] for entry in host.log if entry["event"] == "tls_report_failed"]
    assert refusals == [f"{webhook_server.NAME} was already sent 2 reports of this day"] * 3


async def test_a_sender_that_nobody_has_verified_sends_no_mail_and_the_log_says_so(
    host: Host, endpoint: webhook_server.WebhookServer
) -> None:
    host.publish("mailto:reports@example.net", endpoint.url)
    await host.count()
    strange = contexts.with_settings(host.ctx, "tls_reports", sender="tls-reports@unknown.example")
    other = make(strange, host.dns, host.clock)
    await other.reporter.report_due()
    assert await host.queued() == []
    assert other.log[0]["error"] == "tls_reports.from: unknown.example is not a verified domain of an account"
    (request,) = endpoint.requests
    assert json.loads(gzip.decompress(request.body))["organization-name"] == "unknown.example"
