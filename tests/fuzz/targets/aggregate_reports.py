"""Aggregate reports of others, packed or not, and in mail: any octets.

Holds: nothing but a ReportError is raised, and it may be shown; what is read is within its bounds, on one line, and
becomes daily rows that count every message of the domain, and a verdict.
"""

import gzip
import json
from typing import Final

from postroad.model.reports import dmarc_readiness, dmarc_rows
from postroad.protocol.reports import aggregate_reports, dmarc_report, report_files, tls_report
from tests.fuzz import target
from tests.fuzz.targets.reports import check_text
from tests.protocol.reports import sample_reports

_TLS: Final = {
    "organization-name": "Company-X",
    "date-range": {"start-datetime": "2026-01-01T00:00:00Z", "end-datetime": "2026-01-01T23:59:59Z"},
    "contact-info": "tls@company-x.example",
    "report-id": "1@company-x.example",
    "policies": [
        {
            "policy": {"policy-type": "sts", "policy-string": ["version: STSv1"], "policy-domain": "example.com"},
            "summary": {"total-successful-session-count": 5, "total-failure-session-count": 3},
            "failure-details": [
                {"result-type": "certificate-expired", "receiving-ip": "192.0.2.1", "failed-session-count": 2}
            ],
        }
    ],
}


def check(data: bytes) -> None:
    for read in (aggregate_reports.read_file, aggregate_reports.read):
        try:
            report = read(data)
        except report_files.ReportError as refused:
            if not target.is_sayable(str(refused), most=100):
                raise
            continue
        if isinstance(report, dmarc_report.Report):
            _check_dmarc(report)
        else:
            _check_tls(report)


def _check_dmarc(report: dmarc_report.Report) -> None:
    assert 0 < len(report.rows) <= dmarc_report.MAX_ROWS
    _check_head(report)
    for row in report.rows:
        assert 0 < row.count <= dmarc_report.MAX_COUNT
        for text in (row.source, row.header_from, row.envelope_from, row.envelope_to, row.spf_domain, *row.signers):
            assert text.isascii()
            check_text(text, most=253)
    rows = dmarc_rows.rows_of(report, reporter="mail.example")
    assert len(rows) <= dmarc_rows.MAX_ROWS + 12
    assert sum(rows.values()) <= sum(row.count for row in report.rows)
    sources = [row.source for row in report.rows[:3]]
    verdict = dmarc_readiness.judge(rows, today=report.end // 86_400, own_addresses=sources)
    assert not verdict.can_reject


def _check_tls(report: tls_report.ReceivedReport) -> None:
    _check_head(report)
    for result, count in report.sessions.items():
        assert count > 0
        for text in (result.policy.domain, result.mx_host, result.sending_address, result.receiving_address):
            check_text(text, most=tls_report.TEXT_CHARACTERS)


def _check_head(report: dmarc_report.Report | tls_report.ReceivedReport) -> None:
    assert report.organization
    assert report.id
    assert 0 <= report.end - report.begin <= 31 * 86_400
    for text in (report.organization, report.contact, report.id):
        check_text(text, most=255)


def _seeds() -> tuple[bytes, ...]:
    records = [
        sample_reports.Record("192.0.2.1", 2, dkim=True, spf=False),
        sample_reports.Record("2001:db8::1", 1, dkim=False, spf=False),
    ]
    mails = [write(20_454, records) for _, write in sample_reports.RECEIVERS]
    files = [attachment for mail in mails for attachment in report_files.attachments(mail)]
    plain = [b"".join(report_files.unpack(file)) for file in files]
    tls = json.dumps(_TLS).encode()
    return (*plain, *files, mails[0], plain[0].decode().encode("utf-16"), tls, gzip.compress(tls, mtime=0))


TARGET: Final = target.Target(
    name="aggregate_report",
    open=target.plain(check),
    watches=(
        "protocol/reports/aggregate_reports.py",
        "protocol/reports/dmarc_report.py",
        "protocol/reports/report_files.py",
        "protocol/reports/tls_report.py",
        "model/reports/",
    ),
    seeds=_seeds(),
    max_octets=6_000,
    # A packed octet can be many others.
    steps=(40_000, 500),
)
