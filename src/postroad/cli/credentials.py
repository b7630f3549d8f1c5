"""`postroad credential`: SMTP usernames and passwords, for SMTP submission and for HTTP Basic."""

import click

from postroad.cli import command, output, views
from postroad.model import times
from postroad.services import context as services_context
from postroad.services.auth import credentials
from postroad.storage import accounts


@click.command("create", cls=command.AccountCommand)
@click.option("--name", default="default", show_default=True, help="Display name.")
async def create(context: services_context.Context, account: accounts.Account, name: str) -> output.Report:
    """Create an SMTP credential and show its password once."""
    credential, password = await credentials.create(context, account.id, name)
    text = (
        f"username:  {credential.username}\npassword:  {password}\n{output.SHOWN_ONCE} Credential id: {credential.id}"
    )
    return output.Report(data={"credential": {**views.credential(credential), "password": password}}, text=text)


@click.command("list", cls=command.AccountCommand)
async def show_list(context: services_context.Context, account: accounts.Account) -> output.Report:
    """List an account's SMTP credentials."""
    listed = await credentials.of_account(context, account.id)
    rows = [
        (
            one.id,
            one.name,
            one.username,
            views.creator(one),
            *map(times.optional_to_wire, (one.disabled_at, one.revoked_at)),
        )
        for one in listed
    ]
    titles = ["id", "name", "username", "created by", "disabled", "revoked"]
    text = output.table(titles, rows, empty="There are no SMTP credentials.")
    return output.Report(data={"credentials": [views.credential(one) for one in listed]}, text=text)


@click.command("revoke", cls=command.AccountCommand)
@click.argument("credential_id", metavar="CREDENTIAL_ID")
async def revoke(context: services_context.Context, credential_id: str, account: accounts.Account) -> output.Report:
    """Revoke an SMTP credential and its API keys. Takes effect within a second."""
    await credentials.revoke(context, account.id, credential_id)
    return output.Report(data={"revoked": credential_id}, text=f"{credential_id} and its API keys are revoked.")
