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
    ]


def test_a_private_address_is_not_published_and_a_missing_one_is_a_gap_to_fill() -> None:
    assert lines("10.1.2.3", "198.41.0.4")[0] == "mail.example.com. IN A 198.41.0.4"
    expected = [
        "mail.example.com. IN A ADDRESS",
        "ADDRESS.in-addr.arpa. IN PTR mail.example.com.",
        'mail.example.com. IN TXT "v=spf1 a -all"',
    ]
    assert lines("10.1.2.3", "fd00::1") == lines() == expected
