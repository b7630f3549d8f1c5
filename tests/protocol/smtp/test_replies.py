"""Replies are read whatever the portions they come in, bounded, and shown without what could harm a reader."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.smtp import values


def read(*portions: bytes) -> list[values.Received]:
    reader = values.ReplyReader()
    return [received for portion in portions for received in reader.read(portion)]


def shown(raw: bytes) -> values.Reply:
    (received,) = read(raw)
    return values.first_reply(received)


SESSION = b"220 hello\r\n250-peer\r\n250-SIZE 10\r\n250 HELP\r\n250\r\n354 \r\n550-5.1.1 no\r\n550 5.1.1 body\r\n"
PARSED = [
    (220, (b"hello\r",)),
    (250, (b"peer\r", b"SIZE 10\r", b"HELP\r")),
    (250, (b"",)),
    (354, (b"\r",)),
    (550, (b"5.1.1 no\r", b"5.1.1 body\r")),
]


@given(cuts=st.lists(st.integers(0, len(SESSION)), max_size=12).map(sorted))
def test_portions_make_no_difference(cuts: list[int]) -> None:
    edges = [0, *cuts, len(SESSION)]
    assert read(*(SESSION[begin:end] for begin, end in itertools.pairwise(edges))) == PARSED


def test_lines_may_end_in_a_bare_line_feed() -> None:
    assert shown(b"250-one\n250 two\n") == values.Reply(250, "one two")


@pytest.mark.parametrize(
    "raw",
    [b"hello\r\n", b"25\r\n", b"150 x\r\n", b"600 x\r\n", b"250x\r\n", b"\r\n", b" 250 x\r\n", b"250-a\r\n251 b\r\n"],
)
def test_what_is_not_a_reply_is_an_error(raw: bytes) -> None:
    with pytest.raises(values.BadReply, match="an invalid reply"):
        read(raw)


def test_replies_before_a_bad_one_are_given() -> None:
    reader = values.ReplyReader()
    found = reader.read(b"250 taken\r\nnonsense\r\n")
    assert next(found)[0] == 250
    with pytest.raises(values.BadReply):
        next(found)


@pytest.mark.parametrize("end", [b"\r\n", b""])
def test_a_line_is_bounded_whether_or_not_it_ends(end: bytes) -> None:
    with pytest.raises(values.BadReply, match="2048 octets"):
        read(b"250 " + b"x" * 2048 + end)


def test_a_line_of_the_longest_kind_is_read() -> None:
    line = b"250 " + b"x" * (2048 - 5) + b"\r\n"
    assert read(line)[0][0] == 250


@pytest.mark.parametrize("line", [b"250-x\r\n", b"250-" + b"x" * 2000 + b"\r\n"])
def test_a_reply_that_does_not_end_is_an_error(line: bytes) -> None:
    with pytest.raises(values.BadReply, match="too long"):
        read(*[line] * 101)


def test_a_reply_of_a_hundred_lines_is_read_and_does_not_count_against_the_next() -> None:
    raw = b"250-x\r\n" * 99 + b"250 x\r\n"
    assert [len(lines) for _, lines in read(raw, raw)] == [100, 100]


def test_a_reader_knows_whether_something_is_left() -> None:
    reader = values.ReplyReader()
    assert reader.is_empty
    for portion in (b"25", b"0-x\r\n", b"250"):
        assert list(reader.read(portion)) == []
        assert not reader.is_empty
    assert len(list(reader.read(b" x\r\n"))) == 1
    assert reader.is_empty


@pytest.mark.parametrize(
    "raw, text, enhanced",
    [
        (b"550 5.1.1 nobody\r\n", "nobody", "5.1.1"),
        (b"550-5.1.1 nobody\r\n550 5.1.1  here\r\n", "nobody here", "5.1.1"),
        (b"550-5.1.1 nobody\r\n550 here\r\n", "nobody here", "5.1.1"),
        (b"550 5.1.1\r\n", "", "5.1.1"),
        (b"450 5.1.1 two minds\r\n", "5.1.1 two minds", ""),
        (b"250 2.1.0\r\n", "", "2.1.0"),
        (b"550 5.1.1.1 is no code\r\n", "5.1.1.1 is no code", ""),
        (b"550 5.1234.1 is no code\r\n", "5.1234.1 is no code", ""),
        (b"550 see 5.1.1\r\n", "see 5.1.1", ""),
        (b"354 3.0.0 is no code\r\n", "3.0.0 is no code", ""),
        (b"250\r\n", "", ""),
        (b"250-\r\n250-\r\n250 ok\r\n", "ok", ""),
    ],
)
def test_the_enhanced_code_is_taken_from_the_text_when_it_fits_the_reply(raw: bytes, text: str, enhanced: str) -> None:
    reply = shown(raw)
    assert (reply.text, reply.enhanced) == (text, enhanced)


def test_the_text_is_safe_to_show() -> None:
    assert shown(b"550 a\x00b\x1b[31mc\x7f \xff \xc3\xa9 \xe2\x80\xaed\r\n").text == "ab[31mc \ufffd é d"


def test_the_text_is_cut() -> None:
    lines = b"550-" + b"x" * 1500 + b"\r\n550 " + b"y" * 1500 + b"\r\n"
    assert shown(lines).text == "x" * 1500 + " " + "y" * 499


# The names of stages and causes, which logs, rows and pages keep, and which causes no retry can change.


PERMANENT = [
    *("bad_address", "domain_not_found", "null_mx", "mail_loop", "no_route", "content_missing", "message_too_large"),
    *("extension_missing", "unsendable_address"),
]
TEMPORARY = [
    *(
        "configuration",
        "dns_failed",
        "private_address",
        "worker_crashes",
        "internal_error",
        "connection_refused",
        "connection_timed_out",
    ),
    *("host_unreachable", "connection_failed", "tls_failed", "connection_lost", "reply_timed_out", "protocol_error"),
]


def test_stages_are_in_the_order_of_a_transaction() -> None:
    stages = ["route", "connect", "banner", "hello", "starttls", "auth", "mail", "recipient", "data", "content"]
    assert [*values.Stage] == stages


def test_causes_are_permanent_or_not() -> None:
    assert sorted(values.Cause) == sorted(PERMANENT + TEMPORARY)
    assert sorted(values.PERMANENT_CAUSES) == sorted(PERMANENT)
