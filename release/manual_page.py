"""`python -m release.manual_page VERSION SECONDS`: prints postroad(1), made of the help of the commands."""

import datetime as dt
import inspect
import re
import sys
from collections.abc import Iterator

import click

from postroad import cli
from postroad.cli.framework import lazy_commands


def text(version: str, seconds: int) -> str:
    """The page, in the language of man(7), as of a time since 1970."""
    date = dt.datetime.fromtimestamp(seconds, dt.UTC).date().isoformat()
    name, _, does = (cli.main.help or "").partition(": ")
    lines = [
        f'.TH POSTROAD 1 {date} "Postroad {version}" "User Commands"',
        ".SH NAME",
        f"{name.lower()} \\- {_plain(does.removesuffix('.'))}",
        ".SH SYNOPSIS",
        ".B postroad",
        ".I COMMAND",
        "[OPTIONS] [ARGUMENTS]",
        ".SH OPTIONS",
        *_options(cli.main, click.Context(cli.main, info_name="postroad")),
        ".SH COMMANDS",
        *_commands(cli.main, "postroad"),
    ]
    return "\n".join(lines) + "\n"


def _commands(group: click.Group, path: str) -> Iterator[str]:
    for name, found in sorted(group.commands.items()):
        if isinstance(found, click.Group):
            yield from _commands(found, f"{path} {name}")
        else:
            command = found.load() if isinstance(found, lazy_commands.LazyCommand) else found
            yield from _command(command, f"{path} {name}")


def _command(command: click.Command, path: str) -> Iterator[str]:
    context = click.Context(command, info_name=path)
    yield f'.SS "{_plain(path)}"'
    arguments = [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Argument)]
    yield _plain(" ".join([path, "[OPTIONS]", *(argument.make_metavar(context) for argument in arguments)]))
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield ".PP"
        yield _plain(" ".join(paragraph.removeprefix("\b").split()))
    yield from _options(command, context)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        # `--help` is the same everywhere, and an argument is in the line above.
        is_own = isinstance(parameter, click.Option) and "--help" not in parameter.opts
        if record := is_own and parameter.get_help_record(context):
            yield ".TP"
            yield f"\\fB{_plain(record[0])}\\fR"
            yield _plain(record[1])


def _plain(words: str) -> str:
    """Text that is no markup: hyphens of options can be copied, and no line is a request."""
    return re.sub(r"^([.'])", r"\\&\1", words.replace("\\", "\\e").replace("-", "\\-"))


if __name__ == "__main__":
    sys.stdout.write(text(sys.argv[1], int(sys.argv[2])))
