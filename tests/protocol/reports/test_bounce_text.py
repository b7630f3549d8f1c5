"""Replies are found inside prose, and prose is taken for a failure only where its form says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.mime import report_parser
from postroad.protocol.reports import bounce_text
from postroad.protocol.smtp import values


@pytest.mark.parametrize(
    "words, status, reply",
    [
        ("550 5.1.1 gone", "", values.Reply(550, "gone", "5.1.1")),
        ("550 gone", "5.1.1", values.Reply(550, "gone", "5.1.1")),
        ("550-5.1.1 gone 550 5.1.1 for ever", "5.1.1", values.Reply(550, "gone for ever", "5.1.1")),
        ("550-gone 550 for ever", "5.0.0", values.Reply(550, "gone for ever", "5.0.0")),
        ("550 #5.1.1 gone", "", values.Reply(550, "gone", "5.1.1")),
        ("550 (5.1.1) gone", "", values.Reply(550, "gone", "5.1.1")),
        ("550 sorry (#5.1.1)", "", values.Reply(550, "sorry (#5.1.1)", "5.1.1")),
        ("host mx.example.net said: 452 4.2.2 full", "", values.Reply(452, "full", "4.2.2")),
        ("host mx.example.net[192.0.2.1]: 450 wait", "4.7.1", values.Reply(450, "wait", "4.7.1")),
        ("no mailbox of that name (#5.1.1)", "", values.Reply(554, "no mailbox of that name (#5.1.1)", "5.1.1")),
        ("gave up after 5 days", "4.4.7", values.Reply(451, "gave up after 5 days", "4.4.7")),
        ("gave up", "", values.Reply(554, "gave up", "")),
        ("", "", values.Reply(554, "", "")),
        ("version 14.550 of 1550 things", "", values.Reply(554, "version 14.550 of 1550 things", "")),
        ("192.0.2.550 and 5.1.1.1", "", values.Reply(554, "192.0.2.550 and 5.1.1.1", "")),
    ],
)
def test_the_reply_in_the_words(words: str, status: str, reply: values.Reply) -> None:
    assert bounce_text.reply(words, status=status) == reply


def read(text: str, header: dict[str, str] | None = None, kind: str = "text/plain") -> list[bounce_text.Failure]:
    return bounce_text.read(header or {}, report_parser.Part({"content-type": kind}, text.encode()))


def test_qmail_names_each_address_and_what_was_said() -> None:
    reported = "<a@b.example>:\nno\nreally\n\n<c@b.example>:\nnot"
    text = f"Hi. This is the mail program.\nSorry.\n\n{reported}\n\n--- Below\n\n<d@b.example>:\nx"
    assert read(text) == [("<a@b.example", "no\nreally"), ("<c@b.example", "not")]


def test_paragraphs_that_name_nobody_are_for_people() -> None:
    assert read("Hi. This is the mail program.\n\nDear <a@b.example>:\n no\n\n<a\nb>:\nno\n\n<a@b.example> no") == []


def test_exim_names_addresses_in_the_header() -> None:
    text = "Sorry:\n\n  a@b.example\n    550 no\n\n  <c@b.example>:\n    not\n"
    named = {"x-failed-recipients": "A@b.example,, c@b.example , d@b.example"}
    assert read(text, named) == [("A@b.example", "    550 no"), ("c@b.example", "    not"), ("d@b.example", "")]
    assert read(text) == []


def test_only_plain_text_is_read() -> None:
    assert read("x", {"x-failed-recipients": "a@b.example"}, kind="text/html") == []


def test_paragraphs_are_bounded_and_blank_lines_may_hold_blanks() -> None:
    assert bounce_text.paragraphs("\n\na\nb\n \t\n\n\nc\r\n\r\nd\n", limit=9) == ["a\nb", "c\r", "d"]
    assert bounce_text.paragraphs("a\n\n" * 100, limit=3) == ["a", "a", "a"]


@given(st.text())
def test_clean_words_fit_anywhere(text: str) -> None:
    clean = bounce_text.clean(text * 50)
    assert len(clean) <= 2000
    assert "\0" not in clean
    assert "\n" not in clean
    assert clean == bounce_text.clean(clean)
    clean.encode()


def test_words_that_would_turn_the_direction_of_a_line_lose_that() -> None:
    assert bounce_text.clean("550 no\u202e such \u2066user\u2069\u061c") == "550 no such user"
