"""Lists of tags are read as receivers read them; anything else is none."""

import base64

import dns.zone
import hypothesis
import pytest
from hypothesis import strategies

from postroad.protocol.dns import tag_lists


def test_names_and_values_are_read_in_their_order_and_without_the_blanks_around_them() -> None:
    tags = tag_lists.parse(" v = DKIM1 ;\tk=rsa;p= MIIB IjAN ; n=a=b;")
    assert tags == {"v": "DKIM1", "k": "rsa", "p": "MIIB IjAN", "n": "a=b"}
    assert list(tags) == ["v", "k", "p", "n"]


def test_a_value_may_be_empty() -> None:
    assert tag_lists.parse("p=") == {"p": ""}


@pytest.mark.parametrize("text", ["", ";", "v", "v=1;;p=2", "=1", "v=1; v=2", "1v=2", "a-b=1", "v=1; p", "x" * 70_000])
def test_what_is_no_list_is_none(text: str) -> None:
    assert tag_lists.parse(text) is None


@hypothesis.given(strategies.text(alphabet="vp=; \tD1a\x00é", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    tags = tag_lists.parse(text)
    assert tags is None or all(name.isascii() and name for name in tags)


# The DNS record of a key.


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


@pytest.mark.parametrize("value", [tag_lists.dkim_value(KEY), 'v=spf1 exp=a"b\\c x=");', "a" * 254 + '"' + "\\" * 300])
def test_a_zone_with_the_line_holds_the_record(value: str) -> None:
    line = tag_lists.zone_line("pr1._domainkey.example.com", value)
    zone = dns.zone.from_text(
        f"$TTL 60\n@ IN SOA ns hostmaster 1 2 3 4 5\n@ IN NS ns\n{line}\n", origin="example.com.", check_origin=False
    )
    found = zone.find_rdataset("pr1._domainkey", "TXT")
    assert [b"".join(record.strings).decode() for record in found] == [value]
