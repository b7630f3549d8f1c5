"""Macros stand for what RFC 7208 says, and whatever a record writes, its names have a bounded length."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.dns import spf_macros

# The examples of section 7.4.
MAIL = spf_macros.Mail(ipaddress.ip_address("192.0.2.3"), "mx.example.org", "strong-bad", "email.example.com")
MAIL_6 = spf_macros.Mail(ipaddress.ip_address("2001:db8::cb01"), "mx.example.org", "strong-bad", "email.example.com")


def expanded(text: str, mail: spf_macros.Mail = MAIL) -> str:
    return spf_macros.expand(text, mail, domain="email.example.com", name="mx.example.org")


@pytest.mark.parametrize(
    "text, value",
    [
        ("%{s}", "strong-bad@email.example.com"),
        ("%{o}", "email.example.com"),
        ("%{d}", "email.example.com"),
        ("%{d4}", "email.example.com"),
        ("%{d3}", "email.example.com"),
        ("%{d2}", "example.com"),
        ("%{d1}", "com"),
        ("%{dr}", "com.example.email"),
        ("%{d2r}", "example.email"),
        ("%{l}", "strong-bad"),
        ("%{l-}", "strong.bad"),
        ("%{lr}", "strong-bad"),
        ("%{lr-}", "bad.strong"),
        ("%{l1r-}", "strong"),
        ("%{ir}.%{v}._spf.%{d2}", "3.2.0.192.in-addr._spf.example.com"),
        ("%{lr-}.lp._spf.%{d2}", "bad.strong.lp._spf.example.com"),
        ("%{lr-}.lp.%{ir}.%{v}._spf.%{d2}", "bad.strong.lp.3.2.0.192.in-addr._spf.example.com"),
        ("%{ir}.%{v}.%{l1r-}.lp._spf.%{d2}", "3.2.0.192.in-addr.strong.lp._spf.example.com"),
        ("%{d2}.trusted-domains.example.net", "example.com.trusted-domains.example.net"),
        ("%{h}.%{p1}", "mx.example.org.org"),
        ("%{S}", "strong-bad%40email.example.com"),
        ("a%%b%_c%-d.example.", "a%b c%20d.example"),
    ],
)
def test_the_examples_of_the_standard_hold(text: str, value: str) -> None:
    assert spf_macros.is_domain(text)
    assert expanded(text) == value


def test_an_ipv6_address_is_written_in_its_digits() -> None:
    expected = "1.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6._spf.example.com"
    assert expanded("%{ir}.%{v}._spf.%{d2}", MAIL_6) == expected


OTHERS = [
    "",
    "localhost",
    "a.1",
    "a.-b",
    "a.b-",
    "a..",
    ".example",
    "%",
    "%{d",
    "%{x}",
    "%{d0}",
    "%{c}",
    "%{d}x",
    "a b.c",
]


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_domain_is_refused(text: str) -> None:
    assert not spf_macros.is_domain(text)


def test_labels_are_dropped_from_the_left_of_a_name_that_is_too_long() -> None:
    assert expanded("%{d}." * 40 + "example") == "example.com." + "email.example.com." * 13 + "example"
    assert expanded("a" * 300 + ".%{d}") == "email.example.com"
    assert expanded("x" * 300) == ""


@given(st.text("%{}sldiphv019r.-+,/_=ab", max_size=60))
def test_any_text_is_refused_or_has_a_name(text: str) -> None:
    if spf_macros.is_domain(text):
        assert len(expanded(text)) <= spf_macros.MAX_NAME_CHARACTERS
