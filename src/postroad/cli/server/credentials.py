"""`postroad credential` and `postroad apikey`: SMTP credentials, and API keys that are issued under them."""

import click

from postroad import context as services_context
from postroad.cli.framework import command, output, views
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.people import api_keys, credentials
from postroad.storage.people import accounts


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
    return output.Report(data={"api_key": {**views.api_key(key, now=context.clock()), "key": secret}}, text=text)


@click.command("list", cls=command.AccountCommand)
async def list_keys(context: services_context.Context, account: accounts.Account) -> output.Report:
    """List an account's API keys."""
    listed = await api_keys.of_account(context, account.id)
    rows = [
        (
            one.id,
            one.name,
            one.hint,
            one.scopes,
            views.creator(one),
            *map(times.optional_to_wire, (one.limits.expires_at, one.disabled_at, one.revoked_at)),
        )
        for one in listed
    ]
    titles = ["id", "name", "hint", "scopes", "created by", "expires", "disabled", "revoked"]
    text = output.table(titles, rows, empty="There are no API keys.")
    return output.Report(data={"api_keys": [views.api_key(one, now=context.clock()) for one in listed]}, text=text)


@click.command("revoke", cls=command.AccountCommand)
@click.argument("key_id", metavar="KEY_ID")
async def revoke_key(context: services_context.Context, key_id: str, account: accounts.Account) -> output.Report:
    """Revoke an API key. Takes effect within a second."""
    await api_keys.revoke(context, account.id, key_id)
    return output.Report(data={"revoked": key_id}, text=f"{key_id} is revoked.")


def _time(text: str) -> int:
    """A time; a date alone is its beginning in UTC."""
    try:
        return times.parse(text if "T" in text.upper() else f"{text}T00:00:00Z")
    except ValueError as problem:
        raise click.UsageError(f"--expires: {problem}") from None
