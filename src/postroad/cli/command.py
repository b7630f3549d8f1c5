"""The shape of every operator command: which installation it works on, and how it ends.

Each takes `--data` or `--config`, and `--json`. Its function gets the opened `Context` (or only the settings) and
returns a `Report`. A mistake of the caller (an unknown account, a wrong setting, a store that is away) becomes one
sentence on stderr and exit code 1, a wrong use of the command exit code 2; a traceback is always a bug of ours.
"""

import asyncio
import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from postroad import config, errors, roles
from postroad.cli import data_folder, output, redaction
from postroad.services import context as services_context
from postroad.storage import migrations, open_store

DATA = click.Option(
    ["--data"],
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder of 'postroad dev' to work on.",
)
CONFIG = click.Option(
    ["--config"],
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The configuration file of the installation to work on.",
)
JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")

# Besides what callers can cause: what an operator can.
OPERATOR_ERRORS = (
    config.ConfigError,
    data_folder.FolderError,
    migrations.SchemaError,
    roles.RoleFailed,
    roles.StartError,
)


class SettingsCommand(click.Command):
    """A command whose function is `async (settings, **arguments) -> Report`."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, and those that every one has."""
        own = super().get_params(ctx)
        return [*own[:-1], DATA, CONFIG, JSON, *own[-1:]]

    def invoke(self, ctx: click.Context) -> None:
        """Run the function and print its report."""
        arguments = dict(ctx.params)
        data, file, as_json = arguments.pop("data"), arguments.pop("config"), arguments.pop("as_json")
        with report_errors():
            settings = load_settings(data=data, file=file)
            with name_store_on_error(settings):
                report = asyncio.run(self.run(settings, arguments))
        output.show(report, as_json=as_json)
        ctx.exit(report.exit_code)

    async def run(self, settings: config.Settings, arguments: dict[str, Any]) -> output.Report:
        """What the command does with the settings."""
        assert self.callback is not None  # noqa: S101 - click gives every decorated function
        report: output.Report = await self.callback(settings, **arguments)
        return report


class StoreCommand(SettingsCommand):
    """A command whose function is `async (context, **arguments) -> Report`."""

    async def run(self, settings: config.Settings, arguments: dict[str, Any]) -> output.Report:
        """What the command does with the opened installation."""
        announce_new_database(settings.database.url)
        assert self.callback is not None  # noqa: S101 - click gives every decorated function
        async with services_context.open_context(settings) as context:
            report: output.Report = await self.callback(context, **arguments)
        return report


def load_settings(*, data: Path | None, file: Path | None) -> config.Settings:
    """The settings of the installation that the options name, or the environment alone."""
    if data and file:
        raise click.UsageError("--data and --config name two installations; give one of them.")
    if data:
        return data_folder.DataFolder(data).settings(environment=os.environ)
    if file is None and not config.has_variables(os.environ):
        raise click.UsageError(
            "Which installation? Give --data DIR (the folder of 'postroad dev') or --config FILE, "
            "or set POSTROAD_… variables."
        )
    return config.load(file, environment=os.environ)


def installation_option() -> str:
    """The option that named the installation of the command that runs, to be typed again with another one."""
    given = click.get_current_context().params
    return "".join(f" --{name} {shlex.quote(str(given[name]))}" for name in ("data", "config") if given[name])


@contextlib.contextmanager
def report_errors() -> Iterator[None]:
    """Callers' mistakes as one sentence and exit code 1."""
    try:
        yield
    except OPERATOR_ERRORS as problem:
        raise click.ClickException(str(problem)) from problem
    except errors.PostroadError as problem:
        raise click.ClickException(problem.message) from problem


@contextlib.contextmanager
def name_store_on_error(settings: config.Settings) -> Iterator[None]:
    """Tell the operator, who may know, which store is away and what it said."""
    try:
        yield
    except errors.ServiceUnavailable as problem:
        reason = f": {problem.__cause__}" if problem.__cause__ else ""
        message = f"{problem.message} ({redaction.address(settings.database.url)}{reason})"
        raise click.ClickException(message) from problem


def announce_new_database(url: str) -> None:
    """A mistyped path makes an empty database; the operator should see that it was made, and where."""
    if url.startswith("sqlite:"):
        path = open_store.sqlite_path(url)
        if not path.exists():
            click.echo(f"Making a new database: {path.absolute()}", err=True)


@contextlib.contextmanager
def name_listen_option(option: str = "", **by_section: str) -> Iterator[None]:
    """Tell where the address is chosen, when nobody can listen there: an option, else the setting."""
    try:
        yield
    except roles.CannotListen as problem:
        section = problem.setting.partition(".")[0]
        chosen = by_section.get(section) or option or problem.setting
        raise click.ClickException(f"{problem}; choose an address with {chosen}") from problem
