"""A session with the submission door, from any octets behind the log-in: server, rules of finished messages, store.

Holds: nothing went wrong in the log, and no reply says that we are at fault; each 250 to a message names one that is on
disk, as a whole message from a domain of the account, without a bare CR or LF and without a field that is dropped.
"""

import base64
import inspect
import re
from typing import Final

from postroad.model import limits
from postroad.network import smtp_session
from postroad.protocol import message_reading
from postroad.protocol.smtp import server, server_events, values
from postroad.services import raw_compose
from postroad.submission import door, listening
from tests.fuzz import target
from tests.fuzz.targets import house as houses
from tests.fuzz.targets import smtp_server
from tests.protocol import mail_corpus
from tests.services import raw_mails

_QUEUED: Final = re.compile(r"queued as (em_[0-9a-f]{28})")


async def check(house: houses.House, data: bytes) -> None:
    session = server_events.Session("192.0.2.1")
    features = server_events.Features(
        name="mail.example.com",
        message_octets=listening.MESSAGE_OCTETS,
        recipients=limits.UNIQUE_RECIPIENTS,
        bad_logins=listening.BAD_LOGINS,
        auth=True,
        auth_without_tls=True,
    )
    playing = server.Server(features, session)
    policy = door.Door(house.ctx, session, name="mail.example.com", log=house.lines.logger())
    login = base64.b64encode(f"\0{house.username}\0{house.password}".encode())
    playing.receive(smtp_server.HELLO + b"AUTH PLAIN " + login + b"\r\n" + data)
    queued: list[str] = []
    while (event := playing.next_event()) is not None:
        reply = await _answer(policy, event)
        assert reply is not None
        if isinstance(event, server_events.Message) and reply.code == 250:
            queued += _QUEUED.findall(reply.text)
        playing.reply(reply)
    policy.closed()
    assert b"internal_error" not in playing.take_output()
    for message_id in queued:
        _judge(await house.body(message_id))


async def _answer(policy: door.Door, event: server_events.Event) -> values.Reply | None:
    if isinstance(event, server_events.StartTls):
        return values.Reply(502, "TLS is not offered here")
    verdict = smtp_session.ask(policy, event)
    return await verdict if inspect.isawaitable(verdict) else verdict


def _judge(stored: bytes) -> None:
    message = message_reading.read(stored)
    assert not target.has_bare_line_ends(stored)
    assert not {field.key for field in message.fields} & raw_compose.DROPPED
    assert len(message.all("from")) == 1
    assert "example.com" in message.all("from")[0].lower()


def _session(content: bytes, *, more: bytes = b"") -> bytes:
    return smtp_server.ENVELOPE + b"DATA\r\n" + content.replace(b"\r\n.", b"\r\n..") + b".\r\n" + more


TARGET: Final = target.Target(
    name="submission",
    open=houses.whole_way(check),
    watches=(
        "submission/",
        "services/submit",
        "services/raw_",
        "services/rules.py",
        "services/accepting.py",
        "protocol/",
    ),
    seeds=(
        *(_session(content) for content in mail_corpus.MAIL.values()),
        _session(raw_mails.plain().content, more=_session(raw_mails.plain("Idempotency-Key: k").content)),
        _session(raw_mails.plain("X-Service-Template: welcome", 'X-Service-Variables: {"name":"A","order":1}').content),
        _session(b"From: a@elsewhere.example\r\n\r\n"),
        (
            b"MAIL FROM:<x@elsewhere.example>\r\nRCPT TO:<b@example.org>\r\n"
            b"BDAT 33 LAST\r\nFrom: shop@example.com\r\n\r\nHello\r\n"
        ),
        b"AUTH PLAIN AGEAYg==\r\nMAIL FROM:<>\r\nRCPT TO:<bad>\r\nDATA\r\n",
    ),
    most_octets=3_000,
    steps=(80_000, 600),
)
