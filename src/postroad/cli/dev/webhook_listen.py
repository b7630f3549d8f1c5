"""`postroad webhook listen`: webhooks on this machine, from a server that cannot reach it or as an endpoint."""

import collections
import http.client
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib import parse

import click
from click.core import ParameterSource

from postroad.cli.framework import output, server_command, server_login
from postroad.network.http import api_client
from postroad.protocol.signatures import webhook_signature

# `postroad webhook listen` with a server: its events over a connection that this machine opens.
#
# So they reach a machine that the server cannot reach. A listener on the server keeps events until they are
# acknowledged, and this program remembers what it has forwarded: a broken connection neither loses an event nor doubles
# one. Each is posted once to the URL on this machine, signed with the secret of the listener; the URL's failure is
# shown, not retried.

PATH: Final = "/v1/webhook-listeners"
WAIT_SECONDS: Final = 5
# An endpoint has as long for a request of a server.
FORWARD_SECONDS: Final = 10.0
USER_AGENT: Final = "Service-Webhook/1.0"
NOT_FOUND: Final = 404
# More than a response can have.
MAX_REMEMBERED: Final = 1_000

Event = dict[str, Any]


class Session:
    """A listener on the server, and what was received from it."""

    def __init__(self, server: api_client.Client, *, wanted: Sequence[str]) -> None:
        self._server = server
        self._wanted = list(wanted)
        self._received: collections.OrderedDict[str, None] = collections.OrderedDict()
        self._unacknowledged: list[str] = []
        self._id = ""
        self.secret = ""

    def open(self) -> None:
        """Create the listener. A second one has the secret of the first, which the application knows."""
        created = self._server.call("POST", PATH, {"events": self._wanted} if self._wanted else {})
        listener = created.get("webhook")
        if not isinstance(listener, dict) or not isinstance(created.get("secret"), str):
            raise api_client.ServerError(f"{self._server.url}: the response is not a listener")
        self._id = str(listener.get("id"))
        self.secret = self.secret or created["secret"]

    def receive(self) -> Iterator[Event]:
        """The next events, each once. It is acknowledged with the next call, after the caller has processed it."""
        path = f"{PATH}/{parse.quote(self._id, safe='')}/receive"
        body = {"acknowledge": self._unacknowledged, "wait_seconds": WAIT_SECONDS}
        found = server_command.objects(self._server.call("POST", path, body).get("events"))
        self._unacknowledged = []
        for event in found:
            delivery_id = str(event.get("id"))
            if delivery_id not in self._received:
                yield event
            self._received[delivery_id] = None
            self._unacknowledged.append(delivery_id)
        while len(self._received) > MAX_REMEMBERED:
            self._received.popitem(last=False)

    def close(self) -> None:
        """Remove the listener. If that fails, the server does so after a while."""
        # Ctrl-C may have interrupted a request, and its connection takes no other.
        self._server.close()
        if self._id:
            try:
                self._server.call("DELETE", f"/v1/webhooks/{parse.quote(self._id, safe='')}")
            except api_client.ServerError as problem:
                click.echo(output.printable(f"The listener could not be removed and will expire: {problem}"), err=True)
        self._server.close()


def receive(server: api_client.Client, *, forward_to: str | None, wanted: Sequence[str], as_json: bool) -> None:
    """Print the events of the server, and post them to the URL if there is one, until Ctrl-C."""
    session = Session(server, wanted=wanted)
    with server_command.until_interrupted(session.close):
        session.open()
        click.echo(f"Listening for the events of {server.url}. Press Ctrl-C to stop.", err=True)
        if forward_to is not None:
            secret = output.printable(session.secret)
            click.echo(f"Forwarding to {forward_to}, signed with the secret {secret}", err=True)
        for event in _events(session):
            result = None if forward_to is None else forward(forward_to, str(event.get("body")), session.secret)
            click.echo(json_line(event, result) if as_json else line(event, result))


def _events(session: Session) -> Iterator[Event]:
    failures = 0
    while True:
        try:
            yield from session.receive()
            failures = 0
        except api_client.ServerError as problem:
            if problem.status == NOT_FOUND:
                session.open()
                click.echo("The listener had expired, and events since then are lost. Listening again.", err=True)
                continue
            if problem.status not in server_command.TEMPORARY:
                raise
            failures += 1
            if failures == 1:
                click.echo(output.printable(f"{problem}; trying again."), err=True)
            time.sleep(min(0.5 * 2 ** min(failures, 10), server_command.MAX_WAIT_SECONDS))


def forward(url: str, body: str, secret: str) -> str:
    """Post an event to a URL as a server does; the status of the response, or why there was none."""
    base = parse.urlsplit(url)
    raw = body.encode()
    signature = webhook_signature.header([secret], raw, timestamp=int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        webhook_signature.HEADER: signature,
    }
    connection = api_client.connect(base, timeout=FORWARD_SECONDS)
    try:
        connection.request("POST", f"{base.path or '/'}{f'?{base.query}' if base.query else ''}", raw, headers)
        return str(connection.getresponse().status)
    except (OSError, http.client.HTTPException) as problem:
        return f"failed: {getattr(problem, 'strerror', '') or str(problem) or type(problem).__name__}"
    finally:
        connection.close()


def line(event: Event, result: str | None) -> str:
    try:
        data = json.loads(str(event.get("body"))).get("data")
    except (ValueError, AttributeError, RecursionError):
        data = None
    shown = data if isinstance(data, dict) else {}
    columns = [
        time.strftime("%H:%M:%S"),
        str(event.get("event_type")).ljust(15),
        str(shown.get("to") or shown.get("domain") or "-"),
        str(shown.get("smtp_code") or "-").ljust(3),
        str(event.get("event_id")),
    ]
    return output.printable("  ".join(columns if result is None else [*columns, result]))


def json_line(event: Event, result: str | None) -> str:
    """An event as JSON, with everything outside printable ASCII escaped."""
    try:
        document = json.loads(str(event.get("body")))
    except (ValueError, RecursionError):
        document = None
    return json.dumps({"event": document, "forwarded": result}).replace("\x7f", "\\u007f")


SECRET_VARIABLE: Final = "POSTROAD_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
# Options of an endpoint on this machine, and those of a server.
OF_ENDPOINT: Final = ("port", "host", "secret", "data", "status")
OF_SERVER: Final = ("url", "forward_to", "wanted")
_FOLDER: Final = click.Path(file_okay=False, path_type=Path)


@click.command("listen")
@click.option(
    "--url", metavar="URL", help="Server whose events to receive. Default: that of the last 'postroad login'."
)
@click.option("--forward-to", metavar="URL", help="URL on this machine to which each event of the server is posted.")
@click.option("--event", "wanted", multiple=True, metavar="TYPE", help="Event type to receive; repeatable.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8026,
    show_default=True,
    help="Run an endpoint on this port instead; 0 chooses a free port.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of the endpoint.")
@click.option(
    "--secret",
    metavar="SECRET",
    help=f"Secret of the endpoint, or several separated by commas. Prefer the variable {SECRET_VARIABLE}: other users "
    "of this machine can see the arguments of a command.",
)
@click.option(
    "--data",
    type=_FOLDER,
    metavar="DIR",
    help="Data folder of 'postroad dev'; its demo account sends its webhooks to the endpoint until exit.",
)
@click.option(
    "--status",
    type=click.IntRange(200, 599),
    default=200,
    show_default=True,
    help="Response status of the endpoint for valid events.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_context
def listen(
    ctx: click.Context,
    *,
    url: str | None,
    forward_to: str | None,
    wanted: tuple[str, ...],
    port: int,
    host: str,
    secret: str | None,
    data: Path | None,
    status: int,
    as_json: bool,
) -> None:
    """Receive webhooks on this machine, and print one line for each, until Ctrl-C.

    By default, it fetches them from a server. With --port, --host, --secret, --data or --status, or without a server,
    it runs a local endpoint that receives them.
    """
    if not _is_of_server(ctx):
        from postroad.cli.dev import webhook_endpoint  # noqa: PLC0415 - the service, which a connection to a server does not need

        webhook_endpoint.listen(port=port, host=host, secret=secret, data=data, status=status, as_json=as_json)
        return
    if forward_to is not None:
        _check_target(forward_to)
    receive(server_command.client(url, os.environ), forward_to=forward_to, wanted=wanted, as_json=as_json)


def _is_of_server(ctx: click.Context) -> bool:
    given = {name for name in ctx.params if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    of_endpoint, of_server = given & {*OF_ENDPOINT}, given & {*OF_SERVER}
    if of_endpoint and of_server:
        names = [param.opts[0] for param in ctx.command.params if param.name in (min(of_endpoint), min(of_server))]
        raise click.UsageError(f"{' and '.join(names)} cannot be combined; use one of them.")
    if of_endpoint or of_server:
        return bool(of_server)
    if os.environ.get(SECRET_VARIABLE):
        return False
    try:
        is_logged_in = bool(server_login.load(server_login.path(os.environ)).current)
    except server_login.LoginError as problem:
        raise server_command.CommandError(str(problem)) from None
    return is_logged_in or bool(os.environ.get(server_command.URL_VARIABLE))


def _check_target(text: str) -> None:
    try:
        parts = parse.urlsplit(text)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_usable = False
    if not is_usable or not text.isascii() or not text.isprintable() or " " in text:
        raise click.UsageError("--forward-to: must be a URL such as http://localhost:3000/webhooks")
