"""What is kept of a DMARC report: few rows, whatever is in it, that lose no message."""

from collections import Counter

import msgspec

from postroad.model.reports import dmarc_rows
from postroad.protocol.reports import aggregate_reports, dmarc_report
from tests.protocol.reports import sample_reports

DAY = 86_400
NONE = dmarc_report.Disposition.NONE


def row(source: str, *, count: int = 1, dkim: bool = False, header_from: str = "example.com") -> dmarc_report.Row:
    return dmarc_report.Row(
        source=source,
        count=count,
        disposition=NONE,
        dkim=dkim,
        spf=False,
        header_from=header_from,
        envelope_from="",
        envelope_to="",
        signers=(),
        spf_domain="",
        overrides=(),
    )


def report(*rows: dmarc_report.Row, begin: int = 20_454 * DAY, end: int = 20_455 * DAY - 1) -> dmarc_report.Report:
    policy = dmarc_report.Policy(
        "example.com", "none", "", has_strict_dkim=False, has_strict_spf=False, percent=100, is_test=False
    )
    return dmarc_report.Report("Example Mail", "dmarc@mail.example", "1", begin, end, policy, rows, 0)


def key(source: str, *, dkim: bool, header_from: str = "example.com") -> dmarc_rows.Key:
    return dmarc_rows.Key(20_454, "example.com", "mail.example", source, header_from, NONE, dkim=dkim, spf=False)


def rows_of(about: dmarc_report.Report) -> dmarc_rows.Rows:
    return dmarc_rows.rows_of(about, reporter="mail.example")


def test_mail_that_passed_is_kept_by_address_and_other_mail_by_network() -> None:
    rows = rows_of(
        report(
            row("192.0.2.1", count=5, dkim=True),
            row("192.0.2.1", count=2, dkim=True),
            row("192.0.2.2", dkim=True, header_from="news.example.com"),
            row("203.0.113.9", count=3),
            row("203.0.113.200", count=4),
            row("2001:db8:1:2::3"),
        )
    )
    assert rows == {
        key("192.0.2.1", dkim=True): 7,
        key("192.0.2.2", dkim=True, header_from="news.example.com"): 1,
        key("203.0.113.0/24", dkim=False): 7,
        key("2001:db8:1::/48", dkim=False): 1,
    }


def test_mail_of_another_from_domain_is_left_out() -> None:
    others = ("example.net", "notexample.com", "com", "example.com.example.net")
    rows = rows_of(report(*(row("192.0.2.1", header_from=name) for name in others), row("192.0.2.1")))
    assert rows == {key("192.0.2.0/24", dkim=False): 1}


def test_of_a_large_report_the_most_frequent_200_rows_are_kept_and_the_rest_is_counted() -> None:
    forged = [
        row(f"10.{number // 200}.{number % 200}.1", count=1 + number % 3, header_from=f"h{number}.example.com")
        for number in range(5_000)
    ]
    sources = [row(f"192.0.2.{number}", count=1_000, dkim=True) for number in range(100)]
    rows = rows_of(report(*forged, *sources))
    assert len(rows) == 201
    assert all(rows[key(f"192.0.2.{number}", dkim=True)] == 1_000 for number in range(100))
    assert rows[key("", dkim=False)] == 9_699
    assert sum(rows.values()) == 109_999


def test_the_day_is_that_of_the_middle() -> None:
    for offset in (-11, 0, 11):
        begin = 20_454 * DAY + offset * 3600
        (found,) = rows_of(report(row("192.0.2.1"), begin=begin, end=begin + DAY))
        assert found.day == 20_454


def test_a_report_is_about_recent_days() -> None:
    about = report(row("192.0.2.1"))
    assert dmarc_rows.is_timely(about, today=20_454 + 31)
    assert not dmarc_rows.is_timely(about, today=20_454 + 32)
    assert dmarc_rows.is_timely(about, today=20_454 - 1)
    assert not dmarc_rows.is_timely(about, today=20_454 - 2)


def test_a_hundred_reports_become_rows_that_lose_no_message() -> None:
    samples = sample_reports.make(100)
    rows: Counter[dmarc_rows.Key] = Counter()
    for sample in samples:
        read = aggregate_reports.read(sample.mail)
        assert isinstance(read, dmarc_report.Report)
        rows.update(dmarc_rows.rows_of(read, reporter=sample.organization))
    assert sum(rows.values()) == sum(sample.messages for sample in samples)
    passed = sum(count for found, count in rows.items() if found.passed)
    assert passed == sum(sample.passed for sample in samples)
    assert {found.day for found in rows} == set(range(20_454, 20_474))
    assert {found.reporter for found in rows} == {"google.com", "Enterprise Outlook", "Yahoo", "AOL", "Example Mail"}
    assert msgspec.json.decode(msgspec.json.encode(next(iter(rows))), type=dmarc_rows.Key) in rows
