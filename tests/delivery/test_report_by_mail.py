"""A TLS report from the count to the mailbox: a domain whose TLS fails is told so, and the report is not counted."""

import email
import functools
import gzip
import json
import ssl

import pytest
import structlog
import trustme

from postroad.network.http import https_get
from postroad.services.operations import tls_reports
from tests import contexts, dns_server, https_server, smtp_peers
from tests.delivery import engine_harness, parts
from tests.storage import samples

DOMAIN = "example.net"
HOST = engine_harness.HOST
POLICY = f"version: STSv1\nmode: enforce\nmx: {HOST}\nmax_age: 604800\n".encode()
DAY_SECONDS = 86_400


def certificate() -> ssl.SSLContext:
    """A certificate of an authority that nobody knows."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert(HOST).configure_cert(made)
    return made


async def test_a_domain_whose_certificate_fails_its_own_policy_is_told_by_mail(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    zones: dns_server.Zones = {
        **engine_harness.zones_of({HOST: "127.0.0.1"}),
        f"_mta-sts.{DOMAIN}": {"TXT": ['"v=STSv1; id=1"']},
        f"mta-sts.{DOMAIN}": {"A": ["127.0.0.1"]},
        f"_smtp._tls.{DOMAIN}": {"TXT": ['"v=TLSRPTv1; rua=mailto:reports@example.net"']},
    }
    monkeypatch.setattr(tls_reports, "TRY_SECONDS", 10.0)
    monkeypatch.setattr(tls_reports, "QUERY_SECONDS", 30.0)
    clock = contexts.Clock()
    clock.now = 20_834 * DAY_SECONDS * contexts.SECOND
    async with https_server.running(f"mta-sts.{DOMAIN}") as policies, smtp_peers.serving(tls=certificate()) as peer:
        policies.answer = https_server.response(POLICY)
        monkeypatch.setattr(
            https_get, "Client", functools.partial(https_get.Client, policies.context, port=policies.port)
        )
        async with engine_harness.running_engine(
            url,
            port=peer.port,
            zones=zones,
            clock=clock,
            tls_reports={"from": "tls-reports@example.com"},
            mta_sts=True,
            sign=True,
            retry_seconds=[10 * DAY_SECONDS],
        ) as harness:
            seen = await harness.settle(await harness.send())
            assert seen.standing == ("deferred", 1, None)
            await harness.engine._tls_results.flush()
            harness.pass_seconds(DAY_SECONDS + 5 * 3600)
            log = structlog.wrap_logger(None, processors=[structlog.testing.LogCapture()])
            assert await tls_reports.Reporter(harness.ctx, log).report_due() == 1

            async def has_arrived() -> bool:
                return len(peer.transactions) == 1

            await parts.until(has_arrived)
            # The session that brought the report is not counted: reports are not reported.
            await harness.engine._tls_results.flush()
            assert await samples.count(harness.ctx.store, "tls_results") == 0
    message = email.message_from_bytes(peer.transactions[0].content)
    assert peer.transactions[0].recipients == ["RCPT TO:<reports@example.net>"]
    assert "d=example.com" in message["DKIM-Signature"]
    (part,) = (part for part in message.walk() if part.get_content_type() == "application/tlsrpt+gzip")
    (policy,) = json.loads(gzip.decompress(bytes(part.get_payload(decode=True))))["policies"]
    assert policy["policy"]["policy-type"] == "sts"
    assert policy["summary"] == {"total-successful-session-count": 0, "total-failure-session-count": 1}
    assert policy["failure-details"] == [
        {
            "result-type": "certificate-not-trusted",
            "sending-mta-ip": "127.0.0.1",
            "receiving-mx-hostname": HOST,
            "receiving-ip": "127.0.0.1",
            "failed-session-count": 1,
        }
    ]
