"""TLS reports are written as RFC 8460 says."""

import email
import gzip
import json

from postroad.protocol.reports import tls_report

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
