"""`postroad user`, `operator`, `sso` and `token`: users, how they log in, and who operates the installation.

They are requests to the API, except what only whoever has the host may do, and no request can: to give a user a
password or a token, to make the first operator, and to end the role of the last one.
"""

import sys
from typing import Any, Final

import click
import msgspec

from postroad import context as services_context
from postroad import errors
from postroad.api.v1 import team
from postroad.cli.framework import command, local_server, output, server_command
from postroad.cli.server import credentials
from postroad.keys import installation_keys
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.people import logins
from postroad.services.people import users as account_users
from postroad.storage.people import accounts, users

TEAM: Final = "/v1/team"
OPERATORS: Final = "/v1/operator/operators"
SSO: Final = "/v1/sso"
ROLES: Final = [role.value for role in callers.Role]
ACCOUNT: Final = click.Option(
    ["--account"], metavar="ACCOUNT", help="Account id or unique name; needed if the email belongs to several accounts."
)
# Longer than the password limit, so that a password that is too long is rejected, not cut.
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


@click.command("list", cls=server_command.AccountCommand)
def show_list(server: local_server.LocalServer) -> output.Report:
    """List the users of an account."""
    listed = server.get(TEAM)["users"]
    rows = [
        (
            *(user["id"], user["email"], user["role"], None if user["enabled"] else "yes"),
            *(user["joined_at"], user["last_login_at"]),
        )
        for user in listed
    ]
    columns = ["id", "email", "role", "disabled", "joined", "last login"]
    text = output.table(columns, rows, empty="There are no users.")
    return output.Report(data={"users": [server.owned(user) for user in listed]}, text=text)


@click.command("invite", cls=server_command.AccountCommand)
@click.argument("email")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default=callers.Role.DEVELOPER.value,
    show_default=True,
    help="Role of the user.",
)
def invite(server: local_server.LocalServer, email: str, role: str) -> output.Report:
    """Create a user and show a link for setting the password."""
    made = server.call("POST", TEAM, {"email": email, "role": role})
    user = server.owned(made["user"])
    text = f"{user['email']} can join {server.account.name!r} as {user['role']} with this link:"
    return link_report(user, text, link=made["link"], expires_at=made["expires_at"])


@click.command("link", cls=server_command.HostCommand, params=[ACCOUNT])
@click.argument("email")
@click.option("--recovery", is_flag=True, help="Remove the second factors of the user when the link is used.")
def link(server: local_server.LocalServer, email: str, account: str | None, *, recovery: bool) -> output.Report:
    """Show a link for setting a new password. The previous link stops working; the password works until it is used."""
    user = _member(server, email, account)
    made = server.call("POST", f"{_path(user)}/{'recovery' if recovery else 'password'}-link")
    also = ", which also removes the second factors" if recovery else ""
    text = f"{user.email} can set a new password with this link{also}:"
    return link_report(_view(user), text, link=made["link"], expires_at=made["expires_at"])


@click.command("role", cls=server_command.HostCommand, params=[ACCOUNT])
@click.argument("email")
@click.argument("role", type=click.Choice(ROLES), metavar="ROLE")
def set_role(server: local_server.LocalServer, email: str, role: str, account: str | None) -> output.Report:
    """Change the role of a user."""
    return _change(server, _member(server, email, account), {"role": role}, text=f"now has the role {role}.")


@click.command("remove", cls=server_command.HostCommand, params=[ACCOUNT])
@click.argument("email")
def remove(server: local_server.LocalServer, email: str, account: str | None) -> output.Report:
    """Remove a user and end all their sessions. Keys of a disabled user are revoked."""
    user = _member(server, email, account)
    created = _secrets(server, user)
    server.call("DELETE", _path(user))
    left = {secret["id"] for secret in _working(server)}
    revoked = [name for secret_id, name in created.items() if secret_id not in left]
    text = f"{user.email} is removed.{_listed('These are revoked', revoked)}"
    return output.Report(data={"user": _view(user)}, text=text)


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


@click.command("disable", cls=server_command.HostCommand, params=[ACCOUNT])
@click.argument("email")
@click.option(
    "--keep-secrets",
    is_flag=True,
    help="Keep the API keys and SMTP credentials of the user working. They then have no creator.",
)
def disable(server: local_server.LocalServer, email: str, account: str | None, *, keep_secrets: bool) -> output.Report:
    """Disable a user. Their API keys and SMTP credentials stop working. Takes effect within a second."""
    user = _member(server, email, account)
    stopped = {} if keep_secrets else _secrets(server, user)
    listed = _listed("These stop working until the user is enabled", [*stopped.values()])
    changes = {"enabled": False, **({"secrets": "hand_over"} if keep_secrets else {})}
    return _change(server, user, changes, text=f"is disabled.{listed}")


@click.command("enable", cls=server_command.HostCommand, params=[ACCOUNT])
@click.argument("email")
def enable(server: local_server.LocalServer, email: str, account: str | None) -> output.Report:
    """Enable a disabled user."""
    return _change(server, _member(server, email, account), {"enabled": True}, text="is enabled.")


@click.command("token", cls=command.StoreCommand, params=[command.ACCOUNT])
@click.argument("email", required=False)
async def token(context: services_context.Context, email: str | None, account: str | None) -> output.Report:
    """Issue a login token (JWT) for a user; default: the first owner of the account."""
    user = await _find(context, email, account) if email else await _first_owner(context, account)
    if user.disabled_at:
        raise errors.Conflict(f"{user.email} is disabled and cannot have a token")
    if user.joined_at is None:
        raise errors.Conflict(f"{user.email} has not accepted the invitation yet and cannot have a token")
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


def _member(server: local_server.LocalServer, email: str, named: str | None) -> users.User:
    """The same user, for requests in their account."""
    user = server.ask(lambda ctx: _find(ctx, email, named))
    server.act_in(user.account_id)
    return user


def _path(user: users.User) -> str:
    return f"{TEAM}/{user.id}"


def _change(
    server: local_server.LocalServer, user: users.User, changes: dict[str, object], *, text: str
) -> output.Report:
    changed = server.call("PATCH", _path(user), changes)["user"]
    return output.Report(data={"user": server.owned(changed)}, text=f"{user.email} {text}")


def _view(user: users.User) -> dict[str, Any]:
    return {"id": user.id, "account_id": user.account_id, **msgspec.to_builtins(team.user_view(user))}


def _working(server: local_server.LocalServer) -> list[dict[str, Any]]:
    """The API keys and SMTP credentials of the account that are not revoked."""
    kinds = (
        ("API key", credentials.KEYS, "api_keys"),
        ("SMTP credential", credentials.CREDENTIALS, "credentials"),
    )
    return [
        {**secret, "shown": f"{kind} {secret['name']!r}"}
        for kind, path, name in kinds
        for secret in server_command.all_rows(server, path, name)
        if secret["revoked_at"] is None
    ]


def _secrets(server: local_server.LocalServer, user: users.User) -> dict[str, str]:
    """Those that a user created: their names by id."""
    return {secret["id"]: secret["shown"] for secret in _working(server) if secret["created_by"] == user.id}


def _listed(title: str, names: list[str]) -> str:
    """A line that names API keys and SMTP credentials; empty if there are none."""
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


def link_report(user: dict[str, Any], text: str, *, link: str, expires_at: str) -> output.Report:
    """The report of a password link."""
    data = {"user": user, "link": link, "expires_at": expires_at}
    return output.Report(data=data, text=link_text(text, link, times.parse(expires_at)))


def link_text(text: str, link: str, expires_at: int) -> str:
    return f"{text}\n{link}\nIt works once, until {times.to_minute(expires_at)}. {output.SHOWN_ONCE}"


@click.command("add", cls=command.StoreCommand, params=[ACCOUNT])
@click.argument("email")
async def add_operator(context: services_context.Context, email: str, account: str | None) -> output.Report:
    """Make a user an operator of the installation. Check that the printed account is the right one."""
    account_id = None if account is None else (await command.named_account(context, account)).id
    user = await account_users.add_operator(context, email, account_id=account_id)
    text = f"{user.email} of account {user.account_id} is an operator."
    return output.Report(data={"user": _view(user)}, text=text)


@click.command("list", cls=server_command.HostCommand)
def list_operators(server: local_server.LocalServer) -> output.Report:
    """List the operators of the installation."""
    found = server.get(OPERATORS)["operators"]
    rows = [
        (
            *(operator["id"], operator["email"], operator["operator_since"], None if operator["enabled"] else "yes"),
            operator["last_login_at"],
        )
        for operator in found
    ]
    text = output.table(["id", "email", "since", "disabled", "last login"], rows, empty="There are no operators.")
    return output.Report(data={"operators": found}, text=text)


@click.command("remove", cls=command.StoreCommand)
@click.argument("email")
async def remove_operator(context: services_context.Context, email: str) -> output.Report:
    """End the operator role of a user."""
    found = [operator for operator in await account_users.operators(context) if operator.email.lower() == email.lower()]
    if not found:
        raise errors.NotFound(f"{email!r} is not an operator")
    user = await account_users.remove_operator(context, found[0].id)
    return output.Report(data={"user": _view(user)}, text=f"{user.email} is no longer an operator.")


@click.command("show", cls=server_command.AccountCommand)
def show_sso(server: local_server.LocalServer) -> output.Report:
    """Show the single sign-on settings of an account."""
    found = server.get(SSO)["sso"]
    passwords = "on" if found["allows_passwords"] else "off"
    text = f"{found['issuer']} for {', '.join(found['domains'])}; passwords are {passwords}."
    return output.Report(data={"sso": {"account_id": server.account.id, **found}}, text=text)


@click.command("remove", cls=server_command.AccountCommand)
def remove_sso(server: local_server.LocalServer) -> output.Report:
    """Remove the single sign-on settings of an account.

    People who have no password need a link to set one: 'postroad user link'.
    """
    server.call("DELETE", SSO)
    account = server.account
    return output.Report(data={"account_id": account.id}, text=f"Single sign-on of {account.name} is removed.")
