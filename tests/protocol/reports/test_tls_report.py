"""TLS reports are written as RFC 8460 says, and those of others are read as far as they say it."""

import copy
import email
import gzip
import json
from typing import Any

import pytest

from postroad.protocol.reports import aggregate_reports, report_files, tls_report
from tests.fuzz import target

STS = tls_report.Policy(
    tls_report.PolicyType.STS,
    "company-y.example",
    ("version: STSv1", "mode: testing", "mx: *.mail.company-y.example", "max_age: 86400"),
    ("*.mail.company-y.example",),
)
TLSA = tls_report.Policy(tls_report.PolicyType.TLSA, "mx.company-y.example", ("3 1 1 " + "ab" * 32,))
NONE = tls_report.Policy(tls_report.PolicyType.NONE, "company-y.example")
EXPIRED = tls_report.Result(
    STS,
    tls_report.FailureType.CERTIFICATE_EXPIRED,
    sending_address="2001:db8:abcd:12::1",
    mx_host="mx1.mail.company-y.example",
    receiving_address="198.51.100.62",
)
NO_STARTTLS = tls_report.Result(
    STS, tls_report.FailureType.STARTTLS_NOT_SUPPORTED, mx_host="mx2.mail.company-y.example"
)
# 2016-04-01; the example of appendix B of the RFC, with other policies besides.
REPORT = tls_report.Report(
    organization="Company-X",
    contact="sts-reporting@company-x.example",
    domain="company-y.example",
    day=16_892,
    sessions={
        NO_STARTTLS: 3,
        tls_report.Result(STS): 5326,
        EXPIRED: 100,
        tls_report.Result(TLSA): 7,
        tls_report.Result(NONE): 1,
    },
)
JSON = """
{
  "organization-name": "Company-X",
  "date-range": {"start-datetime": "2016-04-01T00:00:00Z", "end-datetime": "2016-04-01T23:59:59Z"},
  "contact-info": "sts-reporting@company-x.example",
  "report-id": "2016-04-01.company-y.example@company-x.example",
  "policies": [
    {
      "policy": {"policy-type": "no-policy-found", "policy-domain": "company-y.example"},
      "summary": {"total-successful-session-count": 1, "total-failure-session-count": 0}
    },
    {
      "policy": {
        "policy-type": "sts",
        "policy-string": ["version: STSv1", "mode: testing", "mx: *.mail.company-y.example", "max_age: 86400"],
        "policy-domain": "company-y.example",
        "mx-host": ["*.mail.company-y.example"]
      },
      "summary": {"total-successful-session-count": 5326, "total-failure-session-count": 103},
      "failure-details": [
        {
          "result-type": "certificate-expired",
          "sending-mta-ip": "2001:db8:abcd:12::1",
          "receiving-mx-hostname": "mx1.mail.company-y.example",
          "receiving-ip": "198.51.100.62",
          "failed-session-count": 100
        },
        {
          "result-type": "starttls-not-supported",
          "receiving-mx-hostname": "mx2.mail.company-y.example",
          "failed-session-count": 3
        }
      ]
    },
    {
      "policy": {
        "policy-type": "tlsa",
        "policy-string": ["3 1 1 abababababababababababababababababababababababababababababababab"],
        "policy-domain": "mx.company-y.example"
      },
      "summary": {"total-successful-session-count": 7, "total-failure-session-count": 0}
    }
  ]
}
"""


def test_the_report_is_the_json_of_the_rfc() -> None:
    assert list(json.loads(REPORT.json())) == list(json.loads(JSON))
    assert json.loads(REPORT.json()) == json.loads(JSON)


def test_the_same_report_has_the_same_bytes_whatever_the_order_of_its_results() -> None:
    backwards = tls_report.Report(
        REPORT.organization, REPORT.contact, REPORT.domain, REPORT.day, dict(reversed(list(REPORT.sessions.items())))
    )
    assert backwards.content() == REPORT.content()
    assert gzip.decompress(REPORT.content()) == REPORT.json()


def test_the_mail_is_that_of_the_rfc() -> None:
    raw = REPORT.mail("reports@company-y.example", key="a-key")
    assert all(len(line) <= 998 for line in raw.split(b"\r\n"))
    assert b"\n" not in raw.replace(b"\r\n", b"")
    message = email.message_from_bytes(raw)
    assert message["From"] == "<sts-reporting@company-x.example>"
    assert message["To"] == "<reports@company-y.example>"
    assert message["Subject"].replace("\r\n", "") == (
        "Report Domain: company-y.example Submitter: company-x.example "
        "Report-ID: <2016-04-01.company-y.example@company-x.example>"
    )
    assert message["TLS-Report-Domain"] == "company-y.example"
    assert message["TLS-Report-Submitter"] == "company-x.example"
    assert message["TLS-Required"] == "No"
    assert message["Idempotency-Key"] == "a-key"
    assert (message.get_content_type(), message.get_param("report-type")) == ("multipart/report", "tlsrpt")
    text, report = (part for part in message.walk() if not part.is_multipart())
    assert text.get_content_type() == "text/plain"
    assert report.get_content_type() == "application/tlsrpt+gzip"
    assert report.get_content_disposition() == "attachment"
    assert report.get_filename() == "company-x.example!company-y.example!1459468800!1459555199.json.gz"
    assert gzip.decompress(bytes(report.get_payload(decode=True))) == REPORT.json()


# The shape of Google's reports.
RECEIVED: dict[str, Any] = {
    "organization-name": "Google Inc.",
    "date-range": {"start-datetime": "2026-01-01T00:00:00Z", "end-datetime": "2026-01-01T23:59:59Z"},
    "contact-info": "smtp-tls-reporting@google.com",
    "report-id": "2026-01-01T00:00:00Z_example.com",
    "policies": [
        {
            "policy": {
                "policy-type": "sts",
                "policy-string": ["version: STSv1", "mode: enforce"],
                "policy-domain": "Example.com",
                "mx-host": ["mx.example.com"],
            },
            "summary": {"total-successful-session-count": 5, "total-failure-session-count": 10},
            "failure-details": [
                {
                    "result-type": "certificate-expired",
                    "sending-mta-ip": "192.0.2.1",
                    "receiving-mx-hostname": "mx.example.com",
                    "receiving-ip": "198.51.100.1",
                    "failed-session-count": 4,
                },
                {"result-type": "not-yet-known", "failed-session-count": 1},
            ],
        }
    ],
}
POLICY = tls_report.Policy(
    tls_report.PolicyType.STS, "example.com", ("version: STSv1", "mode: enforce"), ("mx.example.com",)
)


def read(report: object) -> tls_report.ReceivedReport:
    found = aggregate_reports.read_file(gzip.compress(json.dumps(report).encode()))
    assert isinstance(found, tls_report.ReceivedReport)
    return found


def changed(path: str, value: object) -> dict[str, Any]:
    """The report with another value."""
    report: Any = copy.deepcopy(RECEIVED)
    inner, names = report, path.split("/")
    for name in names[:-1]:
        inner = inner[int(name) if name.isdigit() else name]
    inner[names[-1]] = value
    return dict(report)


def refusal(content: bytes) -> str:
    with pytest.raises(report_files.ReportError) as refused:
        aggregate_reports.read_file(content)
    assert target.is_sayable(str(refused.value), most=100)
    return str(refused.value)


def test_a_report_of_others_is_read() -> None:
    assert read(RECEIVED) == tls_report.ReceivedReport(
        organization="Google Inc.",
        contact="smtp-tls-reporting@google.com",
        id="2026-01-01T00:00:00Z_example.com",
        begin=1_767_225_600,
        end=1_767_311_999,
        sessions={
            tls_report.Result(POLICY): 5,
            tls_report.Result(
                POLICY,
                tls_report.FailureType.CERTIFICATE_EXPIRED,
                sending_address="192.0.2.1",
                mx_host="mx.example.com",
                receiving_address="198.51.100.1",
            ): 4,
            # One of an unknown type, and five without details.
            tls_report.Result(POLICY, tls_report.FailureType.VALIDATION_FAILURE): 6,
        },
    )


def test_what_others_write_differently_is_read() -> None:
    text = changed("policies/0/policy/mx-host", "mx.example.com")
    text["policies"][0]["summary"] = {"total-successful-session-count": "5", "total-failure-session-count": 10}
    text["contact-info"] = None
    text["date-range"] = {"start-datetime": "2026-01-01T01:00:00+01:00", "end-datetime": "2026-01-01T23:59:59"}
    found = read(text)
    assert (found.sessions, found.begin, found.end) == (read(RECEIVED).sessions, 1_767_225_600, 1_767_311_999)
    assert found.contact == ""
    (result,) = read(
        changed(
            "policies",
            [
                {
                    "policy": {"policy-type": "new", "policy-domain": "a.example."},
                    "summary": {"total-successful-session-count": 1, "total-failure-session-count": 0},
                }
            ],
        )
    ).sessions
    assert result == tls_report.Result(tls_report.Policy(tls_report.PolicyType.NONE, "a.example"))


@pytest.mark.parametrize(
    "path, value, why",
    [
        ("report-id", "", "the report has no report-id of at most 255 characters"),
        ("report-id", "a" * 256, "the report has no report-id of at most 255 characters"),
        ("organization-name", "\u202e", "the report does not say who wrote it"),
        ("date-range/start-datetime", "yesterday", "the report is not about a time of at most 31 days"),
        ("date-range/start-datetime", "2025-12-01T23:59:58Z", "the report is not about a time of at most 31 days"),
        ("date-range/end-datetime", "2025-12-31T00:00:00Z", "the report is not about a time of at most 31 days"),
        ("date-range/start-datetime", "0001-01-01T00:00:00+14:00", "the report is not about a time of at most 31 days"),
        ("policies", [], "the report counts no session"),
        ("policies", {}, "the JSON is not a TLS report"),
        ("policies/0/summary/total-successful-session-count", -1, "a number of sessions is out of range"),
        ("policies/0/summary/total-successful-session-count", 10**12 + 1, "a number of sessions is out of range"),
        ("policies/0/summary", None, "the JSON is not a TLS report"),
        ("policies/0/summary/total-successful-session-count", 10**30, "it is not valid JSON"),
    ],
)
def test_a_report_without_what_it_must_say_is_refused(path: str, value: object, why: str) -> None:
    assert refusal(json.dumps(changed(path, value)).encode()) == why


def test_json_that_is_broken_deep_or_large_is_refused() -> None:
    assert refusal(b"{") == "it is not valid JSON"
    assert refusal(b'{"a":' * 100_000) == "it is not valid JSON"
    assert refusal(gzip.compress(b'{"a":' + b"[]," * 2_000_000)) == "it is not valid JSON"
    assert refusal(gzip.compress(b'{"a":"' + b" " * 8 * 1024 * 1024)) == "the report has more than 8 MiB of JSON"
    assert refusal(gzip.compress(json.dumps(RECEIVED).encode("utf-16"))) == "it is not well-formed XML (line 1)"


def test_texts_and_lists_are_bounded() -> None:
    found = read(changed("policies/0/policy/policy-string", ["x" * 1000 + "\n"] * 1000))
    (policy,) = {result.policy for result in found.sessions}
    assert policy.lines == ("x" * 255,) * 50
