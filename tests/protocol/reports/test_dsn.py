"""Reports of common mail servers are understood, and no input makes the reader fail or hold anything up."""

import email
import email.policy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.mime import report_parser
from postroad.protocol.reports import bounce_text, dsn
from tests.protocol.reports import bounces, odd_bounces

CORPUS = {
    name.lower(): bounce
    for module in (bounces, odd_bounces)
    for name, bounce in vars(module).items()
    if isinstance(bounce, bounces.Bounce)
}
STATUS = "Final-Recipient: rfc822;ada@example.net\nAction: failed\nStatus: 5.1.1\n"


def as_expected(outcomes: tuple[dsn.RecipientReport, ...]) -> list[bounces.Expected]:
    return [
        bounces.Expected(
            o.action, o.final_recipient, o.original_recipient, o.reply.code, o.reply.enhanced, o.reply.text
        )
        for o in outcomes
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("name", CORPUS)
def test_reports_from_the_field_are_parsed(name: str, line_end: str) -> None:
    content, expected = CORPUS[name]
    found = as_expected(dsn.read(content.replace("\n", line_end).encode()))
    assert [outcome._replace(text="") for outcome in found] == [wanted._replace(text="") for wanted in expected]
    for outcome, wanted in zip(found, expected, strict=True):
        assert outcome.text.startswith(wanted.text)
        assert bool(outcome.text) == bool(wanted.text)


def test_the_corpus_is_not_empty() -> None:
    assert len(CORPUS) >= 15


@pytest.mark.parametrize("name", odd_bounces.NO_REPORTS)
def test_mail_that_reports_nothing_has_no_outcomes(name: str) -> None:
    assert dsn.read(odd_bounces.NO_REPORTS[name].encode()) == ()


@pytest.mark.parametrize("name", sorted(CORPUS.keys() - {"base64", "quoted_printable", "international"}))
def test_the_standard_library_finds_the_same_recipients(name: str) -> None:
    """It decodes no status that is encoded, and calls no other type one."""
    content = CORPUS[name].content.encode()
    message = email.message_from_bytes(content, policy=email.policy.compat32)
    groups = [
        group
        for part in message.walk()
        if part.get_content_type() == "message/delivery-status"
        for group in part.get_payload()
        if isinstance(group, email.message.Message) and "Final-Recipient" in group
    ]
    named = [str(group["Final-Recipient"]).rpartition(";")[2].strip().strip("<>") for group in groups]
    in_prose = name in {"qmail", "exim_prose"}
    assert named == [o.final_recipient for o in dsn.read(content) if o.final_recipient and not in_prose]


def test_words_keep_what_the_host_said_with_its_codes() -> None:
    (outcome, _) = dsn.read(bounces.POSTFIX.content.encode())
    assert outcome.words.startswith("550 5.1.1 <ada@example.net>: Recipient address rejected: User unknown")
    assert outcome.status == "5.1.1"


def test_a_specific_status_wins_over_the_text_and_a_vague_one_does_not() -> None:
    def status(own: str, quoted: str) -> str:
        words = f"Action: failed\nStatus: {own}\nDiagnostic-Code: smtp; 550 {quoted} no\n"
        (outcome,) = dsn.read(odd_bounces.report(words).encode())
        return outcome.reply.enhanced

    assert status("5.2.1", "5.1.1") == "5.2.1"
    assert status("5.0.0", "5.1.1") == "5.1.1"
    assert status("5.0.0", "") == "5.0.0"
    assert status("nonsense", "5.1.1") == "5.1.1"


def test_an_address_of_the_network_is_no_status() -> None:
    assert bounce_text.reply("host 5.1.1.7 is away, and 4.4.4.4 too", status="").enhanced == ""


@pytest.mark.parametrize("escaped", ["\\x{D800}", "\\x{110000}", "\\x{FFFFFF}"])
def test_escapes_that_are_no_characters_stay_as_they_are(escaped: str) -> None:
    words = f"Final-Recipient: utf-8;a{escaped}@example.net\nAction: failed\n"
    (outcome,) = dsn.read(odd_bounces.report(words, kind="message/global-delivery-status").encode())
    assert outcome.final_recipient == f"a{escaped}@example.net"


def test_what_is_kept_is_short_and_clean() -> None:
    diagnostic = "smtp; 550 5.1.1 \0\x1b[2J" + "word \u0085" * 10_000
    words = f"Final-Recipient: rfc822;{'a' * 100_000}@example.net\nAction: failed\nDiagnostic-Code: {diagnostic}\n"
    (outcome,) = dsn.read(odd_bounces.report(words).encode())
    assert len(outcome.words) <= bounce_text.TEXT_CHARACTERS
    assert len(outcome.final_recipient) <= 400
    assert outcome.words.isprintable()


def test_a_report_names_at_most_so_many_recipients() -> None:
    groups = "\n".join(f"Final-Recipient: rfc822;p{number}@example.net\nAction: failed\n" for number in range(5_000))
    assert len(dsn.read(odd_bounces.report(groups).encode())) == 100


def test_what_stands_behind_the_first_part_of_a_huge_message_is_not_read() -> None:
    padding = "x" * 76 + "\n"
    late = odd_bounces.report("Action: failed\nStatus: 5.1.1\n").replace(
        "For people.", padding * (report_parser.MAX_BYTES // len(padding) + 1)
    )
    assert dsn.read(late.encode()) == ()


def nested(levels: int) -> bytes:
    head = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(levels))
    return (head + f"Content-Type: message/delivery-status\n\n{STATUS}").encode()


def test_a_report_may_be_wrapped_but_not_without_end() -> None:
    assert len(dsn.read(nested(report_parser.BOUNDS.depth))) == 1
    assert dsn.read(nested(report_parser.BOUNDS.depth + 1)) == ()
    assert dsn.read(nested(5_000)) == ()


HOSTILE = {
    "a header without end": b"Subject: " + b"x" * 2_000_000,
    "a folded header without end": b"Subject: x\r\n" + b" \t" * 1_000_000 + b"\r\n\r\nHi",
    "only colons": b":" * 1_000_000,
    "many fields": b"a:\n" * 500_000,
    "many paragraphs": b"\nHi. This is the qmail-send program\n\n" + b"<\n\n" * 300_000,
    "many groups": odd_bounces.report("a\n\n" * 80_000).encode(),
    "many parts": b"Content-Type: multipart/mixed; boundary=a\n\n" + b"--a\n" * 300_000,
    "many empty multiparts": b"Content-Type: multipart/mixed; boundary=a\n\n"
    + b"".join(b"--a\nContent-Type: multipart/mixed; boundary=%d\n\n" % number for number in range(5_000)),
    "lines like delimiters": b"Content-Type: multipart/mixed; boundary=a\n\n" + b"--ab\n" * 300_000,
    "spaces behind a delimiter": b"Content-Type: multipart/mixed; boundary=a\n\n--a" + b" " * 1_000_000,
    "blank lines": odd_bounces.report("Action: failed\n" + " \t\n" * 80_000).encode(),
    "an endless parameter": b"Content-Type: multipart/mixed" + b';boundary="' * 50_000 + b"\n\nx",
    "nothing but NUL": b"\0" * 1_000_000,
    "NUL in a report": odd_bounces.report(f"\0{STATUS}\0").encode(),
    "a wrong base64": odd_bounces.report("!", encoding="base64").encode() + b"=",
    "a boundary of another script": "Content-Type: multipart/report; boundary=ü\n\n--ü\n\nx\n--ü--\n".encode("latin-1"),
    "digits": b"X-Failed-Recipients: a@b.example\n\na@b.example\n" + b"550-" * 200_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_does_no_harm(name: str) -> None:
    outcomes = dsn.read(HOSTILE[name])
    assert len(outcomes) <= 100


@given(st.binary(max_size=2_000))
def test_random_bytes_do_no_harm(content: bytes) -> None:
    dsn.read(content)


PIECES = st.sampled_from(
    [
        b"Content-Type: multipart/report; boundary=b\n",
        b"Content-Type: message/delivery-status\n",
        b"Content-Transfer-Encoding: base64\n",
        b"X-Failed-Recipients: a@b.example\n",
        b"Hi. This is the",
        b"Final-Recipient: rfc822;",
        b"Action: failed",
        b"Status: 5.1.1",
        b"<a@b.example>:\n",
        b"--b",
        b"--",
        b"\n",
        b"\r\n",
        b" ",
        b";",
        b"\0",
        b"\xff",
    ]
)


@given(st.lists(PIECES, max_size=60).map(b"".join))
def test_pieces_of_reports_in_any_order_do_no_harm(content: bytes) -> None:
    for outcome in dsn.read(content):
        assert outcome.words == bounce_text.clean(outcome.words)
