"""The base of every operator command: which installation it works on, and how errors are reported.

Each takes `--data` or `--config`, whose default is in `installation.py`, and `--json`. Its function gets the open
`Context` (or only the settings) and returns a `Report`. An error that the operator can fix (an unknown account, an
invalid setting, an unavailable database) is one sentence on stderr and exit code 1, a usage error exit code 2; a
traceback is always a bug.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from postroad import config, errors, roles
from postroad import context as services_context
from postroad.cli.framework import data_folder, output, server_command
from postroad.keys import key_check
from postroad.model.units import identifiers
from postroad.roles import composition
from postroad.services.accounts import account_registry as services_accounts
from postroad.storage.engine import backup_files, migrations, open_store
from postroad.storage.people import accounts

# A second row shows that the account has to be named.
SEVERAL_ACCOUNTS: Final = 2
ACCOUNT: Final = server_command.OF_ACCOUNT


async def named_account(context: services_context.Context, named: str | None) -> accounts.Account:
    if named is None:
        return await _only_account(context)
    if identifiers.is_identifier(named, identifiers.ACCOUNT):
        return await services_accounts.find(context, named)
    found = await services_accounts.by_name(context, named)
    if found is None:
        raise errors.NotFound(f"account {named!r} does not exist")
    return found


async def _only_account(context: services_context.Context) -> accounts.Account:
    found = await services_accounts.page(context, "", SEVERAL_ACCOUNTS)
    if not found:
        raise errors.NotFound("there are no accounts; create one with 'postroad account create'")
    if len(found) == SEVERAL_ACCOUNTS:
        raise errors.InvalidRequest(
            "there is more than one account; choose one with --account (see 'postroad account list')"
        )
    return found[0]


MASK: Final = "***"
_PASSWORD_PARAMETER = re.compile(r"([?&][a-z]*password=)[^&]*", re.IGNORECASE)


def masked_address(url: str) -> str:
    """A database URL without its password, which may contain any character: it extends to the last `@`."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        return url
    user_info, at, host = rest.rpartition("@")
    user, colon, _ = user_info.partition(":")
    shown = f"{user}:{MASK}" if colon else user_info
    return _PASSWORD_PARAMETER.sub(rf"\1{MASK}", f"{scheme}://{shown}{at}{host}")


def masked_settings(effective: config.Settings) -> dict[str, Any]:
    tables: dict[str, Any] = msgspec.to_builtins(effective)
    tables["database"]["url"] = masked_address(effective.database.url)
    if effective.security.installation_key:
        tables["security"]["installation_key"] = MASK
    if effective.sso.client_secret:
        tables["sso"]["client_secret"] = MASK
    if effective.metrics.token:
        tables["metrics"]["token"] = MASK
    if effective.operator.webhook_url:
        tables["operator"]["webhook_url"] = MASK
    for upstream in tables["upstreams"]:
        if upstream["password"]:
            upstream["password"] = MASK
    return tables


FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
JSON = server_command.JSON

# Errors that an operator can cause, in addition to those of API callers.
OPERATOR_ERRORS = (
    backup_files.BackupError,
    config.ConfigError,
    data_folder.FolderError,
    key_check.WrongKeyError,
    migrations.SchemaError,
    roles.RoleFailed,
    roles.StartError,
)


class SettingsCommand(click.Command):
    """A command whose function is `async (settings, **arguments) -> Report`."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters of the command, and those of every command."""
        own = super().get_params(ctx)
        return [*own[:-1], server_command.DATA, server_command.CONFIG, JSON, *own[-1:]]

    def invoke(self, ctx: click.Context) -> None:
        """Run the function and print its report."""
        arguments = dict(ctx.params)
        data, file, as_json = arguments.pop("data"), arguments.pop("config"), arguments.pop("as_json")
        with report_errors():
            settings = self.load(ctx, data=data, file=file)
            with name_store_on_error(settings):
                report = asyncio.run(self.run(settings, arguments))
        output.show(report, as_json=as_json)
        ctx.exit(report.exit_code)

    def load(self, ctx: click.Context, *, data: Path | None, file: Path | None) -> config.Settings:
        """The settings of the installation."""
        del ctx
        return load_settings(data=data, file=file)

    async def run(self, settings: config.Settings, arguments: dict[str, Any]) -> output.Report:
        """Call the function with the settings."""
        assert self.callback is not None  # noqa: S101 - set by the decorator
        report: output.Report = await self.callback(settings, **arguments)
        return report


class StoreCommand(SettingsCommand):
    """A command whose function is `async (context, **arguments) -> Report`."""

    async def run(self, settings: config.Settings, arguments: dict[str, Any]) -> output.Report:
        """Call the function with an open context."""
        announce_new_database(settings.database.url)
        assert self.callback is not None  # noqa: S101 - set by the decorator
        async with composition.open_context(settings) as context:
            report: output.Report = await self.callback(context, **await self.resolve(context, arguments))
        return report

    async def resolve(self, context: services_context.Context, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the function. `context` reads what they name."""
        del context
        return arguments


class AccountCommand(StoreCommand):
    """A command of one account: the option `--account` names it, and its function gets the account."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, with `--account` as the first option."""
        return [ACCOUNT, *super().get_params(ctx)]

    async def resolve(self, context: services_context.Context, arguments: dict[str, Any]) -> dict[str, Any]:
        """Replace the name of the account by the account."""
        return {**arguments, "account": await named_account(context, arguments["account"])}


def load_settings(*, data: Path | None, file: Path | None, is_upgrade: bool = False) -> config.Settings:
    if data and file:
        raise click.UsageError("--data and --config cannot be combined; use one of them.")
    if data:
        return data_folder.DataFolder(data).settings(environment=os.environ)
    return config.load(settings_file(file), environment=os.environ, is_upgrade=is_upgrade)


def settings_file(given: Path | None) -> Path | None:
    """The settings file of the installation; None if variables alone name it. Without either it is a wrong use."""
    file = server_command.installed_settings(given, os.environ)
    if file is None and not config.has_variables(os.environ):
        raise click.UsageError(
            f"No installation given: {server_command.CONFIG_FILE} does not exist. Use --config FILE or --data DIR "
            f"(the folder of 'postroad dev'), or set {server_command.CONFIG_VARIABLE} or POSTROAD_<SECTION>__<KEY> "
            "variables. 'postroad init' sets up an installation."
        )
    return file


@contextlib.contextmanager
def report_errors() -> Iterator[None]:
    try:
        yield
    except OPERATOR_ERRORS as problem:
        raise click.ClickException(str(problem)) from problem
    except errors.PostroadError as problem:
        raise click.ClickException(problem.message) from problem


@contextlib.contextmanager
def name_store_on_error(settings: config.Settings) -> Iterator[None]:
    """Add the database URL and its error to a 'service unavailable' error."""
    try:
        yield
    except errors.ServiceUnavailable as problem:
        reason = f": {problem.__cause__}" if problem.__cause__ else ""
        message = f"{problem.message} ({masked_address(settings.database.url)}{reason})"
        raise click.ClickException(message) from problem


def announce_new_database(url: str) -> None:
    """Report that a database file is created, because a mistyped path would create one too."""
    open_store.check_folder(url)
    if not open_store.exists(url):
        click.echo(f"Creating a new database: {open_store.sqlite_path(url).absolute()}", err=True)


@contextlib.contextmanager
def name_listen_option(option: str = "", **by_section: str) -> Iterator[None]:
    """Name the option or setting of an address that cannot be bound."""
    try:
        yield
    except roles.CannotListen as problem:
        section = problem.setting.partition(".")[0]
        chosen = by_section.get(section) or option or problem.setting
        raise click.ClickException(f"{problem}; choose another address with {chosen}") from problem
