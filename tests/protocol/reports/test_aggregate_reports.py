"""Aggregate reports are found in mail of any form, and read alike whoever wrote them."""

import gzip

import pytest

from postroad.protocol.reports import aggregate_reports, dmarc_report, report_files
from tests.protocol.reports import sample_reports, test_tls_report


def test_a_hundred_reports_of_five_receivers_count_what_they_were_made_of() -> None:
    samples = sample_reports.make(100)
    for sample in samples:
        report = aggregate_reports.read(sample.mail)
        assert isinstance(report, dmarc_report.Report)
        assert (report.organization, report.begin // 86_400) == (sample.organization, sample.day)
        assert (report.policy.domain, report.policy.p, report.invalid_rows) == ("example.com", "none", 0)
        assert [(row.source, row.count, row.dkim, row.spf, row.header_from) for row in report.rows] == [
            (record.source, record.count, record.dkim, record.spf, record.header_from) for record in sample.records
        ]
        assert {row.disposition for row in report.rows} == {"none"}
    assert {sample.organization for sample in samples} == {
        "google.com",
        "Enterprise Outlook",
        "Yahoo",
        "AOL",
        "Example Mail",
    }
    assert len({sample.mail for sample in samples}) == 100


def test_a_tls_report_of_ours_is_read_as_it_was_written() -> None:
    read = aggregate_reports.read(test_tls_report.REPORT.mail("tls@company-y.example", key="1"))
    assert not isinstance(read, dmarc_report.Report)
    assert read.organization == "Company-X"
    assert read.id == "2016-04-01.company-y.example@company-x.example"
    assert (read.begin, read.end) == (1_459_468_800, 1_459_555_199)
    assert read.sessions == test_tls_report.REPORT.sessions


@pytest.mark.parametrize(
    "mail",
    [
        b"",
        b"Subject: hello\r\n\r\nA report is not here.",
        b"Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n\r\ntext\r\n--a--\r\n",
        b"Content-Type: message/rfc822\r\n\r\nContent-Type: application/zip\r\n\r\nPK",
    ],
)
def test_mail_without_a_file_is_no_report(mail: bytes) -> None:
    with pytest.raises(report_files.ReportError, match="no attachment"):
        aggregate_reports.read(mail)


def test_of_several_attachments_the_first_report_counts_and_five_are_not_tried() -> None:
    sample = sample_reports.make(1)[0]
    _, _, report = sample.mail.partition(b"MIME-Version: 1.0\r\n")
    picture = b"--a\r\nContent-Type: image/png\r\n\r\nPNG\r\n"
    begin = b"Content-Type: multipart/mixed; boundary=a\r\n\r\n"
    read = aggregate_reports.read(begin + picture * 3 + b"--a\r\n" + report + b"\r\n--a--\r\n")
    assert read.organization == "google.com"
    with pytest.raises(report_files.ReportError, match="not well-formed XML"):
        aggregate_reports.read(begin + picture * 4 + b"--a\r\n" + report + b"\r\n--a--\r\n")


def test_a_file_for_people_is_read_when_its_name_is_that_of_a_report() -> None:
    xml = gzip.compress(b"unused", mtime=0)
    mail = b"Content-Type: text/plain; name=report.xml.gz\r\n\r\n" + xml
    with pytest.raises(report_files.ReportError, match="not well-formed XML"):
        aggregate_reports.read(mail)
