"""`postroad operator`: the people who manage the installation at `/operator` and over `/v1/operator`."""

import click

from postroad import errors
from postroad.cli import account_option, command, output, users, views
from postroad.model import times
from postroad.services import context as services_context
from postroad.services.auth import operators


@click.command("add", cls=command.StoreCommand, params=[users.ACCOUNT])
@click.argument("email")
async def add(context: services_context.Context, email: str, account: str | None) -> output.Report:
    """Make a user an operator of the installation."""
    account_id = None if account is None else (await account_option.account(context, account)).id
    user = await operators.add(context, email, account_id=account_id)
    return output.Report(
        data={"user": views.user(user)}, text=f"{user.email} of account {user.account_id} is an operator."
    )


@click.command("list", cls=command.StoreCommand)
async def show_list(context: services_context.Context) -> output.Report:
    """List the operators of the installation."""
    found = await operators.of_installation(context)
    rows = [
        (one.id, one.email, *map(times.optional_to_wire, (one.operator_since, one.disabled_at, one.last_login_at)))
        for one in found
    ]
    text = output.table(["id", "email", "since", "disabled", "last login"], rows, empty="There are no operators.")
    return output.Report(data={"operators": [views.user(one) for one in found]}, text=text)


@click.command("remove", cls=command.StoreCommand)
@click.argument("email")
async def remove(context: services_context.Context, email: str) -> output.Report:
    """End the operator role of a user."""
    found = [one for one in await operators.of_installation(context) if one.email.lower() == email.lower()]
    if not found:
        raise errors.NotFound(f"{email!r} is not an operator")
    user = await operators.remove(context, found[0].id)
    return output.Report(data={"user": views.user(user)}, text=f"{user.email} is no longer an operator.")
