"""`postroad journal`: who did what in an account."""

from typing import Final

import click

from postroad.cli import command, naming, output, views
from postroad.model import times
from postroad.services import context as services_context
from postroad.services import journal as services_journal

USUAL_ENTRIES: Final = 50
MOST_ENTRIES: Final = 1_000


@click.command("journal", cls=command.StoreCommand)
@naming.account_option
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_ENTRIES),
    default=USUAL_ENTRIES,
    show_default=True,
    help="How many entries at most.",
)
async def journal(context: services_context.Context, account: str | None, limit: int) -> output.Report:
    """Show who did what in an account, the newest first."""
    found = await naming.account(context, account)
    entries = await services_journal.page(context, found.id, before=None, limit=limit)
    rows = [(times.to_wire(entry.created_at), entry.actor, services_journal.text(entry)) for entry in entries]
    text = output.table(["at", "who", "what"], rows, empty="Nothing was done yet.")
    return output.Report(data={"entries": [views.journal_entry(entry) for entry in entries]}, text=text)
