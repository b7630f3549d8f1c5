"""`postroad account`: make, list, show, suspend and resume accounts."""

import dataclasses

import click

from postroad.cli import account_option, command, output, views
from postroad.model import cursors, times
from postroad.services import context as services_context
from postroad.services.accounts import registry as services_accounts
from postroad.storage import accounts

NAMED = click.argument("named", metavar="ACCOUNT")


@click.command("create", cls=command.StoreCommand)
@click.option("--name", required=True, help="A name for people.")
async def create(context: services_context.Context, name: str) -> output.Report:
    """Make an account. It has no credits yet."""
    account = await services_accounts.create(context, name)
    return _report(account, f"Account {account.name!r} made: {account.id}")


@click.command("list", cls=command.StoreCommand)
@click.option("--after", default="", metavar="ID", help="Start behind this account.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many at the most.")
async def show_list(context: services_context.Context, after: str, limit: int) -> output.Report:
    """List accounts, oldest first."""
    found = await services_accounts.page(context, after, limit + 1)
    page, following = found[:limit], cursors.following([account.id for account in found], limit=limit)
    rows = [(account.id, account.name, account.status, account.available, account.reserved) for account in page]
    text = output.table(["id", "name", "status", "available", "reserved"], rows, empty="There are no accounts.")
    data = {"accounts": [views.account(account) for account in page], "next_after": following}
    return output.Report(data=data, text=output.with_more(text, following))


@click.command("show", cls=command.StoreCommand)
@NAMED
async def show(context: services_context.Context, named: str) -> output.Report:
    """Show one account, named by its id or its unique name."""
    account = await account_option.account(context, named)
    sending = await services_accounts.sending(context, account)
    state = f"{account.status}: {account.suspended_reason}" if account.suspended_reason else account.status
    facts = {
        "id": account.id,
        "name": account.name,
        "status": state,
        "credits": f"{account.available} available, {account.reserved} reserved",
        "sending": _sending(sending),
        "made": times.to_wire(account.created_at),
    }
    text = "\n".join(f"{name + ':':9}{value}" for name, value in facts.items())
    return output.Report(
        data={"account": {**views.account(account), "sending": dataclasses.asdict(sending)}}, text=text
    )


def _sending(sending: services_accounts.Sending) -> str:
    """What the bounce guard has counted, for people."""
    if sending.state == "off":
        return "not watched: bounce_guard.enabled is false"
    return (
        f"{sending.recipients} recipients in {sending.days} days, {sending.bounces} do not exist "
        f"({sending.bounce_percent:.2f} %), {sending.complaints} complaints ({sending.complaint_percent:.2f} %): "
        f"{sending.state}"
    )


@click.command("suspend", cls=command.StoreCommand)
@NAMED
@click.option("--reason", required=True, help="Why; senders see it in the refusal.")
async def suspend(context: services_context.Context, named: str, reason: str) -> output.Report:
    """Stop an account from sending. It can still read."""
    account = await account_option.account(context, named)
    account = await services_accounts.suspend(context, account.id, reason)
    return _report(account, f"Account {account.name!r} ({account.id}) is suspended: {reason}")


@click.command("resume", cls=command.StoreCommand)
@NAMED
async def resume(context: services_context.Context, named: str) -> output.Report:
    """Let a suspended account send again."""
    account = await account_option.account(context, named)
    account = await services_accounts.resume(context, account.id)
    return _report(account, f"Account {account.name!r} ({account.id}) may send again.")


def _report(account: accounts.Account, text: str) -> output.Report:
    return output.Report(data={"account": views.account(account)}, text=text)


GROUP = click.Group("account", commands=[create, show_list, show, suspend, resume], help="Accounts.")
