"""`postroad credits`: give credits to an account."""

import click

from postroad.cli import command, naming, output, views
from postroad.services import context as services_context
from postroad.services import credits as services_credits


@click.command("add", cls=command.StoreCommand)
@naming.account_option
@click.option("--amount", type=int, required=True, help="How many; one pays for one recipient.")
@click.option("--note", help="A line for the ledger.")
async def add(context: services_context.Context, account: str | None, amount: int, note: str | None) -> output.Report:
    """Give credits to an account."""
    found = await naming.account(context, account)
    changed = await services_credits.add(context, found.id, amount, note)
    text = f"{amount} credits added to {changed.name!r} ({changed.id}); {changed.available} are available."
    return output.Report(data={"account": views.account(changed)}, text=text)


GROUP = click.Group("credits", commands=[add], help="What accounts pay with.")
