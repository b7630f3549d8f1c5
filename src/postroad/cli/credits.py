"""`postroad credits`: add credits to an account."""

import click

from postroad.cli import command, output, views
from postroad.services import context as services_context
from postroad.services.accounts import credits as services_credits
from postroad.storage import accounts


@click.command("add", cls=command.AccountCommand)
@click.option("--amount", type=int, required=True, help="Number of credits; one credit pays for one recipient.")
@click.option("--note", help="Note for the ledger entry.")
async def add(
    context: services_context.Context, account: accounts.Account, amount: int, note: str | None
) -> output.Report:
    """Add credits to an account."""
    changed = await services_credits.add(context, account.id, amount, note)
    text = f"{amount} credits added to {changed.name!r} ({changed.id}); {changed.available} available."
    return output.Report(data={"account": views.account(changed)}, text=text)


@click.command("unlimited", cls=command.AccountCommand)
@click.argument("state", type=click.Choice(["on", "off"]), metavar="STATE")
async def unlimited(context: services_context.Context, account: accounts.Account, state: str) -> output.Report:
    """Give an account unlimited credits (on), or charge it again (off)."""
    changed = await services_credits.set_unlimited(context, account.id, unlimited=state == "on")
    result = "has unlimited credits" if changed.unlimited else "is charged credits"
    data = {"account": views.account(changed), "unlimited": bool(changed.unlimited)}
    return output.Report(data=data, text=f"Account {changed.name!r} ({changed.id}) {result}.")
