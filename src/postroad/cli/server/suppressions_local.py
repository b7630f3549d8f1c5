"""`postroad suppression` on an installation: the suppression list of an account."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from postroad import context as services_context
from postroad.cli.framework import command, output, views
from postroad.model.units import identifiers, times
from postroad.protocol.mime import address
from postroad.services.queue import wait_reasons
from postroad.services.suppressions import suppression_csv
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import suppressions as stored
from postroad.storage.people import accounts

TITLES = ("address", "since", "source", "reason")
REASON = "added by the operator"


async def show_list(
    context: services_context.Context, account: accounts.Account, *, after: str, limit: int, source: str | None
) -> output.Report:
    """List the suppressed addresses of an account."""
    place = address.key_of(after)
    listed = await suppressions.page(context, account.id, after=place, limit=limit + 1, source=source)
    page, next_cursor = identifiers.page(listed, limit=limit, key="email_key")
    rows = [
        (one.email_key, times.to_wire(one.created_at), one.source, wait_reasons.shortened(one.reason)) for one in page
    ]
    text = output.table(TITLES, rows, empty="The suppression list is empty.")
    data = {"suppressions": [views.suppression(one) for one in page], "next_after": next_cursor}
    return output.Report(data=data, text=output.with_more(text, next_cursor))


async def add(
    context: services_context.Context, *, email: str, account: accounts.Account, reason: str | None
) -> output.Report:
    """Add an address to the suppression list of an account."""
    one, _ = await suppressions.add(context, account.id, email, reason=reason or REASON, source=stored.Source.OPERATOR)
    text = f"{one.email_key} is suppressed: {wait_reasons.shortened(one.reason)}"
    return output.Report(data={"suppression": views.suppression(one)}, text=text)


async def remove(context: services_context.Context, email: str, account: accounts.Account) -> output.Report:
    """Remove an address from the suppression list of an account."""
    removed = await suppressions.remove(context, account.id, email)
    return output.Report(data={"removed": removed}, text=f"{removed} is no longer suppressed.")


@click.command("import", cls=command.AccountCommand)
@click.argument("file", type=click.File("rb"))
async def import_file(context: services_context.Context, file: BinaryIO, account: accounts.Account) -> output.Report:
    """Add the addresses of a CSV file to the suppression list of an account.

    The first line of FILE names the columns, email and optionally reason; or FILE is a plain list of addresses, one
    per line. If FILE has an error, nothing is imported. Use - for standard input.
    """
    bounds = suppression_csv.OPERATOR_LIMITS
    content = file.read(bounds.max_bytes + 1)
    imported = await suppression_csv.import_csv(context, account.id, content, limits=bounds)
    data = {"added": imported.added, "unchanged": imported.unchanged}
    return output.Report(data=data, text=f"{imported.added} added, {imported.unchanged} already on the list.")


@click.command("export", cls=command.AccountCommand)
@click.argument("file", type=command.FILE, required=False)
async def export_file(context: services_context.Context, file: Path | None, account: accounts.Account) -> output.Report:
    """Export the suppression list of an account as CSV, to FILE or standard output."""
    if file is None and click.get_current_context().params["as_json"]:
        raise click.UsageError("--json requires a FILE.")
    with _written(file) as target:
        async for part in suppression_csv.export(context, account.id):
            target.write(part)
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
