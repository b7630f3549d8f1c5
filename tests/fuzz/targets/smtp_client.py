"""What a hostile destination says to our SMTP client, from any octets, without sockets.

Holds: nothing is raised; a reply is read the same however it is cut; every recipient of every transaction has one
result; nobody counts as delivered, or in doubt, before the whole message with its final dot was written; what is kept
of a reply is short and printable, and a disposition follows from it.
"""

from typing import Final

from postroad.model.bounces import disposition
from postroad.protocol.smtp import client, values
from tests.fuzz import target

ENVELOPES: Final = (
    values.MailTransaction("a@example.com", ("b@example.org", "c@example.org"), (b"Subject: x\r\n\r\n", b".dot\r\n")),
    values.MailTransaction(
        "", ("jürgen@example.org", "bad address", "d@example.org"), (b"\xc3\xbc\r\n",), is_8bit=True
    ),
    values.MailTransaction("a@example.com", ("jürgen@example.org",), (b"x\r\n",), needs_smtputf8=True),
)


def check(data: bytes) -> None:
    assert _read([data]) == _read(target.pieces(data))
    _converse(data.splitlines(keepends=True))
    _converse([data[at : at + 7] for at in range(0, len(data), 7)])
    _converse([data])


def _read(pieces: list[bytes]) -> tuple[list[values.Received], bool]:
    """The replies in the octets, and whether something followed that is none."""
    reader = values.ReplyReader()
    found: list[values.Received] = []
    try:
        for piece in pieces:
            found += reader.read(piece)
    except values.BadReply as problem:
        _check_error_text(str(problem))
        return found, True
    return found, False


def _check_error_text(trouble: str) -> None:
    assert target.is_sayable(trouble, most=300)


def _converse(pieces: list[bytes]) -> None:
    """Send one message after the other, to somebody who says these things."""
    playing = client.Client("mail.example.com", starttls=True)
    left, written, current = list(ENVELOPES), b"", None
    for piece in pieces:
        playing.receive(piece)
        written += _written(playing)
        for _ in range(2 * len(ENVELOPES)):
            if playing.step is client.HANDSHAKE:
                playing.secured()
            elif playing.step in (client.IDLE, client.CLOSED) and current is not None:
                _check_result(playing, current, written)
                current = None
            elif playing.step is client.IDLE and left:
                current, written = left.pop(), b""
                playing.begin(current)
            elif playing.step is client.IDLE:
                playing.quit()
            else:
                break
            written += _written(playing)
    playing.fail(values.Cause.CONNECTION_LOST, "the connection was lost")
    assert playing.step is client.CLOSED
    assert not _written(playing)
    if current is not None:
        _check_result(playing, current, written)
    if playing.failure is not None:
        _check_delivery_result(playing.failure)


def _written(playing: client.Client) -> bytes:
    """What the client has to say now."""
    pieces = []
    while data := playing.next_bytes():
        pieces.append(data)
    return b"".join(pieces)


def _check_result(playing: client.Client, transaction: values.MailTransaction, written: bytes) -> None:
    results = playing.results()
    assert len(results) == len(transaction.recipients)
    is_complete = client.transparent(transaction.content) + client.FINAL_DOT in written
    for recipient, result in zip(transaction.recipients, results, strict=True):
        verdict = _check_delivery_result(result).verdict
        if verdict is disposition.Verdict.DELIVERED or result.in_doubt:
            assert is_complete
            assert b"RCPT TO:<" + recipient.encode() + b">" in written


def _check_delivery_result(result: values.RecipientResult) -> disposition.Disposition:
    assert result.response_text.isprintable()
    if result.reply is not None:
        assert 200 <= result.reply.code <= 599
        assert len(result.reply.text) <= values.MAX_TEXT_CHARACTERS
        disposition.find_retry_after(result.reply.text)
    return disposition.classify(result)


HELLO: Final = (
    b"220 mx.example.org ESMTP\r\n"
    b"250-mx.example.org\r\n250-PIPELINING\r\n250-SIZE 1000000\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n"
)

TARGET: Final = target.Target(
    name="smtp_client",
    open=target.plain(check),
    watches=("protocol/smtp/client", "protocol/smtp/values.py", "model/bounces/disposition.py"),
    seeds=(
        HELLO + b"250 2.1.0 ok\r\n250 2.1.5 ok\r\n550 5.1.1 no such user\r\n354 go\r\n250 2.0.0 queued\r\n",
        HELLO + b"250 ok\r\n250 ok\r\n354 go\r\n250 queued\r\n" * 3 + b"221 bye\r\n",
        b"220 x\r\n250-x\r\n250 STARTTLS\r\n220 go\r\n250-x\r\n250 SIZE 5\r\n552 5.3.4 too big\r\n",
        (
            b"220 x\r\n502 no\r\n250 hello\r\n250 ok\r\n450 4.2.0 try again in 300 seconds\r\n250 ok\r\n354 go\r\n"
            b"421 4.3.2 closing\r\n"
        ),
        b"554-no\r\n554 5.7.1 blocked\r\n",
        b"220-a\r\n250 b\r\n",
        b"220 x\n250 x\n250 ok\n250 ok\n354 go\n451 \xff\xfe\x00 later\n",
        b"250-" + b"x" * 2100 + b"\r\n",
        b"220 x\r\n" + b"250-x\r\n" * 110 + b"250 x\r\n",
    ),
    max_octets=3_000,
    steps=(8_000, 150),
)
