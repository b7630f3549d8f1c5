"""`postroad account`: close, reopen and remove accounts."""

import click

from postroad import errors
from postroad.cli import account_option, accounts, command, output
from postroad.services import context as services_context
from postroad.services.accounts import closure


@click.command("close", cls=command.StoreCommand)
@accounts.NAMED
async def close(context: services_context.Context, named: str) -> output.Report:
    """Close an account. Nobody can log in or send; queued mail is still delivered, and all data is kept."""
    account = await account_option.account(context, named)
    account = await closure.close(context, account.id)
    return accounts.report(account, f"Account {account.name!r} ({account.id}) is closed.")


@click.command("reopen", cls=command.StoreCommand)
@accounts.NAMED
async def reopen(context: services_context.Context, named: str) -> output.Report:
    """Reopen a closed account."""
    account = await account_option.account(context, named)
    account = await closure.reopen(context, account.id)
    return accounts.report(account, f"Account {account.name!r} ({account.id}) is reopened.")


@click.command("remove", cls=command.StoreCommand)
@accounts.NAMED
@click.option("--yes", is_flag=True, help="Confirm the removal.")
async def remove(context: services_context.Context, named: str, *, yes: bool) -> output.Report:
    """Remove a closed account and delete all its data."""
    account = await account_option.account(context, named)
    if not yes:
        raise errors.InvalidRequest(
            f"all data of {account.name!r} ({account.id}) would be deleted; add --yes to confirm"
        )
    account = await closure.remove(context, account.id)
    return output.Report(data={"removed": account.id}, text=f"Account {account.name!r} ({account.id}) is removed.")
