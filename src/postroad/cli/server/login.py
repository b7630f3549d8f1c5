"""`postroad login` and `postroad logout`: the server that commands use, and its API key."""

import os
import sys
from pathlib import Path
from typing import Final

import click

from postroad.cli.framework import output, server_command, server_login
from postroad.network.http import api_client

INVALID: Final = 400
# A request for each scope that the commands need. They change nothing: without a body, nothing is sent.
PROBES: Final = {
    "send": ("POST", "/emails"),
    "read": ("GET", "/v1/messages?limit=1"),
    "templates": ("GET", "/v1/templates?limit=1"),
    "suppressions": ("GET", "/v1/suppressions?limit=1"),
    "webhooks": ("GET", "/v1/webhooks"),
    "domains": ("GET", "/v1/domains?limit=1"),
    "statistics": ("GET", "/v1/account"),
}


@click.command("login", params=[click.Argument(["url"], required=False), server_command.JSON])
def login(url: str | None, *, as_json: bool) -> None:
    """Store the URL and the API key of a server for other commands.

    The key is asked for without echo, read from standard input if that is not a terminal, or taken from
    POSTROAD_API_KEY. It is stored only if the server accepts it.
    """
    named = url or os.environ.get(server_command.URL_VARIABLE)
    if not named and sys.stdin.isatty():
        named = click.prompt("URL of the server")
    url = server_command.checked_url(named or "")
    server = server_command.new_client(url, _key())
    if api_client.is_unprotected(url):
        click.echo(f"Warning: {url} has no TLS; the key can be read on the way.", err=True)
    scopes, account = _scopes(server)
    try:
        file = server_login.path(os.environ)
        server_login.store(file, server_login.load(file).added(url, server.key))
    except server_login.LoginError as problem:
        raise server_command.CommandError(str(problem)) from None
    of_account = f", account {output.printable(account)}" if account else ""
    home = Path.home()
    shown = f"~/{file.relative_to(home)}" if file.is_relative_to(home) else str(file)
    text = f"Logged in to {url}{of_account}. Scopes of the key: {', '.join(scopes)}. It is stored in {shown}."
    data = {"url": url, "account": account, "scopes": scopes, "file": str(file)}
    output.show(output.Report(data=data, text=text), as_json=as_json)


@click.command("logout", params=[click.Argument(["url"], required=False), server_command.JSON])
def logout(url: str | None, *, as_json: bool) -> None:
    """Delete the stored API key of a server. The key itself stays valid until it is revoked."""
    try:
        file = server_login.path(os.environ)
        logins = server_login.load(file)
        named = server_command.checked_url(url) if url else logins.current
        if named not in logins.keys:
            raise server_command.CommandError(f"not logged in to {named}" if named else "not logged in")
        server_login.store(file, logins.removed(named))
    except server_login.LoginError as problem:
        raise server_command.CommandError(str(problem)) from None
    text = f"Logged out of {named}. The key is still valid; revoke it if it is no longer needed."
    output.show(output.Report(data={"url": named}, text=text), as_json=as_json)


def _key() -> str:
    key = os.environ.get(server_command.KEY_VARIABLE)
    if not key:
        key = click.prompt("API key", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline(1024)
    if not key.strip():
        raise click.UsageError("no API key given")
    return key.strip()


def _scopes(server: api_client.Client) -> tuple[list[str], str | None]:
    """The scopes that the key has, and the name of its account if it may know it. A wrong key is an error."""
    found, account, refusal = [], None, None
    try:
        for scope, (method, path) in PROBES.items():
            try:
                shown = server.call(method, path).get("account")
                account = str(shown.get("name")) if isinstance(shown, dict) else account
            except api_client.ServerError as problem:
                if problem.status in server_command.REFUSED:
                    refusal = refusal or problem
                    continue
                if problem.status != INVALID:
                    raise
            found.append(scope)
        if refusal is not None and not found:
            raise refusal
    except api_client.ServerError as problem:
        raise server_command.error_of(problem) from None
    finally:
        server.close()
    return found, account
