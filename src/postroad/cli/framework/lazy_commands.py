"""Commands that are imported when they are used.

Most of the time of a short command goes into imports, and `--help`, `--version` and a mistyped name need none of them.
A group therefore knows its commands by name and help line, and imports the module of the one that is invoked.
"""

import gc
import importlib
import sys
import types
from collections.abc import Mapping

import click

from postroad import extensions


class LazyCommand(click.Command):
    """The place of a command in its group. `where` is its function, with the module."""

    def __init__(self, name: str, where: str, line: str) -> None:
        super().__init__(name, help=line)
        self.where = where

    def load(self) -> click.Command:
        module, _, attribute = self.where.rpartition(".")
        command: click.Command = getattr(_import(module), attribute)
        return command


def _import(name: str) -> types.ModuleType:
    """Import a module with the garbage collector paused, and exempt what exists then: it lives to the end."""
    if name not in sys.modules:
        gc.disable()
        try:
            importlib.import_module(name)
        finally:
            gc.freeze()
            gc.enable()
    return sys.modules[name]


class LazyGroup(click.Group):
    """A group of groups and lazy commands.

    `place` is the name of a group of the program, or nothing for the program.
    """

    place = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All of them, with those of extensions."""
        return sorted([*super().list_commands(ctx), *self._of_extensions()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command of the service; only another one is looked for in extensions."""
        found = super().get_command(ctx, cmd_name) or self._of_extensions().get(cmd_name)
        path = f"{self.place} {cmd_name}".strip()
        if found is None and path in extensions.KNOWN:
            raise click.ClickException(f"this command is in an extension; {extensions.how_to_install(path)}")
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, found.load() if isinstance(found, LazyCommand) else found, rest

    def _of_extensions(self) -> dict[str, click.Command]:
        paths = {path: entry for extension in extensions.installed() for path, entry in extension.commands.items()}
        names = {path: path.rpartition(" ") for path in paths}
        return {
            name: LazyCommand(name, paths[path][0].replace(":", "."), paths[path][1])
            for path, (place, _, name) in names.items()
            if place == self.place
        }


def listed(groups: Mapping[str, str], commands: Mapping[str, tuple[str, str]]) -> list[click.Command]:
    """The commands of these tables. The key of a command in a group is both names: `account list`."""
    by_group = {name: LazyGroup(name, help=line) for name, line in groups.items()}
    for name, found in by_group.items():
        found.place = name
    top: list[click.Command] = [*by_group.values()]
    for path, (where, line) in commands.items():
        group, _, name = path.rpartition(" ")
        command = LazyCommand(name, where, line)
        if group:
            by_group[group].add_command(command)
        else:
            top.append(command)
    return top
