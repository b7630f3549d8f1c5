"""`postroad apikey`: keys that send over HTTP, issued under an SMTP credential."""

import click

from postroad.cli import account_option, command, output, views
from postroad.model import caller, times
from postroad.services import context as services_context
from postroad.services.auth import api_keys, credentials


@click.command("create", cls=command.StoreCommand)
@account_option.account_option
@click.option("--name", default="default", show_default=True, help="A name for people.")
@click.option(
    "--credential", metavar="ID", help="The SMTP credential it belongs to; the account's first one if not given."
)
@click.option("--read", is_flag=True, help="Let it read messages as well; otherwise it can only send.")
async def create(
    context: services_context.Context, *, account: str | None, name: str, credential: str | None, read: bool
) -> output.Report:
    """Make an API key and show it, once."""
    found = await account_option.account(context, account)
    scopes = frozenset({caller.Permission.SEND} | ({caller.Permission.READ} if read else set()))
    if credential is None:
        await _ensure_credential(context, found.id)
    key, secret = await api_keys.create(context, found.id, credential_id=credential, name=name, scopes=scopes)
    text = f"{secret}\n{output.SHOWN_ONCE} Its id is {key.id}."
    return output.Report(data={"api_key": {**views.api_key(key), "key": secret}}, text=text)


@click.command("list", cls=command.StoreCommand)
@account_option.account_option
async def show_list(context: services_context.Context, account: str | None) -> output.Report:
    """List an account's API keys."""
    found = await account_option.account(context, account)
    listed = await api_keys.of_account(context, found.id)
    rows = [(one.id, one.name, one.hint, one.scopes, times.optional_to_wire(one.revoked_at)) for one in listed]
    text = output.table(["id", "name", "hint", "scopes", "revoked"], rows, empty="There are no API keys.")
    return output.Report(data={"api_keys": [views.api_key(one) for one in listed]}, text=text)


@click.command("revoke", cls=command.StoreCommand)
@click.argument("key_id", metavar="KEY_ID")
@account_option.account_option
async def revoke(context: services_context.Context, key_id: str, account: str | None) -> output.Report:
    """Stop an API key within a second."""
    found = await account_option.account(context, account)
    await api_keys.revoke(context, found.id, key_id)
    return output.Report(data={"revoked": key_id}, text=f"{key_id} is revoked.")


async def _ensure_credential(context: services_context.Context, account_id: str) -> None:
    """A key lives under an SMTP credential; an account that has none gets one that nobody knows the password of."""
    listed = await credentials.of_account(context, account_id)
    if not any(one.revoked_at is None for one in listed):
        await credentials.create(context, account_id, "default")


GROUP = click.Group("apikey", commands=[create, show_list, revoke], help="API keys.")
