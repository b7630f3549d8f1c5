"""`postroad audit-log`: who changed what in an account."""

from typing import Final

import click

from postroad.cli import command, output, views
from postroad.model import times
from postroad.services import audit_log as services_audit_log
from postroad.services import context as services_context
from postroad.storage import accounts

DEFAULT_ENTRIES: Final = 50
MAX_ENTRIES: Final = 1_000


@click.command("audit-log", cls=command.AccountCommand)
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_ENTRIES),
    default=DEFAULT_ENTRIES,
    show_default=True,
    help="Maximum number of entries.",
)
async def audit_log(context: services_context.Context, account: accounts.Account, limit: int) -> output.Report:
    """Show who changed what in an account, newest first."""
    entries = await services_audit_log.page(context, account.id, before=None, limit=limit)
    rows = [
        (times.to_wire(entry.created_at), entry.actor, entry.client_address or None, services_audit_log.text(entry))
        for entry in entries
    ]
    text = output.table(["time", "actor", "client", "action"], rows, empty="The audit log is empty.")
    return output.Report(data={"entries": [views.audit_log_entry(entry) for entry in entries]}, text=text)
