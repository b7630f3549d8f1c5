"""`postroad certificate`: the certificates of the listeners."""

import sys

import click
import msgspec

from postroad import config
from postroad.cli import command, output
from postroad.model import times
from postroad.services import context as services_context
from postroad.services.certificates import overview, renewal
from postroad.telemetry import logs


@click.command("list", cls=command.StoreCommand)
async def show_list(context: services_context.Context) -> output.Report:
    """List the certificates of the listeners, with the days left. The exit code is 1 if one is missing or expired."""
    found = await overview.of_listeners(context)
    now = context.clock()
    rows = [
        (
            one.listener,
            one.source,
            ", ".join(one.names) or None,
            _time(one.expires_at),
            None if one.expires_at is None else (one.expires_at - now) // times.DAY,
            _time(one.due_at),
            one.problem or None,
        )
        for one in found
    ]
    titles = ["listener", "source", "names", "expires", "days", "next order", "problem"]
    data = [
        {**msgspec.to_builtins(one), "expires_at": _time(one.expires_at), "due_at": _time(one.due_at)} for one in found
    ]
    is_bad = any(one.expires_at is None or one.expires_at <= now for one in found)
    return output.Report(
        data={"certificates": data},
        text=output.table(titles, rows, empty="No listener uses TLS."),
        exit_code=1 if is_bad else 0,
    )


@click.command("renew", cls=command.StoreCommand)
async def renew(context: services_context.Context) -> output.Report:
    """Order the certificate of acme.names now, whether it is due or not. The service must be running."""
    if not context.settings.acme.names:
        raise config.ConfigError("acme.names: empty; list the host names of the certificate")
    log = logs.configure(form="console", level="error", stream=sys.stderr)
    result = await renewal.Renewer(context, log).renew(is_forced=True)
    names = list(context.settings.acme.names)
    if result is None:
        raise click.ClickException("Another process is ordering this certificate; see 'postroad certificate list'.")
    if result.error:
        raise click.ClickException(f"{result.error}. The next order is due at {times.to_wire(result.due_at)}.")
    return output.Report(
        data={"names": names, "expires_at": times.to_wire(result.expires_at)},
        text=f"Obtained a certificate for {', '.join(names)}; it expires at {times.to_wire(result.expires_at)}.",
    )


def _time(at: int | None) -> str | None:
    return None if not at else times.to_wire(at)
