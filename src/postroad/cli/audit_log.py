"""`postroad audit-log`: who changed what in an account."""

from typing import Any, Final

import click

from postroad.cli import command, output, views
from postroad.model import times
from postroad.services import audit_log as services_audit_log
from postroad.services import context as services_context
from postroad.storage import accounts

DEFAULT_ENTRIES: Final = 50
MAX_ENTRIES: Final = 1_000


class AuditLogCommand(command.AccountCommand):
    """A command of one account, or of the installation: then its function gets no account."""

    async def resolve(self, context: services_context.Context, arguments: dict[str, Any]) -> dict[str, Any]:
        """Leave out the account with `--installation`."""
        is_installation = arguments.pop("installation")
        if is_installation and arguments["account"] is not None:
            raise click.UsageError("--account and --installation cannot be combined; use one of them.")
        return {**arguments, "account": None} if is_installation else await super().resolve(context, arguments)


@click.command("audit-log", cls=AuditLogCommand)
@click.option("--installation", is_flag=True, help="Show changes of the installation instead of those of an account.")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_ENTRIES),
    default=DEFAULT_ENTRIES,
    show_default=True,
    help="Maximum number of entries.",
)
async def audit_log(context: services_context.Context, account: accounts.Account | None, limit: int) -> output.Report:
    """Show who changed what in an account, newest first."""
    account_id = account.id if account is not None else services_audit_log.INSTALLATION
    entries = await services_audit_log.page(context, account_id, before=None, limit=limit)
    rows = [
        (times.to_wire(entry.created_at), entry.actor, entry.client_address or None, services_audit_log.text(entry))
        for entry in entries
    ]
    text = output.table(["time", "actor", "client", "action"], rows, empty="The audit log is empty.")
    return output.Report(data={"entries": [views.audit_log_entry(entry) for entry in entries]}, text=text)
