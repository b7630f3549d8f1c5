"""Content that a server receives: by DATA and by BDAT, whole wherever it was cut, and no way to smuggle anything."""

import itertools
import re

import hypothesis
import pytest
from hypothesis import strategies

from postroad.protocol.smtp import server_events, server_replies, values
from tests.protocol.smtp.server_driver import Driver, agree, codes, ready


@pytest.mark.parametrize(
    "wire, content",
    [
        (b".\r\n", b""),
        (b"\r\n.\r\n", b"\r\n"),
        (b"..\r\n.\r\n", b".\r\n"),
        (b"...\r\n.\r\n", b"..\r\n"),
        (b".x\r\n.\r\n", b"x\r\n"),
        (b"a\r\n..b\r\n\r\n..\r\n.\r\n", b"a\r\n.b\r\n\r\n.\r\n"),
        (b"a.\r\n.\r\n", b"a.\r\n"),
        (b"x" * 900 + b"\r\n.\r\n", b"x" * 900 + b"\r\n"),
    ],
)
def test_dots_that_were_put_before_lines_are_taken_off(wire: bytes, content: bytes) -> None:
    driver = ready()
    assert codes(driver.send(b"DATA\r\n" + wire)) == ["354", "250 2.0.0"]
    assert driver.messages[0].content == (content,)


@pytest.mark.parametrize(
    "end, kept",
    [
        (b"\n.\n", b"\r\n\r\n"),
        (b"\n.\r\n", b"\r\n\r\n"),
        (b"\r\n.\n", b"\r\n\r\n"),
        (b"\n..\r\n", b"\r\n.\r\n"),
        (b"\n\n.\n\n", b"\r\n\r\n\r\n\r\n"),
        (b"\r\n\0.\r\n", b"\r\n\0.\r\n"),
        (b"\r.\r", None),
        (b"\r.\r\n", None),
        (b"\r\n.\r", None),
        (b"\n\r.\r\n", None),
        (b"\r\n.\r\r\n", None),
    ],
)
def test_no_other_end_than_the_real_one_ends_a_message(end: bytes, kept: bytes | None) -> None:
    """What follows a false end is content, and stays so: with a bare LF it is a line, with a bare CR it is refused.

    A dot before other text of a line, or before a bare LF, was put there for transparency and is taken off.
    """
    driver = ready()
    smuggled = b"MAIL FROM:<evil@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\nx"
    (reply,) = codes(driver.send(b"DATA\r\nSubject: x\r\n\r\nHello" + end + smuggled))
    assert reply == "354"
    (reply,) = codes(driver.send(b"\r\n.\r\n"))
    assert reply == ("550 5.6.0" if kept is None else "250 2.0.0")
    assert sum(isinstance(event, server_events.Mail) for event in driver.events) == 1
    whole = [] if kept is None else [(b"Subject: x\r\n\r\nHello" + kept + smuggled + b"\r\n",)]
    assert [sent.content for sent in driver.messages] == whole
    assert driver.codes("MAIL FROM:<>") == ["250 2.1.0"]


@pytest.mark.parametrize("piece", [b"x" * 1000 + b"\r\n", b"x" * 1000, b"..\r\n" * 250])
def test_a_message_that_is_too_large_is_refused_at_its_end_and_costs_no_memory(piece: bytes) -> None:
    """Of many lines, of a single one, and of dots; whatever size was announced."""
    driver = Driver()
    driver.say("EHLO x", "MAIL FROM:<> SIZE=5", "RCPT TO:<b@example.net>", "DATA")
    for _ in range(1000):
        assert driver.send(piece) == []
        assert len(driver.machine._buffer) < 3000
    driver.send(b"\r\n")
    assert codes(driver.send(b".\r\nNOOP\r\n")) == ["552 5.3.4", "250 2.0.0"]
    assert driver.messages == []


def test_the_size_is_that_of_the_message_and_not_of_the_wire() -> None:
    driver = ready()
    assert codes(driver.send(b"DATA\r\n" + b"..\r\n" * 333 + b".\r\n")) == ["354", "250 2.0.0"]
    assert driver.messages[0].size == 999
    ready(driver)
    assert codes(driver.send(b"DATA\r\n" + b"x" * 999 + b"\r\n.\r\n")) == ["354", "552 5.3.4"]


def test_a_size_that_is_announced_too_large_is_refused_at_once() -> None:
    driver = Driver()
    assert driver.codes("EHLO x", "MAIL FROM:<> SIZE=1001", "MAIL FROM:<> SIZE=1000") == [
        "250",
        "552 5.3.4",
        "250 2.1.0",
    ]


def test_chunks_become_one_message() -> None:
    driver = ready()
    assert codes(driver.send(b"BDAT 14\r\nSubject: x\r\n\r\n")) == ["250 2.0.0"]
    assert codes(driver.send(b"BDAT 0\r\nBDAT 12 LAST\r\n.\r\nQUIT\r\n.\r\nNOOP\r\n")) == [
        "250 2.0.0",
        "250 2.0.0",
        "250 2.0.0",
    ]
    assert driver.messages[0].content == (b"Subject: x\r\n\r\n.\r\nQUIT\r\n.\r\n",)


def test_chunks_and_data_do_not_mix() -> None:
    driver = ready()
    assert codes(driver.send(b"BDAT 3\r\na\r\n")) == ["250 2.0.0"]
    assert driver.codes("DATA", "RCPT TO:<c@example.net>", "MAIL FROM:<>") == ["503 5.5.1"] * 3
    assert driver.codes("RSET") == ["250 2.0.0"]
    assert codes(driver.send(b"BDAT 3 LAST\r\nb\r\n")) == ["503 5.5.1"]
    assert driver.messages == []


def test_a_chunk_that_comes_out_of_order_is_never_read_as_commands() -> None:
    driver = Driver()
    assert codes(driver.send(b"EHLO x\r\nBDAT 14 LAST\r\nMAIL FROM:<>\r\nNOOP\r\n")) == [
        "250",
        "503 5.5.1",
        "250 2.0.0",
    ]
    assert codes(driver.send(b"MAIL FROM:<>\r\nBDAT 6\r\nRSET\r\n")) == ["250 2.1.0", "554 5.5.1"]


@pytest.mark.parametrize("argument", [b"", b"x", b"-1", b"1 2", b"5 LASTING", b"5LAST"])
def test_a_chunk_of_unknown_size_ends_the_session(argument: bytes) -> None:
    driver = ready()
    assert codes(driver.send(b"BDAT " + argument + b"\r\nNOOP\r\n")) == ["501 5.5.4"]
    assert driver.machine.is_closed


def test_chunks_that_are_too_large_together_are_refused() -> None:
    driver = ready()
    assert codes(driver.send(b"BDAT 998\r\n" + b"x" * 998)) == ["250 2.0.0"]
    assert codes(driver.send(b"BDAT 3 LAST\r\nx\r\nNOOP\r\n")) == ["552 5.3.4", "250 2.0.0"]
    assert driver.messages == []


@pytest.mark.parametrize(
    "wire, content",
    [
        (b"a\nb\n", b"a\r\nb\r\n"),
        (b"\n\n", b"\r\n\r\n"),
        (b"\n.\n", b"\r\n.\r\n"),
        (b"\r\n.\n", b"\r\n.\r\n"),
        (b"\n.\r\n", b"\r\n.\r\n"),
    ],
)
def test_a_bare_lf_in_chunks_becomes_a_line_end(wire: bytes, content: bytes) -> None:
    """Wherever the chunks are cut; dots are as they were, for no end is looked for."""
    for cut in range(len(wire) + 1):
        driver = ready()
        first, rest = wire[:cut], wire[cut:]
        driver.send(b"BDAT %d\r\n%bBDAT %d LAST\r\n%b" % (len(first), first, len(rest), rest))
        assert [sent.content for sent in driver.messages] == [(content,)]


def test_the_size_is_that_of_what_came_and_not_of_its_normal_form() -> None:
    driver = ready()
    assert codes(driver.send(b"DATA\r\n" + b"\n" * 998 + b"\r\n.\r\n")) == ["354", "250 2.0.0"]
    assert driver.messages[0].content == (b"\r\n" * 999,)
    assert codes(ready(driver).send(b"DATA\r\n" + b"\n" * 999 + b"\r\n.\r\n")) == ["354", "552 5.3.4"]
    assert codes(ready(driver).send(b"BDAT 1000 LAST\r\n" + b"\n" * 1000)) == ["250 2.0.0"]
    assert codes(ready(driver).send(b"BDAT 1001 LAST\r\n" + b"\n" * 1001)) == ["552 5.3.4"]


def test_as_many_doubled_dots_as_fit_are_taken_behind_bare_lfs() -> None:
    driver = ready()
    driver.send(b"DATA\r\n")
    for _ in range(499):
        assert driver.send(b"..\n") == []
    assert codes(driver.send(b"\r\n.\r\n")) == ["250 2.0.0"]
    assert driver.messages[0].content == (b".\r\n" * 499 + b"\r\n",)


@pytest.mark.parametrize("content", [b"a\r", b"\r.\r", b"a\rb\r\n", b"a\nb\rc\n", b"\r\r\n"])
def test_a_bare_cr_in_chunks_is_refused(content: bytes) -> None:
    """Wherever the chunks are cut; and what would have been smuggled is never read as a command."""
    smuggled = content + b"MAIL FROM:<evil@example.org>\r\n"
    for cut in range(len(smuggled) + 1):
        driver = ready()
        first, rest = smuggled[:cut], smuggled[cut:]
        driver.send(b"BDAT %d\r\n%bBDAT %d LAST\r\n%b" % (len(first), first, len(rest), rest))
        assert driver.events[-1] == server_events.Rejected("BDAT", server_replies.BARE_CR)
        assert driver.messages == []
        assert driver.codes("NOOP") == ["250 2.0.0"]


def test_the_policy_is_asked_for_its_words_when_a_content_cannot_be_taken() -> None:
    """It hears of the content, and of a size that MAIL announces; the order of the session is the same."""

    def decide(event: server_events.Event) -> values.Reply:
        if isinstance(event, server_events.Rejected):
            return values.Reply(event.reply.code, "other words", event.reply.enhanced)
        return agree(event)

    driver = ready(Driver(decide=decide))
    assert driver.say("DATA", "x" * 1000, ".")[1] == "552 5.3.4 other words"
    assert driver.say("MAIL FROM:<> SIZE=1001") == ["552 5.3.4 other words"]
    assert driver.codes("RCPT TO:<b@example.net>") == ["503 5.5.1"]
    assert ready(driver).send(b"BDAT 3 LAST\r\na\rb") == ["550 5.6.0 other words"]
    assert ready(driver).send(b"BDAT 1001 LAST\r\n" + b"x" * 1001) == ["552 5.3.4 other words"]
    assert driver.messages == []


def test_messages_with_a_bare_cr_are_errors_and_there_is_an_end_to_them() -> None:
    driver = Driver(server_events.Features("mx.example.test", 1000, bad_commands=2))
    for _ in range(2):
        assert codes(ready(driver).send(b"DATA\r\na\rb\r\n.\r\n")) == ["354", "550 5.6.0"]
    assert codes(ready(driver).send(b"DATA\r\na\rb\r\n.\r\nNOOP\r\n")) == ["354", "421 4.7.0"]
    assert driver.machine.is_closed


SESSION = (
    b"EHLO x\r\nFROB\r\nMAIL FROM:<a@example.org> BODY=8BITMIME\r\nRCPT TO:<b@example.net>\r\nDATA\r\n"
    b"Subject: x\r\n\r\n..dot\r\n.\n..\n.x\r\n.\r\n"
    b"MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\nSubject: y\r\n\r\n..\r\nend\r\n.\r\n"
    b"MAIL FROM:<>\r\nRCPT TO:<c@example.net>\r\nBDAT 5\r\n.\r\n\r\nBDAT 3 LAST\r\nx\r\n"
    b"MAIL FROM:<>\r\nRCPT TO:<c@example.net>\r\nDATA\r\n" + b"x" * 2000 + b"\r\n.\r\n"
    b"NOOP " + b"y" * 3000 + b"\r\nAUTH PLAIN\r\nAGpvAHNlY3JldA==\r\nQUIT\r\n"
)  # fmt: skip


@hypothesis.given(cuts=strategies.lists(strategies.integers(0, len(SESSION)), max_size=40))
def test_wherever_the_bytes_are_cut_the_replies_and_the_messages_are_the_same(cuts: list[int]) -> None:
    features = server_events.Features("mx.example.test", 1000, auth=True, auth_without_tls=True)
    whole, pieces = Driver(features), Driver(features)
    expected = whole.send(SESSION)
    places = [0, *sorted(cuts), len(SESSION)]
    said = [line for begin, end in itertools.pairwise(places) for line in pieces.send(SESSION[begin:end])]
    assert said == expected
    assert pieces.events == whole.events
    assert [sent.content for sent in whole.messages] == [
        (b"Subject: x\r\n\r\n.dot\r\n\r\n.\r\nx\r\n",),
        (b"Subject: y\r\n\r\n.\r\nend\r\n",),
        (b".\r\n\r\nx\r\n",),
    ]


EVERYTHING = server_events.Features("mx.example.test", 1000, starttls=True, auth=True, auth_without_tls=True)
COMMANDS = [
    *(b"EHLO x\r\n", b"HELO x\r\n", b"RSET\r\n", b"NOOP\r\n", b"VRFY x\r\n", b"HELP\r\n", b"FROB\r\n", b"\r\n", b"\n"),
    *(b"MAIL FROM:<a@example.org>\r\n", b"MAIL FROM:<> SIZE=2000\r\n", b"MAIL FROM:<\xc3\xbc@x.test> SMTPUTF8\r\n"),
    *(b"RCPT TO:<b@example.net> NOTIFY=NEVER\r\n", b"RCPT TO:<b@example.net> ORCPT=x\r\n", b"DATA\r\n"),
    *(b"Subject: x\r\n\r\n..\r\n.\r\n", b".\r\n", b"\n.\n", b"BDAT 5\r\nhello", b"BDAT 0 LAST\r\n"),
    *(b"BDAT 3 LAST\r\na\r\n",),
    *(b"AUTH PLAIN AGpvAHNlY3JldA==\r\n", b"AUTH LOGIN\r\n", b"am8=\r\n", b"*\r\n", b"x" * 3000, b"BDAT 2000\r\n"),
]  # fmt: skip
REPLIES = re.compile(rb"(?:[2-5][0-9][0-9][ -][ -~]{0,506}\r\n)*")


@hypothesis.given(
    pieces=strategies.lists(strategies.sampled_from(COMMANDS) | strategies.binary(max_size=50), max_size=40),
    cuts=strategies.lists(strategies.integers(0, 5000), max_size=20),
)
def test_whatever_comes_in_whatever_state_is_answered_in_order_and_costs_little(
    pieces: list[bytes], cuts: list[int]
) -> None:
    """STARTTLS is left out: what follows it depends on where the bytes are cut."""
    data = b"".join(pieces)
    whole, parts = Driver(EVERYTHING), Driver(EVERYTHING)
    expected = whole.send(data)
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    said = b""
    for begin, end in itertools.pairwise(places):
        said += "".join(f"{line}\r\n" for line in parts.send(data[begin:end])).encode()
        assert len(parts.machine._buffer) <= max(12_288, 2 * EVERYTHING.message_octets) + end - begin
    assert REPLIES.fullmatch(said)
    assert said.decode().splitlines() == expected
    assert parts.events == whole.events


@hypothesis.given(content=strategies.binary(max_size=300))
def test_content_arrives_line_by_line_or_is_refused(content: bytes) -> None:
    """A client that doubles the dots of all lines, as smtplib does, and ends with CRLF."""
    content += b"\r\n"
    stuffed = re.sub(rb"(?m)^\.", b"..", content)
    driver = ready()
    replies = codes(driver.send(b"DATA\r\n" + stuffed + b".\r\n"))
    if b"\r" in content.replace(b"\r\n", b""):
        assert replies == ["354", "550 5.6.0"]
    else:
        assert replies == ["354", "250 2.0.0"]
        assert driver.messages[0].content == (content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),)
