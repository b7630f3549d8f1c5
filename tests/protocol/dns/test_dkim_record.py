"""The DNS record of a key: its name, its text, and its form in a zone file."""

import base64

import dns.zone
import pytest

from postroad.protocol.dns import tag_lists

KEY = bytes(range(256)) + bytes(38)


def test_the_record_says_what_rfc_6376_asks_for() -> None:
    assert tag_lists.dkim_name("pr1", "example.com") == "pr1._domainkey.example.com"
    value = tag_lists.dkim_value(KEY)
    assert value.startswith("v=DKIM1; k=rsa; p=")
    assert base64.b64decode(value.partition("p=")[2], validate=True) == KEY


@pytest.mark.parametrize("length, lengths", [(1, [1]), (255, [255]), (256, [255, 1]), (600, [255, 255, 90])])
def test_a_text_is_cut_into_strings_that_fit(length: int, lengths: list[int]) -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(length))
    strings = tag_lists.txt_strings(text)
    assert [len(string) for string in strings] == lengths
    assert "".join(strings) == text


def test_a_zone_with_the_line_holds_the_record() -> None:
    value = tag_lists.dkim_value(KEY)
    line = tag_lists.zone_line("pr1._domainkey.example.com", value)
    zone = dns.zone.from_text(
        f"$TTL 60\n@ IN SOA ns hostmaster 1 2 3 4 5\n@ IN NS ns\n{line}\n", origin="example.com.", check_origin=False
    )
    found = zone.find_rdataset("pr1._domainkey", "TXT")
    assert [b"".join(record.strings).decode() for record in found] == [value]
