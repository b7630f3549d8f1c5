"""`postroad account`, `credits` and `audit-log`: accounts, what they may send, and who changed what in one."""

from typing import Any, Final

import click
import msgspec

from postroad import context as services_context
from postroad import errors
from postroad.cli.framework import command, local_server, output, server_command
from postroad.mail.accept import queue_limit
from postroad.model.units import identifiers, times
from postroad.services.accounts import account_registry
from postroad.services.accounts import credits as services_credits
from postroad.storage.people import accounts

ACCOUNTS: Final = "/v1/operator/accounts"
FIELDS: Final = (
    "id name status suspended_reason suspended_by credits request_rate recipients_per_day created_at".split()
)
NAMED = click.argument("named", metavar="ACCOUNT")


def _view(record: accounts.Account) -> dict[str, Any]:
    """An account as JSON, with its balances."""
    balances = {"available": record.available, "reserved": record.reserved}
    return times.wire_fields(record, FIELDS, status=record.state, credits=balances)


def _operated_view(shown: dict[str, Any]) -> dict[str, Any]:
    """The same of what the operator's API shows."""
    return {name: shown["state" if name == "status" else name] for name in FIELDS}


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
    data = {"accounts": [_view(account) for account in page], "next_after": next_cursor}
    return output.Report(data=data, text=output.with_more(text, next_cursor))


@click.command("show", cls=command.StoreCommand)
@NAMED
async def show(context: services_context.Context, named: str) -> output.Report:
    """Show an account, by id or unique name."""
    account = await command.named_account(context, named)
    sending = await account_registry.sending(context, account)
    storage = await queue_limit.usage_of_account(context.store, account.id)
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
        **_view(account),
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


def _storage(context: services_context.Context, used: queue_limit.AccountUsage) -> str:
    quotas = context.settings.quotas
    return (
        f"{used.live / queue_limit.MEBIBYTE:,.1f} of {quotas.stored_megabytes:,} MiB, "
        f"test mail {used.test / queue_limit.MEBIBYTE:,.1f} of {quotas.test_megabytes:,} MiB"
    )


def _sending(sending: account_registry.Sending) -> str:
    if sending.state == "off":
        return "not monitored (bounce_guard.enabled is false)"
    return (
        f"{sending.recipients} recipients in {sending.days} days, {sending.bounces} invalid addresses "
        f"({sending.bounce_percent:.2f}%), {sending.complaints} complaints ({sending.complaint_percent:.2f}%): "
        f"{sending.state}"
    )


@click.command("suspend", cls=server_command.HostCommand)
@NAMED
@click.option("--reason", required=True, help="Reason, shown to senders in the error.")
def suspend(server: local_server.LocalServer, named: str, reason: str) -> output.Report:
    """Suspend an account. It can no longer send, but can still read."""
    return _change(server, named, "/suspend", {"reason": reason}, text=f"is suspended: {reason}")


@click.command("resume", cls=server_command.HostCommand)
@NAMED
def resume(server: local_server.LocalServer, named: str) -> output.Report:
    """Resume a suspended account. Its counts of the bounce guard are reset."""
    return _change(server, named, "/resume", text="is resumed.")


@click.command("rename", cls=server_command.HostCommand)
@NAMED
@click.argument("name")
def rename(server: local_server.LocalServer, named: str, name: str) -> output.Report:
    """Rename an account."""
    return _change(server, named, "", {"name": name}, text=f"is now {name!r}.")


@click.command("limits", cls=server_command.HostCommand)
@NAMED
@click.option("--request-rate", type=int, help="Sends per second. 0: as in the settings.")
@click.option("--recipients-per-day", type=int, help="Recipients per UTC day. 0: no limit.")
def limits(
    server: local_server.LocalServer, named: str, request_rate: int | None, recipients_per_day: int | None
) -> output.Report:
    """Set the limits of an account.

    A limit that is not given stays as it is.
    """
    given = {"request_rate": request_rate, "recipients_per_day": recipients_per_day}
    body = {name: amount or None for name, amount in given.items() if amount is not None}
    account = server.named_account(named)
    if body:
        server.call("PATCH", f"{ACCOUNTS}/{account.id}", body)
        account = server.named_account(account.id)
    return report(account, f"Account {account.name!r} ({account.id}) has {account_registry.limits_text(account)}.")


def report(account: accounts.Account, text: str) -> output.Report:
    return output.Report(data={"account": _view(account)}, text=text)


def _change(
    server: local_server.LocalServer, named: str, action: str, body: dict[str, object] | None = None, *, text: str
) -> output.Report:
    account = server.named_account(named)
    found = server.call("POST" if action else "PATCH", f"{ACCOUNTS}/{account.id}{action}", body)
    return output.Report(
        data={"account": _operated_view(found["account"])},
        text=f"Account {account.name!r} ({account.id}) {text}",
    )


@click.command("close", cls=server_command.HostCommand)
@NAMED
def close(server: local_server.LocalServer, named: str) -> output.Report:
    """Close an account. Nobody can log in or send; queued mail is still delivered, and all data is kept."""
    return _change(server, named, "/close", text="is closed.")


@click.command("reopen", cls=server_command.HostCommand)
@NAMED
def reopen(server: local_server.LocalServer, named: str) -> output.Report:
    """Reopen a closed account."""
    return _change(server, named, "/reopen", text="is reopened.")


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


@click.command("add", cls=server_command.AccountCommand)
@click.option("--amount", type=int, required=True, help="Number of credits; one credit pays for one recipient.")
@click.option("--note", help="Note for the ledger entry.")
def add_credits(server: local_server.LocalServer, amount: int, note: str | None) -> output.Report:
    """Add credits to an account."""
    body = {"amount": amount, "note": note}
    found = server.call("POST", f"{ACCOUNTS}/{server.account.id}/credits", body)["account"]
    available = found["credits"]["available"]
    text = f"{amount} credits added to {found['name']!r} ({found['id']}); {available} available."
    return output.Report(data={"account": _operated_view(found)}, text=text)


@click.command("unlimited", cls=server_command.AccountCommand)
@click.argument("state", type=click.Choice(["on", "off"]), metavar="STATE")
def unlimited_credits(server: local_server.LocalServer, state: str) -> output.Report:
    """Give an account unlimited credits (on), or charge it again (off)."""
    unlimited = state == "on"
    found = server.call("PATCH", f"{ACCOUNTS}/{server.account.id}", {"credits_unlimited": unlimited})["account"]
    result = "has unlimited credits" if unlimited else "is charged credits"
    data = {"account": _operated_view(found), "unlimited": unlimited}
    return output.Report(data=data, text=f"Account {found['name']!r} ({found['id']}) {result}.")


DEFAULT_ENTRIES: Final = 50
MAX_ENTRIES: Final = 1_000


@click.command("audit-log", cls=server_command.HostCommand, params=[server_command.OF_ACCOUNT])
@click.option("--installation", is_flag=True, help="Show changes of the installation instead of those of an account.")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_ENTRIES),
    default=DEFAULT_ENTRIES,
    show_default=True,
    help="Maximum number of entries.",
)
def audit_log(
    server: local_server.LocalServer, *, account: str | None, installation: bool, limit: int
) -> output.Report:
    """Show who changed what in an account, newest first."""
    if installation and account is not None:
        raise click.UsageError("--account and --installation cannot be combined; use one of them.")
    of = {"of": "installation"} if installation else {"account_id": server.named_account(account).id}
    entries: list[dict[str, Any]] = []
    before = None
    while len(entries) < limit:
        rows = min(identifiers.MAX_LIMIT, limit - len(entries))
        page = server.get("/v1/operator/audit-log", before=before, limit=rows, **of)
        entries += page["entries"]
        if (before := page["next_before"]) is None:
            break
    rows_shown = [(entry["at"], entry["actor"]["name"], entry["client_address"], entry["text"]) for entry in entries]
    text = output.table(["time", "actor", "client", "action"], rows_shown, empty="The audit log is empty.")
    return output.Report(
        data={"entries": [{**entry, "account_id": entry["account_id"] or ""} for entry in entries]}, text=text
    )
