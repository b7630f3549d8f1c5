"""`postroad account`: create, list, show, rename, limit, suspend and resume accounts."""

import dataclasses

import click

from postroad.cli import account_option, command, output, views
from postroad.model import cursors, times
from postroad.services import context as services_context
from postroad.services.acceptance import stored_space
from postroad.services.accounts import account_limits
from postroad.services.accounts import credits as services_credits
from postroad.services.accounts import registry as services_accounts
from postroad.storage import accounts

NAMED = click.argument("named", metavar="ACCOUNT")


@click.command("create", cls=command.StoreCommand)
@click.option("--name", required=True, help="Display name.")
async def create(context: services_context.Context, name: str) -> output.Report:
    """Create an account."""
    account = await services_accounts.create(context, name)
    return report(account, f"Account {account.name!r} created: {account.id}")


@click.command("list", cls=command.StoreCommand)
@click.option("--after", default="", metavar="ID", help="Start after this account.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Maximum number of rows.")
async def show_list(context: services_context.Context, after: str, limit: int) -> output.Report:
    """List accounts, oldest first."""
    found = await services_accounts.page(context, after, limit + 1)
    page, next_cursor = cursors.page(found, limit=limit)
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
    account = await account_option.account(context, named)
    sending = await services_accounts.sending(context, account)
    storage = await stored_space.of_account(context.store, account.id)
    state = account.state
    if state == accounts.SUSPENDED and account.suspended_reason:
        state += f": {account.suspended_reason}"
    facts = {
        "id": account.id,
        "name": account.name,
        "status": state,
        **_balances(context, account),
        "limits": account_limits.text(account),
        "sending": _sending(sending),
        "storage": _storage(context, storage),
        "created": times.to_wire(account.created_at),
    }
    text = "\n".join(f"{name + ':':9}{value}" for name, value in facts.items())
    until = times.optional_to_wire(services_accounts.suspended_until(context, account))
    details = {
        **views.account(account),
        "suspended_until": until,
        "sending": dataclasses.asdict(sending),
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


def _sending(sending: services_accounts.Sending) -> str:
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
    account = await account_option.account(context, named)
    account = await services_accounts.suspend(context, account.id, reason)
    return report(account, f"Account {account.name!r} ({account.id}) is suspended: {reason}")


@click.command("resume", cls=command.StoreCommand)
@NAMED
async def resume(context: services_context.Context, named: str) -> output.Report:
    """Resume a suspended account."""
    account = await account_option.account(context, named)
    account = await services_accounts.resume(context, account.id)
    return report(account, f"Account {account.name!r} ({account.id}) is resumed.")


@click.command("rename", cls=command.StoreCommand)
@NAMED
@click.argument("name")
async def rename(context: services_context.Context, named: str, name: str) -> output.Report:
    """Rename an account."""
    account = await account_option.account(context, named)
    renamed = await services_accounts.rename(context, account.id, name)
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
    account = await account_option.account(context, named)
    account = await account_limits.change(
        context,
        account.id,
        request_rate=account.request_rate if request_rate is None else request_rate or None,
        recipients_per_day=account.recipients_per_day if recipients_per_day is None else recipients_per_day or None,
    )
    return report(account, f"Account {account.name!r} ({account.id}) has {account_limits.text(account)}.")


def report(account: accounts.Account, text: str) -> output.Report:
    """An account after a change."""
    return output.Report(data={"account": views.account(account)}, text=text)
