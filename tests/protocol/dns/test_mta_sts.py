"""MTA-STS records and policies are read as RFC 8461 says, and everything else is no policy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.dns import mta_sts

POLICY = b"version: STSv1\r\nmode: enforce\r\nmx: mail.example.org\r\nmx: *.Example.NET\r\nmax_age: 604800\r\n"


@pytest.mark.parametrize(
    "texts",
    [
        ["v=STSv1; id=20160831085700Z;"],
        ["v=STSv1; id=20160831085700Z"],
        ["v=STSv1 ;\tid=20160831085700Z ; extension=1"],
        ["v=spf1 -all", "v=STSv1;id=20160831085700Z;"],
        ["v=STSv1; id=20160831085700Z; id=second"],
    ],
)
def test_a_record_announces_its_id(texts: list[str]) -> None:
    assert mta_sts.policy_id(texts) == "20160831085700Z"


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["v=spf1 -all"],
        ["v=STSv1"],
        ["v=STSv1;"],
        ["v=STSv1; id=;"],
        ["v=STSv1; id=with-hyphen;"],
        ["v=STSv1; id=" + "1" * 33],
        ["v=STSv2; id=1;"],
        ["id=1; v=STSv1;"],
        [" v=STSv1; id=1;"],
        ["v=STSv1; id=1;", "v=STSv1; id=1;"],
    ],
)
def test_anything_but_one_record_announces_nothing(texts: list[str]) -> None:
    assert mta_sts.policy_id(texts) is None


def test_a_policy_is_read() -> None:
    expected = mta_sts.Policy(mta_sts.Mode.ENFORCE, ("mail.example.org", "*.example.net"), 604_800)
    assert mta_sts.parse_policy(POLICY) == expected


def test_a_policy_is_written_as_it_is_read() -> None:
    policy = mta_sts.Policy(mta_sts.Mode.ENFORCE, ("mail.example.org", "*.example.net"), 604_800)
    assert policy.lines == (
        "version: STSv1",
        "mode: enforce",
        "mx: mail.example.org",
        "mx: *.example.net",
        "max_age: 604800",
    )
    assert mta_sts.parse_policy("\n".join(policy.lines).encode()) == policy


@pytest.mark.parametrize(
    "content",
    [
        POLICY.replace(b"\r\n", b"\n"),
        POLICY.removesuffix(b"\r\n"),
        POLICY.replace(b": ", b":"),
        POLICY.replace(b": ", b" : \t"),
        POLICY + b"extension: value\r\n\r\nmode: none\r\nversion: STSv9\r\n",
        "x: grüße\r\n".encode() + POLICY,
    ],
)
def test_a_policy_may_be_written_in_other_ways(content: bytes) -> None:
    assert mta_sts.parse_policy(content) == mta_sts.parse_policy(POLICY)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>not found</html>",
        POLICY.replace(b"STSv1", b"STSv2"),
        POLICY.replace(b"version: STSv1\r\n", b""),
        POLICY.replace(b"enforce", b"Enforce"),
        POLICY.replace(b"mode: enforce\r\n", b""),
        POLICY.replace(b"max_age: 604800\r\n", b""),
        POLICY.replace(b"604800", b"-1"),
        POLICY.replace(b"604800", b"1" * 11),
        POLICY.replace(b"604800", "٣".encode()),
        POLICY.replace(b"mx:", b"host:"),
        POLICY.replace(b"*.Example.NET", b"mail.*.example.net"),
        POLICY.replace(b"*.Example.NET", b"*"),
        POLICY.replace(b"*.Example.NET", b""),
        POLICY.replace(b"*.Example.NET", b".".join([b"a" * 60] * 5)),
        POLICY + b"mx: a.example\r\n" * 49,
        POLICY + b"\xff",
    ],
)
def test_anything_else_is_no_policy(content: bytes) -> None:
    assert mta_sts.parse_policy(content) is None


def test_a_policy_may_name_fifty_hosts() -> None:
    policy = mta_sts.parse_policy(POLICY + b"mx: a.example\r\n" * 48)
    assert policy is not None
    assert len(policy.patterns) == 50


def test_the_characters_of_all_names_are_limited() -> None:
    def policy(*lengths: int) -> mta_sts.Policy | None:
        name = (b"a" * 50 + b".") * 5
        hosts = (b"mx: " + name[-length:-1] + b"a\r\n" for length in lengths)
        return mta_sts.parse_policy(b"version: STSv1\r\nmode: enforce\r\nmax_age: 1\r\n" + b"".join(hosts))

    assert policy(*[250] * 16, 96) is not None
    assert policy(*[250] * 16, 97) is None


def test_a_policy_that_wants_nothing_needs_no_hosts() -> None:
    policy = mta_sts.parse_policy(b"version: STSv1\nmode: none\nmax_age: 0\n")
    assert policy == mta_sts.Policy(mta_sts.Mode.NONE, (), 0)


def test_no_policy_lives_longer_than_a_year() -> None:
    policy = mta_sts.parse_policy(POLICY.replace(b"604800", b"9999999999"))
    assert policy is not None
    assert policy.max_age == 31_557_600


@pytest.mark.parametrize(
    "host, allowed",
    [
        ("mail.example.org", True),
        ("MAIL.example.org.", True),
        ("mx1.example.net", True),
        ("example.net", False),
        ("a.b.example.net", False),
        ("mail.example.org.evil.example", False),
        ("mx1.mail.example.org", False),
        ("net", False),
        ("", False),
    ],
)
def test_a_star_stands_for_exactly_one_label(host: str, allowed: bool) -> None:  # noqa: FBT001 - a column of the table
    policy = mta_sts.parse_policy(POLICY)
    assert policy is not None
    assert policy.allows(host) is allowed


@given(st.binary(max_size=300) | st.binary(max_size=60).map(lambda extra: POLICY + extra))
def test_no_bytes_disturb_the_parser(content: bytes) -> None:
    policy = mta_sts.parse_policy(content)
    assert policy is None or policy.mode in set(mta_sts.Mode)


@given(st.lists(st.text(max_size=60) | st.text(max_size=40).map(lambda rest: "v=STSv1;" + rest), max_size=3))
def test_no_text_disturbs_the_parser(texts: list[str]) -> None:
    found = mta_sts.policy_id(texts)
    assert found is None or (found.isascii() and found.isalnum())


# The record that asks for TLS reports is read as RFC 8460 says, and its URIs are bounded.


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
def test_no_tls_report_record_breaks_the_parser(texts: list[str]) -> None:
    for uri in mta_sts.report_uris(texts):
        assert uri.isascii()
        assert "\n" not in uri


def test_the_record_has_a_name() -> None:
    assert mta_sts.report_record_name("example.com") == "_smtp._tls.example.com"
