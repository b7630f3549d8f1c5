"""The application of `postroad webhook listen`: it verifies, answers and reports each request.

Every request becomes one `ReceivedWebhook`, valid or not. Control characters in untrusted text are escaped before they
reach a terminal.
"""

import json
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.cli import output
from postroad.concurrency import lru
from postroad.model import times
from postroad.protocol import strict_json, webhook_signature

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# Several while an old secret is still valid; none to skip verification.
Secrets = Callable[[], Awaitable[Sequence[str]]]

OK: Final = 200
# An event has one or two KiB.
MAX_BODY_BYTES: Final = 64 * 1024
# Event ids kept to detect duplicates.
MAX_REMEMBERED: Final = 10_000
# An address has at most 254 characters (RFC 5321 section 4.5.3.1.3).
SHOWN_CHARACTERS: Final = 300
_HEADER: Final = webhook_signature.HEADER.lower().encode()
_DELETE: Final = "\x7f"


class Data(msgspec.Struct, frozen=True):
    """The fields of an event's data that are shown."""

    to: str = ""
    smtp_code: int | None = None


class Event(msgspec.Struct, frozen=True):
    """The fields of an event that are shown."""

    id: str
    type: str
    data: Data


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedWebhook:
    """A request: its event or its error, and the response status."""

    at: int
    status: int
    problem: str | None = None
    event: Event | None = None
    # The event as received, for JSON output.
    document: object = None
    is_verified: bool = False
    is_duplicate: bool = False


class WebhookListener:
    """The ASGI application."""

    def __init__(
        self, *, secrets: Secrets, status: int, clock: Callable[[], int], report: Callable[[ReceivedWebhook], None]
    ) -> None:
        self._secrets = secrets
        self._status = status
        self._clock = clock
        self._report = report
        self._seen: lru.LruCache[str, int] = lru.LruCache(MAX_REMEMBERED)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        try:
            received = await self._process(scope, receive)
            status, fields, content = _response(self._status, "ok")
        except errors.PostroadError as error:
            received = ReceivedWebhook(at=self._clock(), status=error.status, problem=error.message)
            status, fields, content = refusal(error)
        self._report(received)
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": content})

    async def _process(self, scope: Message, receive: Receive) -> ReceivedWebhook:
        if scope["method"] != "POST":
            raise errors.MethodNotAllowed("webhooks are sent with POST", allowed=("POST",))
        body = await _read(receive)
        secrets = await self._secrets()
        if secrets:
            self._verify(scope, body, secrets)
        event, document = _event(body)
        is_duplicate = self._seen.get(event.id) is not None
        self._seen.put(event.id, self._clock())
        return ReceivedWebhook(
            at=self._clock(),
            status=self._status,
            event=event,
            document=document,
            is_verified=bool(secrets),
            is_duplicate=is_duplicate,
        )

    def _verify(self, scope: Message, body: bytes, secrets: Sequence[str]) -> None:
        # RFC 9110 section 5.3: a repeated field is a list. It then has two timestamps and is rejected.
        value = b",".join(value for name, value in scope["headers"] if name == _HEADER).decode("latin-1")
        now = self._clock() // times.SECOND
        problems = [webhook_signature.why_refused(value, body, secret=secret, now=now) for secret in secrets]
        if None not in problems:
            raise errors.InvalidRequest(problems[0] or "")


def refusal(error: errors.PostroadError) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """The response to a rejected request, and to one that the listener cannot parse."""
    status, fields, content = _response(error.status, error.message)
    if isinstance(error, errors.MethodNotAllowed):
        fields.append((b"allow", ", ".join(error.allowed).encode()))
    return status, fields, content


def line(received: ReceivedWebhook) -> str:
    """A received webhook as text."""
    at = time.strftime("%H:%M:%S", time.localtime(received.at // times.SECOND))
    if received.event is None:
        return f"{at}  rejected with {received.status}: {_printable(received.problem or '')}"
    event = received.event
    code = "-" if event.data.smtp_code is None else str(event.data.smtp_code)
    columns = [
        at,
        _printable(event.type).ljust(15),
        _printable(event.data.to) or "-",
        code.ljust(3),
        _printable(event.id),
    ]
    columns.append("verified" if received.is_verified else "not verified")
    if received.is_duplicate:
        columns.append("duplicate")
    if received.status != OK:
        columns.append(f"responded {received.status}")
    return "  ".join(columns)


def json_line(received: ReceivedWebhook) -> str:
    """A received webhook as JSON, with everything outside printable ASCII escaped."""
    value = {
        "received_at": times.to_wire(received.at),
        "status": received.status,
        "error": received.problem,
        "verified": received.is_verified,
        "duplicate": received.is_duplicate,
        "event": received.document,
    }
    return json.dumps(value).replace(_DELETE, "\\u007f")


def _response(status: int, text: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    return status, [(b"content-type", b"text/plain; charset=utf-8")], f"{text}\n".encode()


async def _read(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise errors.InvalidRequest("the connection was closed before the end of the body")
        part: bytes = message["body"]
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise errors.PayloadTooLarge(f"the body is larger than {MAX_BODY_BYTES // 1024} KiB")
        if not message["more_body"]:
            return body


def _event(body: bytes) -> tuple[Event, object]:
    try:
        document = strict_json.read(body)
        return msgspec.convert(document, Event), document
    except (strict_json.JsonError, msgspec.ValidationError) as problem:
        raise errors.InvalidRequest(f"the body is not an event: {problem}") from None


def _printable(text: str) -> str:
    cut = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
    return output.printable(cut)
