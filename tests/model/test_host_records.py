"""The DNS records of the host: forward and reverse for each public address, SPF of its name, MX of return paths."""

from postroad.model.domains import host_records


def lines(*addresses: str, return_path_domain: str = "") -> list[str]:
    shown = host_records.host_records("mail.example.com", addresses, return_path_domain=return_path_domain)
    return [record.zone_line for record in shown]


def test_each_public_address_has_a_record_in_both_directions() -> None:
    assert lines("198.41.0.4", "2001:503:ba3e::2:30", return_path_domain="bounces.example.net") == [
        "mail.example.com. IN A 198.41.0.4",
        "mail.example.com. IN AAAA 2001:503:ba3e::2:30",
        "4.0.41.198.in-addr.arpa. IN PTR mail.example.com.",
        "0.3.0.0.2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.e.3.a.b.3.0.5.0.1.0.0.2.ip6.arpa. IN PTR mail.example.com.",
        'mail.example.com. IN TXT "v=spf1 a -all"',
        "bounces.example.net. IN MX 10 mail.example.com.",
        '*._report._dmarc.bounces.example.net. IN TXT "v=DMARC1"',
    ]


def test_a_private_address_is_not_published_and_a_missing_one_is_a_gap_to_fill() -> None:
    assert lines("10.1.2.3", "198.41.0.4")[0] == "mail.example.com. IN A 198.41.0.4"
    expected = [
        "mail.example.com. IN A ADDRESS",
        "ADDRESS.in-addr.arpa. IN PTR mail.example.com.",
        'mail.example.com. IN TXT "v=spf1 a -all"',
    ]
    assert lines("10.1.2.3", "fd00::1") == lines() == expected


# A certificate is renewed with a third of its lifetime left, and after failures with growing delays, up to a day.

HOUR = 3_600_000_000
DAY = 24 * HOUR


def test_a_third_of_the_lifetime_is_left_at_the_renewal() -> None:
    assert host_records.renew_at(issued_at=0, expires_at=90 * DAY) == 60 * DAY
    assert host_records.renew_at(issued_at=DAY, expires_at=7 * DAY) == 5 * DAY


def test_failures_are_followed_by_longer_and_longer_delays() -> None:
    delays = [host_records.retry_at(count, now=DAY) - DAY for count in range(1, 11)]
    quarter = HOUR // 4
    assert delays == [quarter, HOUR // 2, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 16 * HOUR, DAY, DAY, DAY]
