"""`postroad webhook listen`: webhooks on this machine, from a server that cannot reach it or as an endpoint."""

import os
from pathlib import Path
from typing import Final
from urllib import parse

import click
from click.core import ParameterSource

from postroad.cli import server_command, server_login, webhook_forwarder

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

    They come from a server over a connection that this machine opens, or to an endpoint that it runs: with one of
    --port, --host, --secret, --data and --status, and when there is no server.
    """
    if not _is_of_server(ctx):
        from postroad.cli import webhooks  # noqa: PLC0415 - the service, which a connection to a server does not need

        webhooks.listen(port=port, host=host, secret=secret, data=data, status=status, as_json=as_json)
        return
    if forward_to is not None:
        _check_target(forward_to)
    server = server_command.client(url, os.environ)
    webhook_forwarder.listen(server, forward_to=forward_to, wanted=wanted, as_json=as_json)


def _is_of_server(ctx: click.Context) -> bool:
    given = {name for name in ctx.params if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    of_endpoint, of_server = given & {*OF_ENDPOINT}, given & {*OF_SERVER}
    if of_endpoint and of_server:
        names = [one.opts[0] for one in ctx.command.params if one.name in (min(of_endpoint), min(of_server))]
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
