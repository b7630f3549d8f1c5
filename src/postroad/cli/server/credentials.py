"""`postroad credential` and `postroad apikey`: SMTP credentials, and API keys that are issued under them.

Keys are created by the service: no request to the API can give one the scope `operator`.
"""

from typing import Any, Final
from urllib import parse

import click
import msgspec

from postroad import context as services_context
from postroad.api.v1 import api_keys as key_views
from postroad.cli.framework import command, local_server, output, server_command
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.people import api_keys
from postroad.storage.people import accounts

CREDENTIALS: Final = "/v1/credentials"
KEYS: Final = "/v1/api-keys"


@click.command("create", cls=server_command.AccountCommand)
@click.option("--name", default="default", show_default=True, help="Display name.")
def create(server: local_server.LocalServer, name: str) -> output.Report:
    """Create an SMTP credential and show its password once."""
    found = server.call("POST", CREDENTIALS, {"name": name})
    made, password = found["credential"], found["password"]
    text = f"username:  {made['username']}\npassword:  {password}\n{output.SHOWN_ONCE} Credential id: {made['id']}"
    return output.Report(data={"credential": {**server.owned(made), "password": password}}, text=text)


@click.command("list", cls=server_command.AccountCommand)
def show_list(server: local_server.LocalServer) -> output.Report:
    """List an account's SMTP credentials."""
    listed = server_command.all_rows(server, CREDENTIALS, "credentials")
    rows = [
        (
            credential["id"],
            credential["name"],
            credential["username"],
            _creator(credential),
            credential["disabled_at"],
            credential["revoked_at"],
        )
        for credential in listed
    ]
    titles = ["id", "name", "username", "created by", "disabled", "revoked"]
    text = output.table(titles, rows, empty="There are no SMTP credentials.")
    return output.Report(data={"credentials": [server.owned(credential) for credential in listed]}, text=text)


def _creator(secret: dict[str, Any]) -> str | None:
    return secret["created_by_email"] or (secret["created_by"] and "removed user")


@click.command("revoke", cls=server_command.AccountCommand)
@click.argument("credential_id", metavar="CREDENTIAL_ID")
def revoke(server: local_server.LocalServer, credential_id: str) -> output.Report:
    """Revoke an SMTP credential and its API keys. Takes effect within a second."""
    server.call("DELETE", f"{CREDENTIALS}/{parse.quote(credential_id, safe='')}")
    return output.Report(data={"revoked": credential_id}, text=f"{credential_id} and its API keys are revoked.")


@click.command("create", cls=command.AccountCommand)
@click.option("--name", default="default", show_default=True, help="Display name.")
@click.option("--credential", metavar="ID", help="SMTP credential of the key; default: the oldest of the account.")
@click.option("--test", is_flag=True, help="Create a test key: what it sends goes to the simulator.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=("send",),
    show_default=True,
    type=click.Choice([scope.value for scope in callers.Scope] + [callers.EVERY_SCOPE]),
    help="What the key may do; repeatable.",
)
@click.option("--domain", "domains", multiple=True, metavar="NAME", help="Sender domain; repeatable. Default: all.")
@click.option(
    "--network",
    "networks",
    multiple=True,
    metavar="CIDR",
    help="Where it may be used from; repeatable. Default: anywhere.",
)
@click.option(
    "--template", "templates", multiple=True, metavar="ALIAS", help="Only this template; repeatable. Default: anything."
)
@click.option("--recipients-per-day", type=int, metavar="N", help="Maximum recipients per UTC day.")
@click.option("--credit-budget", type=int, metavar="N", help="Maximum credits in total.")
@click.option(
    "--approval-above", type=int, metavar="N", help="Recipients of a request above which a person approves it."
)
@click.option("--expires", metavar="TIME", help="Expiry, such as 2026-12-31 or 2026-12-31T12:00:00Z. Default: never.")
async def create_key(
    context: services_context.Context,
    *,
    account: accounts.Account,
    name: str,
    credential: str | None,
    test: bool,
    scopes: tuple[str, ...],
    domains: tuple[str, ...],
    networks: tuple[str, ...],
    templates: tuple[str, ...],
    recipients_per_day: int | None,
    credit_budget: int | None,
    approval_above: int | None,
    expires: str | None,
) -> output.Report:
    """Create an API key and show it once. It shares the idempotency keys of an SMTP credential."""
    limits = callers.KeyLimits(
        domains=domains,
        networks=networks,
        templates=templates,
        recipients_per_day=recipients_per_day,
        credit_budget=credit_budget,
        approval_above=approval_above,
        expires_at=None if expires is None else _time(expires),
    )
    key, secret = await api_keys.create(
        context,
        account.id,
        credential_id=credential,
        name=name,
        scopes=frozenset(scopes),
        mode=statuses.Mode.TEST if test else statuses.Mode.LIVE,
        limits=limits,
    )
    text = f"{secret}\n{output.SHOWN_ONCE} Key id: {key.id}"
    shown = msgspec.to_builtins(key_views.key_view(key, now=context.clock()))
    return output.Report(data={"api_key": {"id": key.id, "account_id": account.id, **shown, "key": secret}}, text=text)


@click.command("list", cls=server_command.AccountCommand)
def list_keys(server: local_server.LocalServer) -> output.Report:
    """List an account's API keys."""
    listed = server_command.all_rows(server, KEYS, "api_keys")
    rows = [
        (
            *(key["id"], key["name"], key["hint"], " ".join(key["scopes"]), _creator(key)),
            *(key["expires_at"], key["disabled_at"], key["revoked_at"]),
        )
        for key in listed
    ]
    titles = ["id", "name", "hint", "scopes", "created by", "expires", "disabled", "revoked"]
    text = output.table(titles, rows, empty="There are no API keys.")
    return output.Report(data={"api_keys": [server.owned(key) for key in listed]}, text=text)


@click.command("revoke", cls=server_command.AccountCommand)
@click.argument("key_id", metavar="KEY_ID")
def revoke_key(server: local_server.LocalServer, key_id: str) -> output.Report:
    """Revoke an API key. Takes effect within a second."""
    server.call("DELETE", f"{KEYS}/{parse.quote(key_id, safe='')}")
    return output.Report(data={"revoked": key_id}, text=f"{key_id} is revoked.")


def _time(text: str) -> int:
    """A time; a date alone is its beginning in UTC."""
    try:
        return times.parse(text if "T" in text.upper() else f"{text}T00:00:00Z")
    except ValueError:
        msg = "--expires: must be a date such as 2026-12-31, or a time such as 2026-12-31T12:00:00Z"
        raise click.UsageError(msg) from None
