"""`postroad apikey`: API keys, each issued under an SMTP credential."""

import click

from postroad.cli import command, output, views
from postroad.model import caller, mail, times
from postroad.services import context as services_context
from postroad.services.auth import api_keys, credentials
from postroad.storage import accounts


@click.command("create", cls=command.AccountCommand)
@click.option("--name", default="default", show_default=True, help="Display name.")
@click.option("--credential", metavar="ID", help="SMTP credential of the key; default: the oldest of the account.")
@click.option("--read", is_flag=True, help="Allow it to read messages as well as send.")
@click.option("--test", is_flag=True, help="Create a test key: what it sends goes to the simulator.")
async def create(
    context: services_context.Context,
    *,
    account: accounts.Account,
    name: str,
    credential: str | None,
    read: bool,
    test: bool,
) -> output.Report:
    """Create an API key and show it once."""
    scopes = frozenset({caller.Permission.SEND} | ({caller.Permission.READ} if read else set()))
    if credential is None:
        await _ensure_credential(context, account.id)
    mode = mail.Mode.TEST if test else mail.Mode.LIVE
    key, secret = await api_keys.create(
        context, account.id, credential_id=credential, name=name, scopes=scopes, mode=mode
    )
    text = f"{secret}\n{output.SHOWN_ONCE} Key id: {key.id}"
    return output.Report(data={"api_key": {**views.api_key(key), "key": secret}}, text=text)


@click.command("list", cls=command.AccountCommand)
async def show_list(context: services_context.Context, account: accounts.Account) -> output.Report:
    """List an account's API keys."""
    listed = await api_keys.of_account(context, account.id)
    rows = [(one.id, one.name, one.hint, one.scopes, times.optional_to_wire(one.revoked_at)) for one in listed]
    text = output.table(["id", "name", "hint", "scopes", "revoked"], rows, empty="There are no API keys.")
    return output.Report(data={"api_keys": [views.api_key(one) for one in listed]}, text=text)


@click.command("revoke", cls=command.AccountCommand)
@click.argument("key_id", metavar="KEY_ID")
async def revoke(context: services_context.Context, key_id: str, account: accounts.Account) -> output.Report:
    """Revoke an API key. Takes effect within a second."""
    await api_keys.revoke(context, account.id, key_id)
    return output.Report(data={"revoked": key_id}, text=f"{key_id} is revoked.")


async def _ensure_credential(context: services_context.Context, account_id: str) -> None:
    """A key belongs to an SMTP credential; create one, with an unknown password, if the account has none."""
    listed = await credentials.of_account(context, account_id)
    if not any(one.revoked_at is None for one in listed):
        await credentials.create(context, account_id, "default")
