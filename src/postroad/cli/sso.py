"""`postroad sso`: the single sign-on of accounts, for when nobody of an account can log in."""

import click

from postroad import errors
from postroad.cli import account_option, command, output
from postroad.model import times
from postroad.services import context as services_context
from postroad.services.sso import connections


@click.command("show", cls=command.StoreCommand, params=[account_option.OPTION])
async def show(context: services_context.Context, *, account: str | None) -> output.Report:
    """Show the single sign-on of an account."""
    chosen = await account_option.account(context, account)
    found = await connections.find(context, chosen.id)
    if found is None:
        raise errors.NotFound("this account has no single sign-on")
    row = found.row
    data = {
        "account_id": chosen.id,
        "issuer": row.issuer,
        "client_id": row.client_id,
        "domains": [*found.domains],
        "creates_users": bool(row.creates_users),
        "role": row.role,
        "groups": dict(row.roles),
        "allows_passwords": bool(row.allows_passwords),
        "redirect_uri": connections.redirect_uri(context.settings, chosen.id),
        "updated_at": times.to_wire(row.updated_at),
    }
    text = f"{row.issuer} for {', '.join(found.domains)}; passwords are {'on' if row.allows_passwords else 'off'}."
    return output.Report(data={"sso": data}, text=text)


@click.command("remove", cls=command.StoreCommand, params=[account_option.OPTION])
async def remove(context: services_context.Context, *, account: str | None) -> output.Report:
    """Remove the single sign-on of an account.

    People who have no password need a link to set one: 'postroad user link'.
    """
    chosen = await account_option.account(context, account)
    await connections.remove(context, chosen.id)
    return output.Report(data={"account_id": chosen.id}, text=f"Single sign-on of {chosen.name} is removed.")
