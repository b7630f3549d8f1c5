"""A session with our SMTP server, from any octets, without sockets.

Holds: nothing is raised; the same octets get the same replies and make the same messages however they are cut; every
line of a reply is one, in ASCII and within 512 octets; no message is larger, has more recipients or ends of lines of
its own kind; there are no more messages than ends of content, so none was smuggled.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from postroad.protocol.smtp import server, server_events, values
from tests.fuzz import target

# Small, so that a short input can come to every bound.
MESSAGE_OCTETS: Final = 300
RECIPIENTS: Final = 3
_REPLY: Final = re.compile(rb"[2-5][0-9]{2}[ -][ -~]*")
_LAST_CHUNK: Final = re.compile(rb"BDAT", re.IGNORECASE)


@dataclass(slots=True)
class SessionResult:
    """What came of a session."""

    output: bytes = b""
    messages: list[values.MailTransaction] = field(default_factory=list)
    events: int = 0


def check(data: bytes) -> None:
    whole = run_session([data], starttls=False)
    assert run_session(target.pieces(data), starttls=False) == whole
    _check_result(whole, data)
    # What follows STARTTLS depends on when it comes, so this one is not compared.
    _check_result(run_session(data.splitlines(keepends=True), starttls=True), data)


def run_session(pieces: list[bytes], *, starttls: bool) -> SessionResult:
    """Play the client's part, piece by piece."""
    features = server_events.Features(
        name="mx.example.com",
        message_octets=MESSAGE_OCTETS,
        recipients=RECIPIENTS,
        bad_commands=8,
        bad_logins=2,
        idle_commands=30,
        starttls=starttls,
        auth=True,
        auth_without_tls=True,
    )
    playing, result = server.Server(features, server_events.Session("192.0.2.1")), SessionResult()
    playing.greet(values.Reply(220, "mx.example.com"))
    for piece in pieces:
        playing.receive(piece)
        while (event := playing.next_event()) is not None:
            result.events += 1
            if isinstance(event, server_events.LargeContent):
                event = playing.load_content()
                assert event is not None
            if isinstance(event, server_events.StartTls):
                result.output += playing.take_output()
                playing.secured()
            else:
                playing.reply(_decide(event, result))
        if playing.is_closed:
            break
    result.output += playing.take_output()
    return result


def _decide(event: server_events.Event, result: SessionResult) -> values.Reply:
    match event:
        case server_events.Authenticate(credentials):
            is_right = credentials.password == "pass"
            return values.Reply(235, "welcome", "2.7.0") if is_right else values.Reply(535, "wrong", "5.7.8")
        case server_events.Rejected(_, reply):
            return reply
        case server_events.Data():
            return values.Reply(354, "go on")
        case server_events.Recipient(path) if path.address.startswith("no"):
            return values.Reply(550, f"there is no {path.address}", "5.1.1")
        case server_events.Message(transaction):
            result.messages.append(transaction)
            return values.Reply(250, "taken", "2.0.0")
        case _:
            return values.Reply(250, "well", "2.0.0")


def _check_result(result: SessionResult, data: bytes) -> None:
    assert result.output.endswith(b"\r\n")
    for line in result.output.removesuffix(b"\r\n").split(b"\r\n"):
        assert _REPLY.fullmatch(line), f"no reply: {line!r}"
        assert len(line) + 2 <= 512
    assert len(result.messages) <= data.count(b"\r\n.\r\n") + len(_LAST_CHUNK.findall(data))
    for transaction in result.messages:
        assert 1 <= len(transaction.recipients) <= RECIPIENTS
        assert transaction.size <= 2 * MESSAGE_OCTETS  # each LF may have got a CR
        assert not target.has_bare_line_ends(b"".join(transaction.content))
    assert result.events <= data.count(b"\n") + 1


HELLO: Final = b"EHLO client.example.org\r\n"
ENVELOPE: Final = b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.org>\r\n"

TARGET: Final = target.Target(
    name="smtp_server",
    open=target.plain(check),
    watches=("protocol/smtp/",),
    seeds=(
        HELLO + ENVELOPE + b"DATA\r\nSubject: x\r\n\r\n..dot\r\n.\r\nQUIT\r\n",
        HELLO + ENVELOPE + b"BDAT 5\r\nab\r\nxBDAT 2 LAST\r\n\r\nRSET\r\nNOOP\r\n",
        HELLO + b"AUTH PLAIN AHVzZXIAcGFzcw==\r\n" + ENVELOPE + b"DATA\r\nx\n.\r\n.\r\n",
        HELLO + b"AUTH LOGIN\r\ndXNlcg==\r\ncGFzcw==\r\nMAIL FROM:<> SIZE=10 BODY=8BITMIME SMTPUTF8\r\n",
        HELLO
        + b"STARTTLS\r\n"
        + HELLO
        + b"MAIL FROM:<a@b.cd> RET=HDRS ENVID=x\r\nRCPT TO:<x@y.zz> NOTIFY=NEVER ORCPT=rfc822;x\r\n",
        b"HELO x\r\nVRFY a\r\nEXPN b\r\nHELP\r\nDATA\r\nRCPT TO:<a@b.cd>\r\nMAIL FROM:a@b.cd\r\nGET / HTTP/1.1\r\n",
        HELLO
        + ENVELOPE
        + b"RCPT TO:<c@d.ef>\r\nRCPT TO:<no@d.ef>\r\nRCPT TO:<g@h.ij>\r\nRCPT TO:<k@l.mn>\r\nDATA\r\n"
        + b"x" * 400
        + b"\r\n.\r\n",
        HELLO + b'MAIL FROM:<"a b"@example.com>\r\nRCPT TO:<@x,@y:"\\""@example.com>\r\nRCPT TO:<Postmaster>\r\n',
        HELLO + "MAIL FROM:<jürgen@bücher.example> SMTPUTF8\r\n".encode() + b"x" * 2100 + b"\r\nAUTH PLAIN\r\n*\r\n",
    ),
    max_octets=1_500,
    steps=(8_000, 150),
)
