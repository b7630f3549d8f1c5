"""`postroad account`, `credits` and `audit-log`: accounts, what they may send, and who changed what in one."""

from typing import Any, Final

import click
import msgspec

from postroad import context as services_context
from postroad import errors
from postroad.cli.framework import command, output, views
from postroad.mail.accept import stored_space
from postroad.model.units import identifiers, times
from postroad.services import audit_log as services_audit_log
from postroad.services.accounts import account_registry
from postroad.services.accounts import credits as services_credits
from postroad.storage.people import accounts

NAMED = click.argument("named", metavar="ACCOUNT")


@click.command("create", cls=command.StoreCommand)
@click.option("--name", required=True, help="Display name.")
async def create(context: services_context.Context, name: str) -> output.Report:
    """Create an account."""
    account = await account_registry.create(context, name)
    return report(account, f"Account {account.name!r} created: {account.id}")


@click.command("list", cls=command.StoreCommand)
@click.option("--after", default="", metavar="ID", help="Start after this account.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Maximum number of rows.")
async def show_list(context: services_context.Context, after: str, limit: int) -> output.Report:
    """List accounts, oldest first."""
    found = await account_registry.page(context, after, limit + 1)
    page, next_cursor = identifiers.page(found, limit=limit)
    titles = ["id", "name", "status", *(["available", "reserved"] if context.settings.credits.enabled else [])]
    found_rows = [(one.id, one.name, one.state, one.available, one.reserved) for one in page]
    rows = [row[: len(titles)] for row in found_rows]
    text = output.table(titles, rows, empty="There are no accounts.")
    data = {"accounts": [views.account(account) for account in page], "next_after": next_cursor}
    return output.Report(data=data, text=output.with_more(text, next_cursor))


@click.command("show", cls=command.StoreCommand)
@NAMED
async def show(context: services_context.Context, named: str) -> output.Report:
    """Show an account, by id or unique name."""
    account = await command.named_account(context, named)
    sending = await account_registry.sending(context, account)
    storage = await stored_space.of_account(context.store, account.id)
    state = account.state
    if state == accounts.SUSPENDED and account.suspended_reason:
        state += f": {account.suspended_reason}"
    facts = {
        "id": account.id,
        "name": account.name,
        "status": state,
        **_balances(context, account),
        "limits": account_registry.limits_text(account),
        "sending": _sending(sending),
        "storage": _storage(context, storage),
        "created": times.to_wire(account.created_at),
    }
    text = "\n".join(f"{name + ':':9}{value}" for name, value in facts.items())
    until = times.optional_to_wire(account_registry.suspended_until(context, account))
    details = {
        **views.account(account),
        "suspended_until": until,
        "sending": msgspec.structs.asdict(sending),
        "storage": {"live_bytes": storage.live, "test_bytes": storage.test},
        "credits_unlimited": not services_credits.needs_credits(context, account),
        "second_factor_required": account.second_factor_since is not None,
    }
    return output.Report(data={"account": details}, text=text)


def _balances(context: services_context.Context, account: accounts.Account) -> dict[str, str]:
    if not context.settings.credits.enabled:
        return {}
    unlimited = "; unlimited" if account.unlimited else ""
    return {"credits": f"{account.available} available, {account.reserved} reserved{unlimited}"}


def _storage(context: services_context.Context, used: stored_space.AccountUsage) -> str:
    """What is used of the storage quotas."""
    quotas = context.settings.quotas
    return (
        f"{used.live / stored_space.MEBIBYTE:,.1f} of {quotas.stored_megabytes:,} MiB, "
        f"test mail {used.test / stored_space.MEBIBYTE:,.1f} of {quotas.test_megabytes:,} MiB"
    )


def _sending(sending: account_registry.Sending) -> str:
    """The counts of the bounce guard as text."""
    if sending.state == "off":
        return "not monitored (bounce_guard.enabled is false)"
    return (
        f"{sending.recipients} recipients in {sending.days} days, {sending.bounces} invalid addresses "
        f"({sending.bounce_percent:.2f}%), {sending.complaints} complaints ({sending.complaint_percent:.2f}%): "
        f"{sending.state}"
    )


@click.command("suspend", cls=command.StoreCommand)
@NAMED
@click.option("--reason", required=True, help="Reason, shown to senders in the error.")
async def suspend(context: services_context.Context, named: str, reason: str) -> output.Report:
    """Suspend an account. It can no longer send, but can still read."""
    account = await command.named_account(context, named)
    account = await account_registry.suspend(context, account.id, reason)
    return report(account, f"Account {account.name!r} ({account.id}) is suspended: {reason}")


@click.command("resume", cls=command.StoreCommand)
@NAMED
async def resume(context: services_context.Context, named: str) -> output.Report:
    """Resume a suspended account. Its counts of the bounce guard are reset."""
    account = await command.named_account(context, named)
    account = await account_registry.resume(context, account.id)
    return report(account, f"Account {account.name!r} ({account.id}) is resumed.")


@click.command("rename", cls=command.StoreCommand)
@NAMED
@click.argument("name")
async def rename(context: services_context.Context, named: str, name: str) -> output.Report:
    """Rename an account."""
    account = await command.named_account(context, named)
    renamed = await account_registry.rename(context, account.id, name)
    return report(renamed, f"Account {account.name!r} ({account.id}) is now {name!r}.")


@click.command("limits", cls=command.StoreCommand)
@NAMED
@click.option("--request-rate", type=int, help="Sends per second. 0: as in the settings.")
@click.option("--recipients-per-day", type=int, help="Recipients per UTC day. 0: no limit.")
async def limits(
    context: services_context.Context, named: str, request_rate: int | None, recipients_per_day: int | None
) -> output.Report:
    """Set the limits of an account.

    A limit that is not given stays as it is.
    """
    account = await command.named_account(context, named)
    account = await account_registry.change_limits(
        context,
        account.id,
        request_rate=account.request_rate if request_rate is None else request_rate or None,
        recipients_per_day=account.recipients_per_day if recipients_per_day is None else recipients_per_day or None,
    )
    return report(account, f"Account {account.name!r} ({account.id}) has {account_registry.limits_text(account)}.")


def report(account: accounts.Account, text: str) -> output.Report:
    """An account after a change."""
    return output.Report(data={"account": views.account(account)}, text=text)


@click.command("close", cls=command.StoreCommand)
@NAMED
async def close(context: services_context.Context, named: str) -> output.Report:
    """Close an account. Nobody can log in or send; queued mail is still delivered, and all data is kept."""
    account = await command.named_account(context, named)
    account = await account_registry.close(context, account.id)
    return report(account, f"Account {account.name!r} ({account.id}) is closed.")


@click.command("reopen", cls=command.StoreCommand)
@NAMED
async def reopen(context: services_context.Context, named: str) -> output.Report:
    """Reopen a closed account."""
    account = await command.named_account(context, named)
    account = await account_registry.reopen(context, account.id)
    return report(account, f"Account {account.name!r} ({account.id}) is reopened.")


@click.command("remove", cls=command.StoreCommand)
@NAMED
@click.option("--yes", is_flag=True, help="Confirm the removal.")
async def remove(context: services_context.Context, named: str, *, yes: bool) -> output.Report:
    """Remove a closed account and delete all its data.

    It must have no queued mail. If interrupted, the maintenance role continues.
    """
    account = await command.named_account(context, named)
    if not yes:
        raise errors.InvalidRequest(
            f"all data of {account.name!r} ({account.id}) would be deleted; add --yes to confirm"
        )
    account = await account_registry.remove(context, account.id)
    return output.Report(data={"removed": account.id}, text=f"Account {account.name!r} ({account.id}) is removed.")


@click.command("add", cls=command.AccountCommand)
@click.option("--amount", type=int, required=True, help="Number of credits; one credit pays for one recipient.")
@click.option("--note", help="Note for the ledger entry.")
async def add_credits(
    context: services_context.Context, account: accounts.Account, amount: int, note: str | None
) -> output.Report:
    """Add credits to an account."""
    changed = await services_credits.add(context, account.id, amount, note)
    text = f"{amount} credits added to {changed.name!r} ({changed.id}); {changed.available} available."
    return output.Report(data={"account": views.account(changed)}, text=text)


@click.command("unlimited", cls=command.AccountCommand)
@click.argument("state", type=click.Choice(["on", "off"]), metavar="STATE")
async def unlimited_credits(context: services_context.Context, account: accounts.Account, state: str) -> output.Report:
    """Give an account unlimited credits (on), or charge it again (off)."""
    changed = await services_credits.set_unlimited(context, account.id, unlimited=state == "on")
    result = "has unlimited credits" if changed.unlimited else "is charged credits"
    data = {"account": views.account(changed), "unlimited": bool(changed.unlimited)}
    return output.Report(data=data, text=f"Account {changed.name!r} ({changed.id}) {result}.")


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
