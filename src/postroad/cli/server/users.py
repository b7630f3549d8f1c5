"""`postroad user`, `operator`, `sso` and `token`: users, how they log in, and who operates the installation."""

import sys
from typing import Final

import click

from postroad import context as services_context
from postroad import errors
from postroad.cli.framework import command, output
from postroad.keys import installation_keys
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.people import credentials, logins, password_links, sso_connections
from postroad.services.people import users as account_users
from postroad.storage.people import accounts, users

ROLES: Final = [role.value for role in callers.Role]
ACCOUNT: Final = click.Option(
    ["--account"], metavar="ACCOUNT", help="Account id or unique name; needed if the email belongs to several accounts."
)
# Longer than the password limit, so that a password that is too long is rejected, not cut.
FIELDS: Final = "id account_id email role disabled_at created_at joined_at last_login_at".split()
LINE_CHARACTERS: Final = 5_000


@click.command("create", cls=command.AccountCommand)
@click.argument("email")
@click.option(
    "--role", type=click.Choice(ROLES), default=callers.Role.OWNER.value, show_default=True, help="Role of the user."
)
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input; default: generate one.")
async def create(
    context: services_context.Context, *, email: str, account: accounts.Account, role: str, password_stdin: bool
) -> output.Report:
    """Create a user. A generated password is shown once."""
    given = _read_password() if password_stdin else None
    user, password = await account_users.create(
        context, account.id, email=email, password=given, role=callers.Role(role)
    )
    text = f"{user.email} can log in to {account.name!r} as {user.role}."
    return _report(user, text, generated=None if password_stdin else password)


@click.command("list", cls=command.AccountCommand)
async def show_list(context: services_context.Context, account: accounts.Account) -> output.Report:
    """List the users of an account."""
    listed = await account_users.of_account(context, account.id)
    rows = [
        (
            user.id,
            user.email,
            user.role,
            *map(times.optional_to_wire, (user.disabled_at, user.joined_at, user.last_login_at)),
        )
        for user in listed
    ]
    columns = ["id", "email", "role", "disabled", "joined", "last login"]
    text = output.table(columns, rows, empty="There are no users.")
    return output.Report(data={"users": [_view(user) for user in listed]}, text=text)


@click.command("invite", cls=command.AccountCommand)
@click.argument("email")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default=callers.Role.DEVELOPER.value,
    show_default=True,
    help="Role of the user.",
)
async def invite(context: services_context.Context, email: str, account: accounts.Account, role: str) -> output.Report:
    """Create a user and show a link for setting the password."""
    invited = await account_users.invite(context, account.id, email=email, role=callers.Role(role))
    text = f"{invited.user.email} can join {account.name!r} as {invited.user.role} with this link:"
    return link_report(context, invited.user, text, token=invited.link_token, expires_at=invited.expires_at)


@click.command("link", cls=command.StoreCommand, params=[ACCOUNT])
@click.argument("email")
@click.option("--recovery", is_flag=True, help="Remove the second factors of the user when the link is used.")
async def link(context: services_context.Context, email: str, account: str | None, *, recovery: bool) -> output.Report:
    """Show a link for setting a new password. The previous link stops working; the password works until it is used."""
    user = await _find(context, email, account)
    made = await account_users.create_password_link(context, user.account_id, user.id, is_recovery=recovery)
    also = ", which also removes the second factors" if recovery else ""
    text = f"{user.email} can set a new password with this link{also}:"
    return link_report(context, user, text, token=made.token, expires_at=made.expires_at)


@click.command("role", cls=command.StoreCommand, params=[ACCOUNT])
@click.argument("email")
@click.argument("role", type=click.Choice(ROLES), metavar="ROLE")
async def set_role(context: services_context.Context, email: str, role: str, account: str | None) -> output.Report:
    """Change the role of a user."""
    user = await _find(context, email, account)
    changed = await account_users.change_role(context, user.account_id, user.id, role=callers.Role(role))
    return _report(changed, f"{changed.email} now has the role {changed.role}.")


@click.command("remove", cls=command.StoreCommand, params=[ACCOUNT])
@click.argument("email")
async def remove(context: services_context.Context, email: str, account: str | None) -> output.Report:
    """Remove a user and end all their sessions. Keys of a disabled user are revoked."""
    user = await _find(context, email, account)
    removed, revoked = await account_users.remove(context, user.account_id, user.id)
    return _report(removed, f"{user.email} is removed.{_listed('These are revoked', revoked)}")


@click.command("password", cls=command.StoreCommand, params=[ACCOUNT])
@click.argument("email")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input; default: generate one.")
async def set_password(
    context: services_context.Context, email: str, account: str | None, *, password_stdin: bool
) -> output.Report:
    """Set a new password for a user and end all their sessions."""
    user = await _find(context, email, account)
    password = _read_password() if password_stdin else installation_keys.random_text(account_users.GENERATED_CHARACTERS)
    user = await account_users.set_password(context, user.account_id, user.id, password=password)
    return _report(user, f"{user.email} has a new password.", generated=None if password_stdin else password)


@click.command("disable", cls=command.StoreCommand, params=[ACCOUNT])
@click.argument("email")
@click.option(
    "--keep-secrets",
    is_flag=True,
    help="Keep the API keys and SMTP credentials of the user working. They then have no creator.",
)
async def disable(
    context: services_context.Context, email: str, account: str | None, *, keep_secrets: bool
) -> output.Report:
    """Disable a user. Their API keys and SMTP credentials stop working. Takes effect within a second."""
    user = await _find(context, email, account)
    disabled = await account_users.disable(context, user.account_id, user.id, hand_over=keep_secrets)
    stopped = await credentials.secrets_created_by(context, disabled)
    listed = _listed("These stop working until the user is enabled", stopped)
    return _report(disabled, f"{user.email} is disabled.{listed}")


@click.command("enable", cls=command.StoreCommand, params=[ACCOUNT])
@click.argument("email")
async def enable(context: services_context.Context, email: str, account: str | None) -> output.Report:
    """Enable a disabled user."""
    user = await _find(context, email, account)
    return _report(await account_users.enable(context, user.account_id, user.id), f"{user.email} is enabled.")


@click.command("token", cls=command.StoreCommand, params=[command.ACCOUNT])
@click.argument("email", required=False)
async def token(context: services_context.Context, email: str | None, account: str | None) -> output.Report:
    """Issue a login token (JWT) for a user; default: the first owner of the account."""
    user = await _find(context, email, account) if email else await _first_owner(context, account)
    if user.disabled_at:
        raise errors.Conflict(f"{user.email} is disabled and cannot have a token")
    if user.joined_at is None:
        raise errors.Conflict(f"{user.email} has not joined yet and cannot have a token")
    session = await logins.issue_token(context, user)
    data = {"token": session.token, "expires_at": times.to_wire(session.expires_at), "user": _view(user)}
    return output.Report(data=data, text=session.token)


async def _find(context: services_context.Context, email: str, named: str | None) -> users.User:
    """The user with this email, in the account that is named, or in the only one there is."""
    account_id = None if named is None else (await command.named_account(context, named)).id
    user = await account_users.by_email(context, email, account_id=account_id)
    if user is None:
        raise errors.NotFound(f"user {email!r} does not exist")
    return user


async def _first_owner(context: services_context.Context, named: str | None) -> users.User:
    account = await command.named_account(context, named)
    for user in await account_users.of_account(context, account.id):
        if user.role == callers.Role.OWNER and user.disabled_at is None and user.joined_at is not None:
            return user
    raise errors.NotFound(f"account {account.name!r} has no active owner; create one with 'postroad user create'")


def _view(user: users.User) -> dict[str, object]:
    return times.wire_fields(user, FIELDS)


def _listed(title: str, created: credentials.CreatedSecrets) -> str:
    """A line that names API keys and SMTP credentials; empty if there are none."""
    names = [
        *(f"API key {api_key.name!r}" for api_key in created.api_keys),
        *(f"SMTP credential {credential.name!r}" for credential in created.credentials),
    ]
    return f"\n{title}: {', '.join(names)}." if names else ""


def _read_password() -> str:
    return sys.stdin.readline(LINE_CHARACTERS).rstrip("\r\n")


def _report(user: users.User, text: str, *, generated: str | None = None) -> output.Report:
    """The report of a user, with the password if it was generated."""
    view = _view(user)
    if generated is None:
        return output.Report(data={"user": view}, text=text)
    text = f"{text}\npassword:  {generated}\n{output.SHOWN_ONCE}"
    return output.Report(data={"user": {**view, "password": generated}}, text=text)


def link_report(
    context: services_context.Context, user: users.User, text: str, *, token: str, expires_at: int
) -> output.Report:
    """The report of a password link."""
    url = password_links.url(context.settings, token)
    text = f"{text}\n{url}\nIt works once, until {times.to_minute(expires_at)}. {output.SHOWN_ONCE}"
    data = {"user": _view(user), "link": url, "expires_at": times.to_wire(expires_at)}
    return output.Report(data=data, text=text)


@click.command("add", cls=command.StoreCommand, params=[ACCOUNT])
@click.argument("email")
async def add_operator(context: services_context.Context, email: str, account: str | None) -> output.Report:
    """Make a user an operator of the installation. Check that the printed account is the right one."""
    account_id = None if account is None else (await command.named_account(context, account)).id
    user = await account_users.add_operator(context, email, account_id=account_id)
    return output.Report(data={"user": _view(user)}, text=f"{user.email} of account {user.account_id} is an operator.")


@click.command("list", cls=command.StoreCommand)
async def list_operators(context: services_context.Context) -> output.Report:
    """List the operators of the installation."""
    found = await account_users.operators(context)
    rows = [
        (
            operator.id,
            operator.email,
            *map(times.optional_to_wire, (operator.operator_since, operator.disabled_at, operator.last_login_at)),
        )
        for operator in found
    ]
    text = output.table(["id", "email", "since", "disabled", "last login"], rows, empty="There are no operators.")
    return output.Report(data={"operators": [_view(operator) for operator in found]}, text=text)


@click.command("remove", cls=command.StoreCommand)
@click.argument("email")
async def remove_operator(context: services_context.Context, email: str) -> output.Report:
    """End the operator role of a user."""
    found = [operator for operator in await account_users.operators(context) if operator.email.lower() == email.lower()]
    if not found:
        raise errors.NotFound(f"{email!r} is not an operator")
    user = await account_users.remove_operator(context, found[0].id)
    return output.Report(data={"user": _view(user)}, text=f"{user.email} is no longer an operator.")


@click.command("show", cls=command.StoreCommand, params=[command.ACCOUNT])
async def show_sso(context: services_context.Context, *, account: str | None) -> output.Report:
    """Show the single sign-on of an account."""
    chosen = await command.named_account(context, account)
    found = await sso_connections.find(context, chosen.id)
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
        "redirect_uri": sso_connections.redirect_uri(context.settings, chosen.id),
        "updated_at": times.to_wire(row.updated_at),
    }
    text = f"{row.issuer} for {', '.join(found.domains)}; passwords are {'on' if row.allows_passwords else 'off'}."
    return output.Report(data={"sso": data}, text=text)


@click.command("remove", cls=command.StoreCommand, params=[command.ACCOUNT])
async def remove_sso(context: services_context.Context, *, account: str | None) -> output.Report:
    """Remove the single sign-on of an account.

    People who have no password need a link to set one: 'postroad user link'.
    """
    chosen = await command.named_account(context, account)
    await sso_connections.remove(context, chosen.id)
    return output.Report(data={"account_id": chosen.id}, text=f"Single sign-on of {chosen.name} is removed.")
