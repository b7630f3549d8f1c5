"""A session with the submission listener, with any octets after the login: server, rules of finished messages, store.

Holds: nothing went wrong in the log, and no reply says that we are at fault; each 250 to a message names one that is on
disk, as a whole message from a domain of the account, without a bare CR or LF and without a field that is dropped.
"""

import base64
import inspect
import re
from typing import Final

from postroad.concurrency import fairness
from postroad.mail.accept import submit_mime
from postroad.model.mail import limits
from postroad.network.smtp import smtp_server as smtp_policy
from postroad.protocol.mime import message_parser
from postroad.protocol.smtp import server, server_events, values
from postroad.submission import listeners
from postroad.submission import session as submission_session
from tests.fuzz import target
from tests.fuzz.targets import service as services
from tests.fuzz.targets import smtp_server
from tests.protocol.mime import mail_corpus
from tests.services import mime_messages

_QUEUED: Final = re.compile(r"queued as (em_[0-9a-f]{28})")


async def check(service: services.WholeService, data: bytes) -> None:
    session = server_events.Session("192.0.2.1")
    features = server_events.Features(
        name="mail.example.com",
        message_octets=limits.MIME_BYTES,
        recipients=limits.UNIQUE_RECIPIENTS,
        bad_logins=listeners.MAX_FAILED_LOGINS,
        auth=True,
        auth_without_tls=True,
    )
    playing = server.Server(features, session)
    policy = submission_session.SubmissionSession(
        service.ctx,
        session,
        name="mail.example.com",
        log=service.lines.logger(),
        delays=fairness.ResponseDelays(),
    )
    login = base64.b64encode(f"\0{service.username}\0{service.password}".encode())
    playing.receive(smtp_server.HELLO + b"AUTH PLAIN " + login + b"\r\n" + data)
    queued: list[str] = []
    while (event := playing.next_event()) is not None:
        if isinstance(event, server_events.LargeContent):
            event = playing.load_content()
            assert event is not None
        reply = await _answer(policy, event)
        assert reply is not None
        if isinstance(event, server_events.Message) and reply.code == 250:
            queued += _QUEUED.findall(reply.text)
        playing.reply(reply)
    policy.closed()
    assert b"internal_error" not in playing.take_output()
    for message_id in queued:
        _check_result(await service.body(message_id))


async def _answer(policy: submission_session.SubmissionSession, event: server_events.Event) -> values.Reply | None:
    if isinstance(event, server_events.StartTls):
        return values.Reply(502, "TLS is not offered here")
    verdict = smtp_policy.dispatch(policy, event)
    return await verdict if inspect.isawaitable(verdict) else verdict


def _check_result(stored: bytes) -> None:
    message = message_parser.read(stored)
    assert not target.has_bare_line_ends(stored)
    assert not {field.key for field in message.fields} & submit_mime.DROPPED
    assert len(message.all("from")) == 1
    assert "example.com" in message.all("from")[0].lower()


def _session(content: bytes, *, more: bytes = b"") -> bytes:
    return smtp_server.ENVELOPE + b"DATA\r\n" + content.replace(b"\r\n.", b"\r\n..") + b".\r\n" + more


TARGET: Final = target.Target(
    name="submission",
    open=services.with_service(check),
    watches=(
        "submission/",
        "mail/accept/submit",
        "mail/accept/mime_validation.py",
        "mail/accept/validation.py",
        "mail/accept/transaction.py",
        "protocol/",
    ),
    seeds=(
        *(_session(content) for content in mail_corpus.MAIL.values()),
        _session(mime_messages.plain().content, more=_session(mime_messages.plain("Idempotency-Key: k").content)),
        _session(
            mime_messages.plain("X-Service-Template: welcome", 'X-Service-Variables: {"name":"A","order":1}').content
        ),
        _session(b"From: a@elsewhere.example\r\n\r\n"),
        (
            b"MAIL FROM:<x@elsewhere.example>\r\nRCPT TO:<b@example.org>\r\n"
            b"BDAT 33 LAST\r\nFrom: shop@example.com\r\n\r\nHello\r\n"
        ),
        b"AUTH PLAIN AGEAYg==\r\nMAIL FROM:<>\r\nRCPT TO:<bad>\r\nDATA\r\n",
    ),
    max_octets=3_000,
    steps=(80_000, 600),
)
