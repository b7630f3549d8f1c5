"""Security cases F1, F2, F8 and F15: one message in is one message out, whatever its line ends and its size.

Through the whole service: what the client is answered, what is in the store, and what arrives at the next host, octet
by octet. `N` are neighbours of the written cases.
"""

import email
import itertools
import tracemalloc

import pytest

from postroad.model.mail import limits
from tests.network import recording_listener
from tests.reliability import profile
from tests.security.whole_service import (
    ADA,
    BEGIN,
    HEADER,
    MESSAGE,
    SENDER,
    WAYS,
    WholeService,
    assert_lines,
    hand_over,
)

EVE = b"MAIL FROM:<eve@example.com>\r\nRCPT TO:<victim@example.net>\r\nDATA\r\n"
SMUGGLED = EVE + b"From: eve@example.com\r\nSubject: smuggled\r\n\r\nBelieve me.\r\n"

# `make test`: each way and each verb, and both verbs in the clear. `make test-all`: every pair.
WAYS_AND_VERBS = (
    tuple(itertools.product(WAYS, ("DATA", "BDAT")))
    if profile.IS_LONG
    else (("clear", "DATA"), ("clear", "BDAT"), ("starttls", "BDAT"), ("tls", "DATA"))
)
# Each would be the end of the message for a host that is not strict.
FALSE_ENDS = {
    "F1": [b"\r.\r", b"\r\n.\r"],
    "N": [
        b"\r.\r\n",
        b"\r.\n",
        b"\n.\r",
        b"\r\n.\r\r\n",
        b"\r\n.\x00\r\n",
        b"\r\n\x00.\r\n",
        b"\r\n.\r\x00\n",
    ],
}
# The same with bare LFs only, which are normalised.
FALSE_LF_ENDS = [b"\n.\n", b"\r\n.\n", b"\n.\r\n", b"\n\n.\n\n"]
# No line ends for SMTP, though some programs take them for such: content like any other.
NO_ENDS = [
    b"\x0b.\x0b",
    b"\x0c.\x0c",
    b"\xc2\x85.\xc2\x85",
    b"\xe2\x80\xa8.\xe2\x80\xa8",
    b"\r\n.\xe2\x80\xa8",
    b"\r\n. \r\n",
]


async def hand_in_raw(service: WholeService, content: bytes, *, way: str, verb: str) -> bytes:
    """Send octets as they are, an end behind them, and hear the one reply that they get."""
    async with service.connect(way) as connection:
        await connection.ask(BEGIN, replies=2)
        if verb == "DATA":
            await connection.ask(b"DATA\r\n")
            (reply,) = await connection.ask(content + b"\r\n.\r\n")
        else:
            (reply,) = await connection.ask(b"BDAT %d LAST\r\n%b" % (len(content), content))
        # If anything had been taken for a command, its answer would stand before this one.
        assert await connection.ask(b"NOOP\r\n") == [b"250 2.0.0 OK"]
    return reply


@pytest.mark.parametrize("way,verb", WAYS_AND_VERBS)
@pytest.mark.parametrize("case", FALSE_ENDS)
async def test_f1_a_false_end_is_refused_and_smuggles_nothing(
    service: WholeService, case: str, way: str, verb: str
) -> None:
    """F1: DATA with a bare CR before or behind a dot, then MAIL FROM: 5xx, and never two messages. BDAT alike."""
    for end in FALSE_ENDS[case]:
        reply = await hand_in_raw(service, MESSAGE.removesuffix(b"\r\n") + end + SMUGGLED, way=way, verb=verb)
        assert reply.startswith(b"550 5.6.0 invalid_request: "), (end, reply)
        assert await service.stored() == [], end
    await service.hand_in(MESSAGE, way=way)
    (arrived,) = await service.settled()
    assert (arrived.recipients, arrived.taken.recipients) == ([ADA], ["RCPT TO:<ada@example.net>"])


@pytest.mark.parametrize("way,verb", WAYS_AND_VERBS)
async def test_f1_a_false_end_of_bare_lfs_is_content_of_one_message(service: WholeService, way: str, verb: str) -> None:
    """F1: DATA with bare LFs around a dot, then MAIL FROM: one message that holds it all, in lines that end in CRLF."""
    for number, end in enumerate(FALSE_LF_ENDS, start=1):
        reply = await hand_in_raw(service, MESSAGE.removesuffix(b"\r\n") + end + SMUGGLED, way=way, verb=verb)
        assert reply.startswith(b"250 2.0.0 OK: queued as em_"), (end, reply)
        assert len(await service.stored()) == number, end
    for arrived in await service.settled():
        assert (arrived.recipients, arrived.taken.recipients) == ([ADA], ["RCPT TO:<ada@example.net>"])
        assert_lines(arrived.taken.wire)
        end, _, smuggled = arrived.taken.content.partition(b"It is on its way.")[2].partition(EVE)
        assert smuggled
        # By DATA the lone dot is one that was doubled; in a chunk it is text.
        assert set(end.split(b"\r\n")) == ({b""} if verb == "DATA" else {b"", b"."})


@pytest.mark.parametrize("way,verb", WAYS_AND_VERBS)
async def test_f1_a_false_end_is_no_end_however_the_octets_are_cut(service: WholeService, way: str, verb: str) -> None:
    """F1: the same when each octet around the dot comes in a packet of its own, or in a chunk of its own."""
    for end in FALSE_ENDS["F1"] + FALSE_LF_ENDS:
        async with service.connect(way) as connection:
            await connection.ask(BEGIN, replies=2)
            if verb == "DATA":
                await connection.ask(b"DATA\r\n")
                for piece in (MESSAGE, *(bytes([octet]) for octet in end), SMUGGLED):
                    await connection.send(piece)
                (reply,) = await connection.ask(b"\r\n.\r\n")
            else:
                pieces = (MESSAGE.removesuffix(b"\r\n"), *(bytes([octet]) for octet in end), SMUGGLED)
                for piece in pieces:
                    (heard,) = await connection.ask(b"BDAT %d\r\n%b" % (len(piece), piece))
                    assert heard.startswith(b"250 ")
                (reply,) = await connection.ask(b"BDAT 0 LAST\r\n")
            assert await connection.ask(b"NOOP\r\n") == [b"250 2.0.0 OK"]
        assert reply.startswith(b"250 " if end in FALSE_LF_ENDS else b"550 5.6.0 "), (end, reply)
    assert [arrived.recipients for arrived in await service.settled()] == [[ADA]] * len(FALSE_LF_ENDS)


@pytest.mark.parametrize("way", WAYS)
async def test_n_the_true_end_inside_a_chunk_is_content_and_leaves_as_one_message(
    service: WholeService, way: str
) -> None:
    """N of F1: a chunk may hold CRLF dot CRLF; on the way out it is no end either."""
    content = MESSAGE + b".\r\n" + SMUGGLED + b".\r\nQUIT\r\n"
    assert (await hand_in_raw(service, content, way=way, verb="BDAT")).startswith(b"250 2.0.0 OK: queued as em_")
    (arrived,) = await service.settled()
    assert arrived.taken.recipients == ["RCPT TO:<ada@example.net>"]
    assert arrived.taken.content.endswith(content)
    assert b"\r\n..\r\nMAIL FROM:" in arrived.taken.wire
    assert [verb for verb in service.sink.verbs() if verb in {"MAIL", "RCPT", "CONTENT"}] == ["MAIL", "RCPT", "CONTENT"]


@pytest.mark.parametrize("verb", ["DATA", "BDAT"])
async def test_n_what_only_looks_like_a_line_end_is_content(service: WholeService, verb: str) -> None:
    """N of F1: vertical tab, form feed, next line, line separator: one message, with the rest in it."""
    for number, text in enumerate(NO_ENDS, start=1):
        content = MESSAGE.removesuffix(b"\r\n") + text + SMUGGLED
        reply = await hand_in_raw(service, content, way="clear", verb=verb)
        assert reply.startswith(b"250 2.0.0 OK: queued as em_"), (text, reply)
        assert len(await service.stored()) == number
    for arrived in await service.settled():
        assert arrived.recipients == [ADA]
        body = email.message_from_bytes(arrived.taken.content).get_payload(decode=True)
        assert isinstance(body, bytes)
        assert b"Believe me." in body


async def test_n_no_command_behind_a_message_is_taken_for_part_of_it(service: WholeService) -> None:
    """N of F1: pipelined behind the true end, commands are commands, and each message has its own recipients."""
    second = BEGIN.replace(b"ada@", b"bob@") + b"DATA\r\n"
    async with service.connect() as connection:
        replies = await connection.ask(
            BEGIN + b"DATA\r\n" + MESSAGE + b".\r\n" + second + MESSAGE + b".\r\nQUIT\r\n", replies=9
        )
    assert [reply[:3] for reply in replies] == [b"250", b"250", b"354", b"250"] * 2 + [b"221"]
    assert sorted(arrived.recipients for arrived in await service.settled()) == [[ADA], ["bob@example.net"]]


# F2: what leaves the service.

UGLY = ".\n..two\n.\nRCPT TO:<eve@example.net>\r.\rMAIL FROM:<eve@example.net>\r\n.\r\n\r.\n\n.\n.end\n."


@pytest.mark.parametrize("member", ["text", "html"])
async def test_f2_only_crlf_and_doubled_dots_leave_for_a_body_by_http(service: WholeService, member: str) -> None:
    """F2: a body with bare LF, bare CR and lines of dots, over HTTP: at the sink only CRLF, each first dot doubled."""
    members = {"text": None, member: UGLY}
    assert (await service.post(**members)).status_code == 202
    (arrived,) = await service.settled()
    assert_lines(arrived.taken.wire)
    assert service.sink.verbs().count("MAIL") == service.sink.verbs().count("RCPT") == 1


@pytest.mark.parametrize("verb", ["DATA", "BDAT"])
async def test_f2_lines_of_dots_leave_as_they_came_by_smtp(service: WholeService, verb: str) -> None:
    """F2: over SMTP a bare CR is refused; dots arrive as they were, and are doubled on the wire."""
    body = b".\r\n..two\r\n.\r\nRCPT TO:<eve@example.net>\r\n...\r\n\r\n.\r\n.end\r\n"
    assert (await service.hand_in(HEADER + b"\r\n" + body, verb=verb)).startswith("250 ")
    (arrived,) = await service.settled()
    assert arrived.taken.content.endswith(b"\r\n\r\n" + body)
    assert arrived.taken.wire.endswith(b"\r\n\r\n" + (b"\r\n" + body).replace(b"\r\n.", b"\r\n..")[2:])
    bare = HEADER + b"\r\n" + UGLY.encode() + b"\r\n"
    assert (await service.hand_in(bare, verb=verb)).startswith("550 5.6.0 ")
    assert len(await service.settled()) == 1


# F8: size.

MEBIBYTE = 1024 * 1024
# Twice what a message may have, for the buffer while it grows, and what both ends of the connection hold.
MAX_MEMORY = 2 * limits.MIME_BYTES + 16 * MEBIBYTE


async def pour(connection: recording_listener.Connection, octets: int) -> None:
    """One line without an end."""
    piece = b"x" * (256 * 1024)
    for _ in range(octets // len(piece)):
        await connection.send(piece)


@pytest.mark.parametrize("verb", ["DATA", "BDAT"])
@pytest.mark.parametrize("where", ["header", "body"])
async def test_f8_a_line_of_a_hundred_megabytes_is_refused_and_costs_no_memory(
    service: WholeService, where: str, verb: str
) -> None:
    """F8 (and G7's header of 100 MB): a single line of 100 MB: 552, memory flat, and the session goes on."""
    octets = 100 * MEBIBYTE
    head = HEADER + (b"X-Long: " if where == "header" else b"\r\n")
    async with service.connect() as connection:
        await connection.ask(BEGIN, replies=2)
        if verb == "DATA":
            await connection.ask(b"DATA\r\n")
        else:
            await connection.send(b"BDAT %d LAST\r\n" % (len(head) + octets))
        await connection.send(head)
        tracemalloc.start()
        try:
            await pour(connection, octets)
            if verb == "DATA":
                await connection.send(b"\r\n.\r\n")
            reply = await connection.reply()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert reply.startswith(b"552 5.3.4 payload_too_large: ")
        assert peak < MAX_MEMORY
        await connection.ask(BEGIN + b"DATA\r\n", replies=3)
        assert (await hand_over(connection, MESSAGE)).startswith("250 ")
    assert len(await service.settled()) == 1


async def test_f8_a_command_line_without_an_end_is_refused_and_costs_no_memory(service: WholeService) -> None:
    """F8, for commands: 100 MB before the first line end are one bad command."""
    async with service.connect() as connection:
        tracemalloc.start()
        try:
            await connection.send(b"MAIL FROM:<")
            await pour(connection, 100 * MEBIBYTE)
            (reply,) = await connection.ask(b"\r\n")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert reply.startswith(b"500 5.5.2 ")
        assert peak < 16 * MEBIBYTE
        assert await connection.ask(b"NOOP\r\n") == [b"250 2.0.0 OK"]


def padded(octets: int) -> bytes:
    """A message of exactly so many octets."""
    lines, rest = divmod(octets - len(MESSAGE) - 2, 1000)
    return MESSAGE + (b"x" * 998 + b"\r\n") * lines + b"x" * rest + b"\r\n"


@pytest.mark.parametrize("verb", ["DATA", "BDAT"])
async def test_f8_a_message_as_large_as_may_be_passes_and_one_octet_more_does_not(
    service: WholeService, verb: str
) -> None:
    """F8: one byte over the announced SIZE of 10 MiB; the trace that is added does not count."""
    assert (await service.hand_in(padded(1000), verb=verb)).startswith("250 ")
    ((first, _, _),) = await service.stored()
    trace = first.size - 1000
    assert (await service.hand_in(padded(10_485_760), verb=verb)).startswith("250 ")
    for too_large in (10_485_761, 10_485_760 + 64 * 1024):
        assert (await service.hand_in(padded(too_large), verb=verb)).startswith("552 5.3.4 payload_too_large: ")
    assert sorted(arrived.message.size for arrived in await service.settled()) == [first.size, 10_485_760 + trace]


async def test_f8_a_lie_about_the_size_helps_nobody(service: WholeService) -> None:
    """F8: SIZE= says little and much comes: 552. SIZE= says too much: 552 at once. SIZE= is no number: 501."""
    mail = b"MAIL FROM:<%b> SIZE=%b\r\n"
    little = mail % (SENDER.encode(), b"10") + b"RCPT TO:<ada@example.net>\r\n"
    too_much = padded(10_485_761)
    assert (await service.hand_in(too_much, begin=little)).startswith("552 5.3.4 payload_too_large: ")
    async with service.connect() as connection:
        for size in (10_485_761, 2**31, 2**32, 2**63, 2**64, 10**19):
            (reply,) = await connection.ask(mail % (SENDER.encode(), b"%d" % size))
            assert reply.startswith(b"552 5.3.4 payload_too_large: "), size
            assert (await connection.ask(b"RCPT TO:<ada@example.net>\r\n"))[0].startswith(b"503 ")
        for text in (b"-1", b"0x10", b"1e3", b"", b"9" * 100, "１".encode()):
            (reply,) = await connection.ask(mail % (SENDER.encode(), text))
            assert reply[:1] == b"5", text
    assert await service.settled() == []


async def test_f8_sizes_of_chunks_that_lie_are_refused(service: WholeService) -> None:
    """F8, for BDAT: a chunk of an impossible size ends the session, for nobody knows where commands begin again."""
    for size in (b"-1", b"99999999999999999999999999", b"0x10", b""):
        async with service.connect() as connection:
            await connection.ask(BEGIN, replies=2)
            (reply,) = await connection.ask(b"BDAT %b LAST\r\n" % size)
            assert reply[:1] == b"5" or reply[:3] == b"421", size
            await connection.send(MESSAGE)
            assert b"250" not in await connection.rest()
    assert await service.settled() == []


# F15: loops.


async def test_f15_a_hundred_received_fields_are_a_loop(service: WholeService) -> None:
    """F15: 100 `Received:` fields: 554, nothing queued; with one fewer it passes, and ours is the hundredth."""
    received = b"Received: by somewhere.example; Mon, 1 Jan 2024 00:00:00 +0000\r\n"
    for name in (received, received.lower(), received.replace(b"Received", b"RECEIVED")):
        assert (await service.hand_in(name * 100 + MESSAGE)).startswith("554 5.4.6 invalid_request: Received: ")
    assert await service.stored() == []
    assert (await service.hand_in(received * 99 + MESSAGE)).startswith("250 ")
    (arrived,) = await service.settled()
    assert arrived.names.count("Received") == 100
