"""The record that asks for TLS reports is read as RFC 8460 says, and its URIs are bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.dns import mta_sts


@pytest.mark.parametrize(
    "texts, uris",
    [
        (["v=TLSRPTv1;rua=mailto:reports@example.com"], ("mailto:reports@example.com",)),
        (["v=TLSRPTv1; rua=https://reporting.example.com/v1/tlsrpt"], ("https://reporting.example.com/v1/tlsrpt",)),
        (
            ["v=TLSRPTv1 ; rua=MAILTO:a@EXAMPLE.com , HTTPS://example.com/r?a=b ;"],
            ("mailto:a@example.com", "https://example.com/r?a=b"),
        ),
        (["v=spf1 -all", "v=TLSRPTv1; rua=mailto:a@example.com; other=1"], ("mailto:a@example.com",)),
        (["v=TLSRPTv1; rua=mailto:a%2Bb@example.com?subject=x"], ("mailto:a+b@example.com",)),
        (["v=TLSRPTv1; rua=mailto:a@example.com,mailto:a@example.com"], ("mailto:a@example.com",)),
    ],
)
def test_a_record_says_where_reports_go(texts: list[str], uris: tuple[str, ...]) -> None:
    assert mta_sts.report_uris(texts) == uris


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["v=TLSRPTv1"],
        ["v=TLSRPTv1;"],
        ["v=TLSRPTv1; rua="],
        ["v=TLSRPTv2; rua=mailto:a@example.com"],
        ["rua=mailto:a@example.com; v=TLSRPTv1"],
        ["v=TLSRPTv1; rua=mailto:a@example.com", "v=TLSRPTv1; rua=mailto:a@example.com"],
        ["v=TLSRPTv1; rua=http://example.com/"],
        ["v=TLSRPTv1; rua=ftp://example.com/"],
        ["v=TLSRPTv1; rua=mailto:nobody"],
        ["v=TLSRPTv1; rua=mailto:a%0D%0AX: y@example.com"],
        ["v=TLSRPTv1; rua=mailto:ä@example.com"],
        ["v=TLSRPTv1; rua=mailto:%C3%A4@example.com"],
        ["v=TLSRPTv1; rua=https://example.com/" + "a" * 1_000],
    ],
)
def test_anything_else_asks_for_none(texts: list[str]) -> None:
    assert mta_sts.report_uris(texts) == ()


def test_the_number_of_uris_is_bounded() -> None:
    text = "v=TLSRPTv1; rua=" + ",".join(f"mailto:a{number}@example.com" for number in range(1000))
    assert len(mta_sts.report_uris([text])) == 4


@given(st.lists(st.text(max_size=100).map(lambda text: f"v=TLSRPTv1; rua=mailto:{text}"), max_size=3))
def test_no_record_breaks_the_parser(texts: list[str]) -> None:
    for uri in mta_sts.report_uris(texts):
        assert uri.isascii()
        assert "\n" not in uri


def test_the_record_has_a_name() -> None:
    assert mta_sts.report_record_name("example.com") == "_smtp._tls.example.com"
