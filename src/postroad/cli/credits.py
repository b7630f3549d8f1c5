"""`postroad credits`: add credits to an account."""

import click

from postroad.cli import account_option, command, output, views
from postroad.services import context as services_context
from postroad.services.accounts import credits as services_credits


@click.command("add", cls=command.StoreCommand)
@account_option.account_option
@click.option("--amount", type=int, required=True, help="Number of credits; one credit pays for one recipient.")
@click.option("--note", help="Note for the ledger entry.")
async def add(context: services_context.Context, account: str | None, amount: int, note: str | None) -> output.Report:
    """Add credits to an account."""
    found = await account_option.account(context, account)
    changed = await services_credits.add(context, found.id, amount, note)
    text = f"{amount} credits added to {changed.name!r} ({changed.id}); {changed.available} available."
    return output.Report(data={"account": views.account(changed)}, text=text)


GROUP = click.Group("credits", commands=[add], help="Manage credits.")
