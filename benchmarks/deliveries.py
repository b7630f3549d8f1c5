"""Send a number of messages through a server and wait until it has brought every one to the sink and knows it.

The same steps for Postroad and for its peers: an injector sends, the sink counts, and when the sink has everything the
server is asked what it has not finished: credits that are still reserved, or files in the queue. The sink's count is
read often, because that costs nothing; the server is asked only at the end.
"""

import contextlib
import dataclasses
import pathlib
import time
import typing

from benchmarks import backlog, many_accounts, message
from benchmarks.injectors import http, injection, smtp
from benchmarks.peers import mail_servers, opendkim, postroad, smtp_sink, stores

POLL_SECONDS = 0.02
# Nothing arrives for this long: something is lost, or waits for its next attempt.
STALL_SECONDS = 30.0


class Contender(typing.Protocol):
    """A server under test, with its injector."""

    def sending(self, run: str, *, messages: int) -> contextlib.AbstractContextManager[injection.Sending]:
        """Send while the block runs. No message of one run is one of another's."""

    def unfinished(self) -> int:
        """How much the server still has to do; 0 when every message is recorded as delivered."""

    def processes(self) -> typing.Mapping[str, typing.Sequence[int]]:
        """The processes whose costs count, by the part of the figures that they belong to."""

    def differences(self, *, delivered: int) -> list[str]:
        """What the server's counts say otherwise, when `delivered` messages have arrived in all runs together."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A run that is over: seconds from the injector's start until everything had arrived and was recorded."""

    seconds: float
    sent: injection.Injection


def deliver(
    contender: Contender,
    sink: smtp_sink.Sink,
    *,
    run: str,
    messages: int,
    recipients: int = 1,
    stall_seconds: float = STALL_SECONDS,
) -> Delivered:
    """Send `messages` to so many recipients each, and wait for all of them; TimeoutError when some do not arrive."""
    total = sink.messages() + messages * recipients
    began = time.monotonic()
    stalled = None
    with contender.sending(run, messages=messages) as sending:
        try:
            _wait(contender, sink, total=total, stall_seconds=stall_seconds)
        except TimeoutError as problem:
            stalled = problem
        seconds = time.monotonic() - began
    if stalled is not None:
        raise TimeoutError(f"{stalled}; {sending.ended().failed} were refused or not answered")
    return Delivered(seconds=seconds, sent=sending.ended())


def _wait(contender: Contender, sink: smtp_sink.Sink, *, total: int, stall_seconds: float) -> None:
    arrived, give_up_at = 0, time.monotonic() + stall_seconds
    while (count := sink.messages()) < total or contender.unfinished():
        if count > arrived:
            arrived, give_up_at = count, time.monotonic() + stall_seconds
        if time.monotonic() > give_up_at:
            raise TimeoutError(
                f"{count} of {total} messages have arrived, {contender.unfinished()} are not finished, and nothing has "
                f"moved for {stall_seconds:.0f} s"
            )
        time.sleep(POLL_SECONDS)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OnPostroad:
    """A service that takes mail by HTTP; `waiting` recipients of a backlog stay in its queue.

    With `senders`, a file of API keys and numbers of domains, each request comes from the next of them.
    """

    service: postroad.Postroad
    store: stores.Store
    folder: pathlib.Path
    connections: int
    content: message.Content
    waiting: int = 0
    part_bytes: int = message.PART_BYTES
    recipients: int | None = None
    senders: pathlib.Path | None = None

    def sending(self, run: str, *, messages: int) -> contextlib.AbstractContextManager[injection.Sending]:
        """See Contender."""
        return http.sending(self.target(run), messages=messages)

    def target(self, run: str) -> http.Target:
        """Where the injector sends the messages of a run, and what."""
        path = self.folder / f"{run}.request"
        key, domain = message.VALUES
        headers = {
            "Authorization": f"Bearer {key if self.senders else self.service.api_key}",
            "Content-Type": "application/json",
            "Idempotency-Key": f"{run}-{message.SERIAL}",
        }
        sender = f"orders@{many_accounts.DOMAIN.format(number=domain)}" if self.senders else message.SENDER
        body = message.as_json(self.content, part_bytes=self.part_bytes, sender=sender, recipients=self.recipients)
        http.write_request(path, target="/emails", headers=headers, body=body)
        return http.Target(port=self.service.port, request=path, connections=self.connections, values=self.senders)

    def unfinished(self) -> int:
        """See Contender: a recipient's credit is reserved until its result is recorded."""
        return self.store.ask("SELECT SUM(reserved) FROM accounts") - self.waiting

    def processes(self) -> typing.Mapping[str, typing.Sequence[int]]:
        """See Contender."""
        return {"service": self.service.pids} | ({"store": (self.store.pid,)} if self.store.pid is not None else {})

    def differences(self, *, delivered: int) -> list[str]:
        """See Contender."""
        recorded = self.store.ask("SELECT COUNT(*) FROM recipients WHERE status = 'delivered'")
        queued = self.store.ask("SELECT COUNT(*) FROM queue")
        stored, findings = self.service.verify()
        return [
            *_difference("are recorded as delivered", found=recorded, expected=delivered),
            *_difference("wait in the queue", found=queued, expected=self.waiting),
            *_difference(
                "are stored", found=stored, expected=delivered + self.waiting // backlog.RECIPIENTS_PER_MESSAGE
            ),
            *findings,
        ]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OnMailServer:
    """A relay that takes mail by SMTP, with the milter that signs, if any."""

    server: mail_servers.Running
    mime: pathlib.Path
    sessions: int
    milter: opendkim.OpenDkim | None = None

    def sending(self, run: str, *, messages: int) -> contextlib.AbstractContextManager[injection.Sending]:
        """See Contender; a mail server does not mind that its messages are all alike."""
        del run
        return smtp.sending(port=self.server.port, messages=messages, sessions=self.sessions, mime=self.mime)

    def unfinished(self) -> int:
        """See Contender: a file leaves the queue when its delivery is done."""
        return self.server.stored()

    def processes(self) -> typing.Mapping[str, typing.Sequence[int]]:
        """See Contender."""
        return {"service": (self.server.pid, *((self.milter.pid,) if self.milter else ()))}

    def differences(self, *, delivered: int) -> list[str]:
        """See Contender; it keeps no record of what it has delivered, so only the queue shows it."""
        del delivered
        return _difference("wait in the queue", found=self.server.stored(), expected=0)


def arrival_differences(sink: smtp_sink.Sink, *, delivered: int) -> list[str]:
    """Messages that came twice show here."""
    return _difference("arrived", found=sink.messages(), expected=delivered)


def signature_differences(mail: bytes, *, messages: int, signed: bool) -> list[str]:
    """Whether each kept message has one signature of the promised kind, or none has any."""
    fields = b"".join(mail.split()).lower().split(b"dkim-signature:")[1:]
    kind = sum(b"a=rsa-sha256;" in field and b"c=relaxed/relaxed;" in field for field in fields)
    expected = messages if signed else 0
    found = _difference("have a signature", found=len(fields), expected=expected)
    return found or _difference("are signed by rsa-sha256, relaxed/relaxed", found=kind, expected=expected)


def _difference(what: str, *, found: int, expected: int) -> list[str]:
    return [] if found == expected else [f"{found} messages {what}, but {expected} should"]
