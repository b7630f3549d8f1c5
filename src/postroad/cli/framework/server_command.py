"""The base of commands that work over HTTP, from any machine, with a URL and an API key.

Without a server, they work on an installation of this machine: on that which `--data` or `--config` names, or else the
environment, or the file of `postroad init`; then they call its API in their process (`local_server.py`). Which server
is used is said on stderr. A `HostCommand` always works like that, with the rights of an operator.
The modules of such commands import nothing of the service, so that they start fast; what works on an installation is
imported when it is used. The API key never is an argument, because other users of the machine can see those.
"""

import contextlib
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

import postroad
from postroad import errors
from postroad.cli.framework import output, server_login
from postroad.network.http import api_client

if TYPE_CHECKING:
    from postroad.cli.framework import local_server

CONFIG_VARIABLE: Final = "POSTROAD_CONFIG"
# What `postroad init` writes.
CONFIG_FILE = Path("/etc/postroad/postroad.toml")
CONFIG_TEXT: Final = f"Default: {CONFIG_VARIABLE}, or {CONFIG_FILE}."


def file_to_write(environment: Mapping[str, str]) -> Path:
    return Path(environment.get(CONFIG_VARIABLE) or CONFIG_FILE)


def installed_settings(given: Path | None, environment: Mapping[str, str]) -> Path | None:
    """The settings file: that of the option, of the variable, or of `postroad init` if it is there."""
    if given is not None:
        return given
    file = file_to_write(environment)
    return file if environment.get(CONFIG_VARIABLE) or _is_there(file) else None


def _is_there(file: Path) -> bool:
    """Whether there is a file. One that this user may not see counts: the error of reading it says what to do."""
    try:
        os.stat(file)  # noqa: PTH116 - `exists` differs between versions of Python where it is not permitted
    except PermissionError:
        return True
    except OSError:
        return False
    return True


URL_VARIABLE: Final = "POSTROAD_URL"
KEY_VARIABLE: Final = "POSTROAD_API_KEY"
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403  # also of one request of a good key, such as a sender of another domain
REFUSED: Final = (UNAUTHORIZED, FORBIDDEN)
PAGE: Final = 100
# More than anybody waits for: 100,000 rows.
MAX_PAGES: Final = 1000

URL: Final = click.Option(
    ["--url"], metavar="URL", help=f"Server to use. Default: {URL_VARIABLE}, or that of the last 'postroad login'."
)
JSON: Final = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
_FOLDER: Final = click.Path(file_okay=False, path_type=Path)
_FILE: Final = click.Path(dir_okay=False, path_type=Path)
# Of commands that only work on an installation.
DATA: Final = click.Option(["--data"], type=_FOLDER, metavar="DIR", help="Data folder of 'postroad dev'.")
CONFIG: Final = click.Option(["--config"], type=_FILE, metavar="FILE", help=f"Configuration file. {CONFIG_TEXT}")
OF_ACCOUNT: Final = click.Option(
    ["--account"], metavar="ACCOUNT", help="Account id or unique name; optional if there is only one account."
)
INSTALLATION: Final = [
    click.Option(["--data"], type=_FOLDER, metavar="DIR", help="Data folder of 'postroad dev', instead of a server."),
    click.Option(["--config"], type=_FILE, metavar="FILE", help="Configuration file, instead of a server."),
]
ACCOUNT: Final = click.Option(["--account"], metavar="ACCOUNT", help="Account id or unique name, without a server.")
LOCAL: Final = [*INSTALLATION, ACCOUNT]
# What names a server or an installation.
CHOICE: Final = ("url", "data", "config", "account")


class CommandError(click.ClickException):
    """An error of a command. What a server said is printed without its control characters."""

    def __init__(self, message: str) -> None:
        super().__init__(output.printable(message))


class RefusedError(CommandError):
    """A wrong key, or a missing scope."""

    exit_code = 3


class UnreachableError(CommandError):
    """No connection, or no usable response."""

    exit_code = 4


def error_of(problem: api_client.ServerError) -> CommandError:
    if problem.status is None:
        return UnreachableError(str(problem))
    return RefusedError(str(problem)) if problem.status == UNAUTHORIZED else CommandError(str(problem))


@contextlib.contextmanager
def until_interrupted(close: Callable[[], None]) -> Iterator[None]:
    """Work on what a server says until Ctrl-C, which is no error."""
    try:
        yield
    except KeyboardInterrupt:
        return
    except api_client.ServerError as problem:
        raise error_of(problem) from None
    finally:
        close()


# A response that another request may not get: the server is overloaded, restarts, or asks to wait.
TEMPORARY: Final = (None, 429, 500, 502, 503, 504)
MAX_WAIT_SECONDS: Final = 30.0
T = TypeVar("T")


def follow(step: Callable[[], Iterable[T]], *, seconds: float, is_quiet: bool = False, again: str = "") -> Iterator[T]:
    """What each step yields. A server that was there and is gone is asked again; `again` is shown when it is back."""
    failures, has_begun = 0, False
    while True:
        try:
            yield from step()
            if failures and again:
                click.echo(again, err=True)
            failures, has_begun = 0, True
        except api_client.ServerError as problem:
            # An error of the first request is one of the command: a wrong URL, or a wrong key.
            if not has_begun or problem.status not in TEMPORARY:
                raise
            failures += 1
            if failures == 1 and not is_quiet:
                click.echo(output.printable(f"{problem}; trying again."), err=True)
        time.sleep(min(seconds * 2 ** min(failures, 10), max(seconds, MAX_WAIT_SECONDS)))


class ServerCommand(click.Command):
    """A command whose function is `(server, **arguments) -> Report`."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters of the command, and those of every command of this kind."""
        own = super().get_params(ctx)
        return [*own[:-1], URL, *LOCAL, JSON, *own[-1:]]

    def invoke(self, ctx: click.Context) -> None:
        """Call the function and print its report."""
        arguments = dict(ctx.params)
        chosen = {name: arguments.pop(name) for name in CHOICE}
        as_json = arguments.pop("as_json")
        assert self.callback is not None  # noqa: S101 - set by the decorator
        server = connect(chosen)
        click.echo(f"Server: {server.url}", err=True)
        try:
            report = self.callback(server, **arguments)
        except api_client.ServerError as problem:
            raise error_of(problem) from None
        except errors.PostroadError as problem:
            raise CommandError(problem.message) from None
        finally:
            server.close()
        output.show(report, as_json=as_json)
        ctx.exit(report.exit_code)


class HostCommand(click.Command):
    """A command whose function is `(server, **arguments) -> Report`; `server` is the installation of this machine."""

    needs_account = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters of the command, and those of every command of this kind."""
        own = super().get_params(ctx)
        return [*([OF_ACCOUNT] if self.needs_account else []), *own[:-1], DATA, CONFIG, JSON, *own[-1:]]

    def invoke(self, ctx: click.Context) -> None:
        """Call the function and print its report."""
        from postroad.cli.framework import command  # noqa: PLC0415 - see `_open`

        arguments = dict(ctx.params)
        as_json = arguments.pop("as_json")
        chosen = {name: arguments.pop(name) for name in ("data", "config")}
        chosen["account"] = arguments.pop("account") if self.needs_account else None
        assert self.callback is not None  # noqa: S101 - set by the decorator
        with command.report_errors(), contextlib.closing(_open(chosen, needs_account=self.needs_account)) as server:
            try:
                report = self.callback(server, **arguments)
            except api_client.ServerError as problem:
                raise error_of(problem) from None
        output.show(report, as_json=as_json)
        ctx.exit(report.exit_code)


class AccountCommand(HostCommand):
    """The same for one account, which the option `--account` names."""

    needs_account = True


def connect(chosen: Mapping[str, Any], *, needs_account: bool = True) -> api_client.Client:
    """The server that the options, the environment or the last login name, or else the installation of this machine."""
    if not is_local(chosen, os.environ):
        return client(chosen["url"], os.environ)
    return _open(chosen, needs_account=needs_account)


def _open(chosen: Mapping[str, Any], *, needs_account: bool) -> "local_server.LocalServer":
    """The installation of this machine. Its import is that of the whole service, which other servers do not need."""
    from postroad.cli.framework import command, local_server  # noqa: PLC0415

    with command.report_errors():
        settings = command.load_settings(data=chosen["data"], file=chosen["config"])
        with command.name_store_on_error(settings):
            return local_server.LocalServer(settings, account=chosen.get("account"), needs_account=needs_account)


def installation_option() -> str:
    """The option that selected the installation, to repeat in a suggested command."""
    given = click.get_current_context().params
    return "".join(f" --{name} {shlex.quote(str(given[name]))}" for name in ("data", "config") if given[name])


def is_local(chosen: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    """Whether an installation of this machine is meant, and no server; naming both in the same way is an error."""
    named = [f"--{name}" for name in ("data", "config") if chosen[name] is not None]
    if named and chosen["url"] is not None:
        raise click.UsageError(f"{named[0]} and --url cannot be combined; use one of them.")
    found = bool(named) or (chosen["url"] is None and _is_local_by_default(environment))
    if not found and chosen.get("account") is not None:
        raise click.UsageError("--account needs --data or --config; the API key decides the account of a server.")
    return found


def _is_local_by_default(environment: Mapping[str, str]) -> bool:
    """The same without options: the environment comes before the last login, and that before the file of `init`."""
    has_settings = any(name.startswith("POSTROAD_") and "__" in name for name in environment)
    if environment.get(URL_VARIABLE):
        if has_settings:
            raise click.UsageError(
                f"The environment names both a server ({URL_VARIABLE}) and an installation; "
                "choose with --url or --config."
            )
        return False
    if has_settings or environment.get(CONFIG_VARIABLE):
        return True
    file = installed_settings(None, environment)
    return file is not None and os.access(file, os.R_OK, effective_ids=True) and not _logins(environment).current


def client(url: str | None, environment: Mapping[str, str]) -> api_client.Client:
    """A client of the server that the option, the environment or the last login names."""
    logins = _logins(environment)
    named = checked_url(url or environment.get(URL_VARIABLE) or logins.current)
    key = environment.get(KEY_VARIABLE) or logins.keys.get(named, "")
    if not key:
        raise click.UsageError(f"No API key for {named}. Run 'postroad login {named}', or set {KEY_VARIABLE}.")
    return new_client(named, key)


def _logins(environment: Mapping[str, str]) -> server_login.Logins:
    try:
        return server_login.load(server_login.path(environment))
    except server_login.LoginError as problem:
        raise CommandError(str(problem)) from None


def new_client(url: str, key: str) -> api_client.Client:
    """A client of this server. The key becomes a header field."""
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise click.UsageError("the API key contains invalid characters; copy it again")
    return api_client.Client(url, key, user_agent=f"postroad/{postroad.__version__}")


def checked_url(text: str) -> str:
    """A URL in its stored form, or an error that says what is wrong with it."""
    if not text:
        raise click.UsageError(
            f"No server given. Run 'postroad login URL', or set {URL_VARIABLE} and {KEY_VARIABLE}. On the host of the "
            "service, run the command as its user, or use --config FILE or --data DIR."
        )
    try:
        return api_client.check_url(text)
    except ValueError as problem:
        raise click.UsageError(output.printable(f"{text}: {problem}")) from None


def pages(
    server: api_client.Client, path: str, /, *, cursor: str | None = None, **query: object
) -> Iterator[dict[str, Any]]:
    """The pages of a list. A server whose list does not end is an error, because a part would pass for the whole."""
    seen = {cursor}
    for _ in range(MAX_PAGES):
        page = server.get(path, cursor=cursor, **query)
        yield page
        cursor = page.get("next_cursor")
        if cursor is None:
            return
        if not isinstance(cursor, str) or cursor in seen:
            break
        seen.add(cursor)
    raise CommandError(f"{server.url}: the list {path} does not end")


def first_rows(
    server: api_client.Client, path: str, name: str, /, *, limit: int, cursor: str | None = None, **query: object
) -> tuple[list[dict[str, Any]], bool]:
    """The first objects of a list, which a page has under this name, and whether there are more."""
    found: list[dict[str, Any]] = []
    has_more = False
    for page in pages(server, path, cursor=cursor, limit=min(PAGE, limit), **query):
        found += objects(page.get(name))
        has_more = len(found) > limit or page.get("next_cursor") is not None
        if len(found) >= limit:
            break
    return found[:limit], has_more


def all_rows(server: api_client.Client, path: str, name: str, /) -> list[dict[str, Any]]:
    return [row for page in pages(server, path, limit=PAGE) for row in objects(page.get(name))]


def rows(found: object, *names: str) -> list[list[Any]]:
    return [[row.get(name) for name in names] for row in objects(found)]


def objects(found: object) -> Sequence[dict[str, Any]]:
    """The objects of a list; whatever else a server sends is left out."""
    return [member for member in found if isinstance(member, dict)] if isinstance(found, list) else []
