"""`postroad suppression`: the suppression list of an account."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final
from urllib import parse

import click

from postroad.cli.framework import output, server_command
from postroad.network.http import api_client

if TYPE_CHECKING:
    from postroad.cli.framework.local_server import LocalServer
    from postroad.context import Context

PATH: Final = "/v1/suppressions"
TITLES: Final = ("address", "since", "source", "reason")
MEMBERS: Final = ("email", "created_at", "source", "reason")
SOURCES: Final = ("bounce", "late_bounce", "complaint", "operator", "account", "import")


@click.command("list", cls=server_command.ServerCommand)
@click.option("--after", default="", metavar="EMAIL", help="Start after this address.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Maximum number of rows.")
@click.option("--source", type=click.Choice(SOURCES), help="Only entries from this source.")
def show_list(server: api_client.Client, *, after: str, limit: int, source: str | None) -> output.Report:
    """List the suppressed addresses of an account."""
    # A cursor of this list is the address before it, in hexadecimal.
    cursor = after.strip().lower().encode().hex() or None
    listed, has_more = server_command.first_rows(
        server, PATH, "suppressions", limit=limit, cursor=cursor, source=source
    )
    following = str(listed[-1].get("email")) if has_more and listed else None
    text = output.printable_table(TITLES, server_command.rows(listed, *MEMBERS), empty="The suppression list is empty.")
    shown = None if following is None else output.printable(following)
    return output.Report(data={"suppressions": listed, "next_after": following}, text=output.with_more(text, shown))


@click.command("add", cls=server_command.ServerCommand)
@click.argument("email")
@click.option("--reason", help="Reason, shown to senders. Default: who added it.")
def add(server: api_client.Client, *, email: str, reason: str | None) -> output.Report:
    """Add an address to the suppression list of an account."""
    body = {"email": email} if reason is None else {"email": email, "reason": reason}
    suppression = server.call("POST", PATH, body).get("suppression")
    shown = suppression if isinstance(suppression, dict) else {}
    text = output.printable(f"{shown.get('email')} is suppressed: {shown.get('reason')}")
    return output.Report(data={"suppression": shown}, text=text)


@click.command("remove", cls=server_command.ServerCommand)
@click.argument("email")
def remove(server: api_client.Client, email: str) -> output.Report:
    """Remove an address from the suppression list of an account. It can receive the next message."""
    server.call("DELETE", f"{PATH}/{parse.quote(email, safe='')}")
    removed = email.strip().lower()
    return output.Report(data={"removed": removed}, text=f"{output.printable(removed)} is no longer suppressed.")


# The API takes smaller files, and the transport of this process no stream of a whole list, so these ask the services.


@click.command("import", cls=server_command.AccountCommand)
@click.argument("file", type=click.File("rb"))
def import_file(server: "LocalServer", file: BinaryIO) -> output.Report:
    """Add the addresses of a CSV file to the suppression list of an account.

    The first line of FILE names the columns, email and optionally reason; or FILE is a plain list of addresses, one
    per line. If FILE has an error, nothing is imported. Use - for standard input.
    """
    from postroad.services.suppressions import suppression_csv  # noqa: PLC0415

    bounds = suppression_csv.OPERATOR_LIMITS
    content = file.read(bounds.max_bytes + 1)
    imported = server.ask(lambda ctx: suppression_csv.import_csv(ctx, server.account.id, content, limits=bounds))
    data = {"added": imported.added, "unchanged": imported.unchanged}
    return output.Report(data=data, text=f"{imported.added} added, {imported.unchanged} already on the list.")


@click.command("export", cls=server_command.AccountCommand)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
def export_file(server: "LocalServer", file: Path | None) -> output.Report:
    """Export the suppression list of an account as CSV, to FILE or standard output."""
    from postroad.services.suppressions import suppression_csv  # noqa: PLC0415

    if file is None and click.get_current_context().params["as_json"]:
        raise click.UsageError("--json requires a FILE.")

    async def write(ctx: "Context") -> None:
        with _written(file) as target:
            async for part in suppression_csv.export(ctx, server.account.id):
                target.write(part)

    server.ask(write)
    return output.Report(data={"file": str(file)}, text=f"Written: {file}" if file else "")


@contextlib.contextmanager
def _written(file: Path | None) -> Iterator[BinaryIO]:
    """The output stream. A file is replaced only when the export is complete."""
    if file is None:
        yield sys.stdout.buffer
        return
    part = file.with_name(f"{file.name}.part")
    try:
        with part.open("wb") as target:
            yield target
        part.replace(file)
    except OSError as problem:
        raise click.FileError(str(file), hint=problem.strerror) from problem
    finally:
        part.unlink(missing_ok=True)
