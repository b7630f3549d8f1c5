"""The endpoint of `postroad webhook listen`: it verifies, answers and reports each request."""

import asyncio
import contextlib
import functools
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import msgspec

from postroad import config, errors, roles
from postroad import context as services_context
from postroad.cli.dev import demo_account, service, webhook_listen
from postroad.cli.framework import command, data_folder, output
from postroad.concurrency import caches
from postroad.model.events import events
from postroad.model.units import times
from postroad.network.http import http_messages, http_server
from postroad.protocol.signatures import webhook_signature
from postroad.protocol.text import strict_json
from postroad.roles import composition
from postroad.services.people import users
from postroad.services.webhooks import endpoints, signed_requests
from postroad.storage.mail import webhooks

# The application of `postroad webhook listen`: it verifies, answers and reports each request.
#
# Every request becomes one `ReceivedWebhook`, valid or not. Control characters in untrusted text are escaped before
# they reach a terminal.

# Several while an old secret is still valid; none to skip verification.
Secrets = Callable[[], Awaitable[Sequence[str]]]

OK: Final = 200
# An event has one or two KiB; that of received mail has up to 200,000 characters of text, each of six bytes at most.
MAX_BODY_BYTES: Final = 2 * 1024 * 1024
EVENTS: Final = (*events.DEFAULT, events.EventType.RECEIVED, events.EventType.UNSUBSCRIBED)
# Event ids kept to detect duplicates.
MAX_REMEMBERED: Final = 10_000
# An address has at most 254 characters (RFC 5321 section 4.5.3.1.3).
SHOWN_CHARACTERS: Final = 300
_HEADER: Final = webhook_signature.HEADER.lower().encode()


class Data(msgspec.Struct, frozen=True):
    to: str = ""
    smtp_code: int | None = None


class Event(msgspec.Struct, frozen=True):
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
    def __init__(
        self, *, secrets: Secrets, status: int, clock: Callable[[], int], report: Callable[[ReceivedWebhook], None]
    ) -> None:
        self._secrets = secrets
        self._status = status
        self._clock = clock
        self._report = report
        self._seen: caches.LruCache[str, int] = caches.LruCache(MAX_REMEMBERED)

    async def __call__(self, request: http_server.Request) -> None:
        try:
            received = await self._process(request)
            status, fields, content = _response(self._status, "ok")
        except errors.PostroadError as error:
            received = ReceivedWebhook(at=self._clock(), status=error.status, problem=error.message)
            status, fields, content = refusal(error)
        self._report(received)
        request.respond(status, fields, content)

    async def _process(self, request: http_server.Request) -> ReceivedWebhook:
        if request.method != "POST":
            raise errors.MethodNotAllowed("webhooks are sent with POST", allowed=("POST",))
        body = await _read(request)
        secrets = await self._secrets()
        if secrets:
            self._verify(request.headers, body, secrets)
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

    def _verify(self, headers: http_messages.Headers, body: bytes, secrets: Sequence[str]) -> None:
        # RFC 9110 section 5.3: a repeated field is a list. It then has two timestamps and is rejected.
        value = b",".join(value for name, value in headers if name == _HEADER).decode("latin-1")
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
    return json.dumps(value).replace("\x7f", "\\u007f")


def _response(status: int, text: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    return status, [(b"content-type", b"text/plain; charset=utf-8")], f"{text}\n".encode()


async def _read(request: http_server.Request) -> bytes:
    body, has_more = b"", True
    while has_more:
        try:
            part, has_more = await request.receive()
        except http_server.Disconnected:
            raise errors.InvalidRequest("the connection was closed before the end of the body") from None
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise errors.PayloadTooLarge(f"the body is larger than {MAX_BODY_BYTES // 1024} KiB")
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


WEBHOOK_VARIABLE: Final = webhook_listen.SECRET_VARIABLE
# A service keeps a few connections to one endpoint.
LIMITS: Final = http_messages.Limits(connections=64)
# Requests in progress have been reported already.
GRACE_SECONDS: Final = 1.0
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

# Serves with these secrets; yields the URL, and a future that is done when it should stop.
Serve = Callable[[Secrets], contextlib.AbstractAsyncContextManager[tuple[str, asyncio.Future[None]]]]


def listen(*, port: int, host: str, secret: str | None, data: Path | None, status: int, as_json: bool) -> None:
    """Receive and verify webhooks at an endpoint on this machine, and print one line for each, until Ctrl-C."""
    if secret is not None and data is not None:
        raise click.UsageError("--data and --secret cannot be combined; use one of them.")
    with command.report_errors(), command.name_listen_option("--host and --port"):
        where = config.endpoint(str(config.Endpoint(host, port)), name="--host")
        serve = functools.partial(_serve, where, status=status, as_json=as_json)
        if data is not None:
            asyncio.run(_listen_for_demo(data, serve))
        else:
            given = _secrets(os.environ.get(WEBHOOK_VARIABLE, "") if secret is None else secret)
            asyncio.run(_listen(given, serve))


async def _listen(given: Sequence[str], serve: Serve) -> None:
    """Listen without an installation, with the given secrets or none."""

    async def secrets() -> Sequence[str]:
        return given

    async with serve(secrets) as (url, stopped):
        _print_status(f"Listening for webhooks on {url}. Press Ctrl-C to stop.")
        if not given:
            _print_status(
                f"Signatures are not verified: set {WEBHOOK_VARIABLE} to the secret of the endpoint, or use --data."
            )
        await stopped


async def _listen_for_demo(data: Path, serve: Serve) -> None:
    """Listen for the demo account of `postroad dev`. Each request reads the secret, which may be rotated."""
    settings = data_folder.DataFolder(data).settings(environment=os.environ)
    with command.name_store_on_error(settings):
        async with composition.open_context(settings) as ctx:
            person = await users.by_email(ctx, demo_account.EMAIL)
            if person is None:
                raise errors.NotFound(f"{data} has no demo account; start 'postroad dev --data {data}' first")
            account_id = person.account_id
            before = await endpoints.find(ctx, account_id)
            async with serve(functools.partial(_stored_secrets, ctx, account_id)) as (url, stopped):
                await endpoints.save(ctx, account_id, url=url, wanted=EVENTS, enabled=True)
                try:
                    _print_status(
                        f"Listening on {url}. The webhook of the demo account points here. Press Ctrl-C to stop."
                    )
                    await stopped
                finally:
                    _print_status(await _restore_webhook(ctx, account_id, before, url=url))


@contextlib.asynccontextmanager
async def _serve(
    where: config.Endpoint, secrets: Secrets, *, status: int, as_json: bool
) -> AsyncIterator[tuple[str, asyncio.Future[None]]]:
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    shown = json_line if as_json else line

    def report(received: ReceivedWebhook) -> None:
        try:
            click.echo(shown(received))
        except OSError as problem:
            # The reader is gone, as after `| head`.
            if not stopped.done():
                stopped.set_exception(problem)

    application = WebhookListener(secrets=secrets, status=status, clock=services_context.system_clock, report=report)
    listener = http_server.HttpListener(application, refuse=refusal, limits=LIMITS)
    try:
        await listener.start(where.host, where.port)
    except OSError as problem:
        raise roles.cannot_listen(where, problem) from problem
    host, port = listener.address
    try:
        with _stopped_by_signals(stopped):
            yield f"http://{config.Endpoint(service.CLIENT_HOSTS.get(host, host), port)}/", stopped
    finally:
        await listener.stop(grace_seconds=GRACE_SECONDS)


@contextlib.contextmanager
def _stopped_by_signals(stopped: asyncio.Future[None]) -> Iterator[None]:
    """The first signal stops; later signals have their default action."""
    loop = asyncio.get_running_loop()

    def remove_handlers() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    def stop() -> None:
        remove_handlers()
        if not stopped.done():
            stopped.set_result(None)

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        remove_handlers()


def _secrets(text: str) -> list[str]:
    secrets = [part.strip() for part in text.split(",") if part.strip()]
    if not all(secret.startswith(signed_requests.SECRET_PREFIX) for secret in secrets):
        raise click.UsageError(f"not a webhook secret; it must start with {signed_requests.SECRET_PREFIX}")
    return secrets


async def _stored_secrets(ctx: services_context.Context, account_id: str) -> Sequence[str]:
    async with ctx.store.reading() as tx:
        webhook = await webhooks.first_of(tx, account_id)
        rows = await webhooks.secrets(tx, [webhook.id], now=ctx.clock()) if webhook else []
    if not rows:
        raise errors.InvalidRequest("the webhook of the demo account has been deleted")
    return [signed_requests.decrypt_secret(ctx, row) for row in rows]


async def _restore_webhook(
    ctx: services_context.Context, account_id: str, before: webhooks.Webhook | None, *, url: str
) -> str:
    """Restore the webhook. One created by this run is disabled; its secret and log are kept."""
    now = await endpoints.find(ctx, account_id)
    if now is None or now.url != url:
        return "The webhook of the demo account was changed by someone else and is not restored."
    if before is None or before.id != now.id:
        await endpoints.save(ctx, account_id, url=url, enabled=False)
        return (
            "The webhook of the demo account is disabled; its log is kept. "
            'To use your own URL, save it with "enabled": true, and rotate the secret.'
        )
    await endpoints.save(ctx, account_id, url=before.url, wanted=before.events.split(), enabled=bool(before.enabled))
    return "The webhook of the demo account is restored."


def _print_status(text: str) -> None:
    click.echo(text, err=True)
