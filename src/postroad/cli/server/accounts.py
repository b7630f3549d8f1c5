"""`postroad account`, `credits` and `audit-log`: accounts, what they may send, and who changed what in one.

They are requests to `/v1/operator`. Accounts are created and removed by the service: only the host can, so the API has
no such request.
"""

from collections.abc import Mapping
from typing import Any, Final

import click
import msgspec

from postroad import config, errors
from postroad import context as services_context
from postroad.api.operator import accounts as account_views
from postroad.cli.framework import command, local_server, output, server_command
from postroad.mail.accept import queue_limit
from postroad.model.units import identifiers
from postroad.services.accounts import account_registry
from postroad.storage.people import accounts

ACCOUNTS: Final = "/v1/operator/accounts"
NAMED = click.argument("named", metavar="ACCOUNT")


@click.command("create", cls=command.StoreCommand)
@click.option("--name", required=True, help="Display name.")
async def create(context: services_context.Context, name: str) -> output.Report:
    """Create an account."""
    account = await account_registry.create(context, name)
    shown = msgspec.to_builtins(account_views.account_view(context, account))
    return output.Report(data={"account": shown}, text=f"Account {account.name!r} created: {account.id}")


@click.command("list", cls=server_command.HostCommand)
@click.option("--after", default="", metavar="ID", help="Start after this account.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Maximum number of rows.")
def show_list(server: local_server.LocalServer, after: str, limit: int) -> output.Report:
    """List accounts, oldest first."""
    listed, has_more = server_command.first_rows(server, ACCOUNTS, "accounts", limit=limit, cursor=after or None)
    next_cursor = listed[-1]["id"] if has_more else None
    titles = ["id", "name", "status", *(["available", "reserved"] if server.settings.credits.enabled else [])]
    rows = [
        (account["id"], account["name"], account["state"], *account["credits"].values())[: len(titles)]
        for account in listed
    ]
    text = output.table(titles, rows, empty="There are no accounts.")
    data = {"accounts": listed, "next_after": next_cursor}
    return output.Report(data=data, text=output.with_more(text, next_cursor))


@click.command("show", cls=server_command.HostCommand)
@NAMED
def show(server: local_server.LocalServer, named: str) -> output.Report:
    """Show an account, by id or unique name."""
    account = server.named_account(named)
    shown = server.get(f"{ACCOUNTS}/{account.id}")["account"]
    storage = server.ask(lambda ctx: queue_limit.usage_of_account(ctx.store, account.id))
    reason = f": {shown['suspended_reason']}" if shown["state"] == accounts.SUSPENDED else ""
    facts = {
        "id": account.id,
        "name": account.name,
        "status": f"{shown['state']}{reason}",
        **_balances(server.settings, account),
        "limits": account_registry.limits_text(account),
        "sending": _sending(shown["sending"]),
        "storage": _storage(server.settings, storage),
        "created": shown["created_at"],
    }
    text = "\n".join(f"{name + ':':9}{value}" for name, value in facts.items())
    used = {"live_bytes": storage.live, "test_bytes": storage.test}
    return output.Report(data={"account": shown, "storage": used}, text=text)


def _balances(settings: config.Settings, account: accounts.Account) -> dict[str, str]:
    if not settings.credits.enabled:
        return {}
    unlimited = "; unlimited" if account.unlimited else ""
    return {"credits": f"{account.available} available, {account.reserved} reserved{unlimited}"}


def _storage(settings: config.Settings, used: queue_limit.AccountUsage) -> str:
    return (
        f"{used.live / queue_limit.MEBIBYTE:,.1f} of {settings.quotas.stored_megabytes:,} MiB, "
        f"test mail {used.test / queue_limit.MEBIBYTE:,.1f} of {queue_limit.TEST_MEGABYTES:,} MiB"
    )


def _sending(sending: Mapping[str, Any]) -> str:
    if sending["state"] == "off":
        return "not monitored (bounce_guard.enabled is false)"
    days = "1 day" if sending["days"] == 1 else f"{sending['days']} days"
    return (
        f"{sending['recipients']} recipients in {days}, {sending['bounces']} invalid addresses "
        f"({sending['bounce_percent']:.2f}%), {sending['complaints']} complaints "
        f"({sending['complaint_percent']:.2f}%): {sending['state']}"
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
    path = f"{ACCOUNTS}/{account.id}"
    shown = (server.call("PATCH", path, body) if body else server.get(path))["account"]
    account = server.named_account(account.id)
    text = f"Account {account.name!r} ({account.id}) has {account_registry.limits_text(account)}."
    return output.Report(data={"account": shown}, text=text)


def _change(
    server: local_server.LocalServer, named: str, action: str, body: dict[str, object] | None = None, *, text: str
) -> output.Report:
    account = server.named_account(named)
    found = server.call("POST" if action else "PATCH", f"{ACCOUNTS}/{account.id}{action}", body)
    return output.Report(data={"account": found["account"]}, text=f"Account {account.name!r} ({account.id}) {text}")


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
    return output.Report(data={"account": found}, text=text)


@click.command("unlimited", cls=server_command.AccountCommand)
@click.argument("state", type=click.Choice(["on", "off"]), metavar="STATE")
def unlimited_credits(server: local_server.LocalServer, state: str) -> output.Report:
    """Give an account unlimited credits (on), or charge it again (off)."""
    unlimited = state == "on"
    found = server.call("PATCH", f"{ACCOUNTS}/{server.account.id}", {"credits_unlimited": unlimited})["account"]
    result = "has unlimited credits" if unlimited else "is charged credits"
    return output.Report(data={"account": found}, text=f"Account {found['name']!r} ({found['id']}) {result}.")


MAX_ENTRIES: Final = 1_000


@click.command("audit-log", cls=server_command.HostCommand, params=[server_command.OF_ACCOUNT])
@click.option("--installation", is_flag=True, help="Show changes of the installation instead of those of an account.")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_ENTRIES),
    default=50,
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
    return output.Report(data={"entries": entries}, text=text)
