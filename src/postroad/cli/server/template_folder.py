"""`postroad template push`, `pull` and `diff`: a folder, for example in git, as the source of the templates.

Each template is a folder named as its alias, with `subject.txt`, and `body.txt`, `body.html` or both; `layout.txt` has
the alias of its layout. Nothing is deleted from a server without `--delete`, and no file that differs is overwritten
without `--force`.
"""

import difflib
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib import parse

import click

from postroad.cli.framework import output, server_command
from postroad.model.mail import limits
from postroad.network.http import api_client

PATH: Final = "/v1/templates"
# The members of a template and their files.
FILES: Final = {"subject": "subject.txt", "layout": "layout.txt", "text": "body.txt", "html": "body.html"}
# Of one line each, without its end.
LINES: Final = ("subject", "layout")
PART: Final = re.compile(r"\{\{> *([a-z0-9_-]{1,64}) *\}\}")
ALIAS: Final = re.compile(limits.TEMPLATE_ALIAS_PATTERN)
RATE_LIMITED: Final = 429
MAX_RETRIES: Final = 30

Template = dict[str, str]
Templates = Mapping[str, Template]
FOLDER: Final = click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER")


@click.command("diff", cls=server_command.ServerCommand)
@FOLDER
def diff(server: api_client.Client, folder: Path) -> output.Report:
    """Show how the templates of a server differ from a folder. The exit code is 1 if they do."""
    local, there = read(folder), fetch(server)
    lines = [*differences(there, local)]
    text = "\n".join(lines) or "The templates are the same."
    return output.Report(data=_summary(there, local), text=text, exit_code=1 if lines else 0)


@click.command("push", cls=server_command.ServerCommand)
@FOLDER
@click.option("--delete", is_flag=True, help="Also delete templates of the server that are not in the folder.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def push(server: api_client.Client, *, folder: Path, delete: bool, yes: bool) -> output.Report:
    """Make the templates of a server those of a folder, after showing the difference.

    Each template is a folder named after its alias, with subject.txt, body.txt or body.html, and optionally layout.txt.
    """
    local, there = read(folder), fetch(server)
    wanted = dict(local) if delete else {**there, **local}
    lines = [*differences(there, wanted)]
    data = _summary(there, wanted)
    if not lines:
        return output.Report(data=data, text="The templates are the same.")
    click.echo("\n".join(lines), err=True)
    if not yes:
        click.confirm(f"Change the templates of {server.url}?", abort=True, err=True)
    changed = {*data["added"], *data["changed"]}
    for alias in in_order(wanted):
        if alias in changed:
            _call(server, "PUT", alias, wanted[alias])
    for alias in reversed(in_order(there)):
        if alias in data["removed"]:
            _call(server, "DELETE", alias)
    return output.Report(data=data, text=_counts(data))


@click.command("pull", cls=server_command.ServerCommand)
@FOLDER
@click.option("--force", is_flag=True, help="Overwrite templates of the folder that differ.")
def pull(server: api_client.Client, *, folder: Path, force: bool) -> output.Report:
    """Write the templates of a server to a folder. Templates that are only in the folder stay."""
    local, there = read(folder) if folder.exists() else {}, fetch(server)
    data = _summary(local, {**local, **there})
    if data["changed"] and not force:
        click.echo("\n".join(differences({one: local[one] for one in data["changed"]}, there)), err=True)
        names = ", ".join(data["changed"])
        raise server_command.CommandError(f"{names}: different in {folder}; nothing is written without --force")
    for alias in [*data["added"], *data["changed"]]:
        _write(folder / alias, there[alias])
    return output.Report(data=data, text=_counts(data))


def read(folder: Path) -> Templates:
    """The templates of a folder. Other files, and hidden folders, are left alone."""
    if not folder.is_dir():
        raise click.UsageError(f"{folder} is not a folder")
    found = {}
    for place in sorted(folder.iterdir()):
        if place.is_dir() and not place.name.startswith("."):
            _refuse_link(place)
            if not ALIAS.fullmatch(place.name):
                raise server_command.CommandError(f"{place}: the name of the folder cannot be the alias of a template")
            found[place.name] = _read(place)
    return found


def _read(place: Path) -> Template:
    template = {}
    for member, name in FILES.items():
        file = place / name
        _refuse_link(file)
        try:
            if file.exists():
                template[member] = file.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as problem:
            reason = getattr(problem, "strerror", None) or "it is not UTF-8 text"
            raise server_command.CommandError(f"{file} cannot be read: {reason}") from None
    if "subject" not in template or not {"text", "html"} & template.keys():
        raise server_command.CommandError(f"{place} needs subject.txt, and body.txt or body.html")
    return {name: text.rstrip("\r\n") if name in LINES else text for name, text in template.items()}


def in_order(given: Templates) -> list[str]:
    """The aliases, each after the layout and the parts that it uses: a server refuses what uses something unknown."""
    found: dict[str, None] = {}

    def add(alias: str, above: frozenset[str]) -> None:
        if alias in found or alias in above or alias not in given:
            return
        one = given[alias]
        for used in sorted({one.get("layout", ""), *PART.findall(one.get("text", "") + one.get("html", ""))}):
            add(used, above | {alias})
        found[alias] = None

    for alias in sorted(given):
        add(alias, frozenset())
    return list(found)


def _refuse_link(place: Path) -> None:
    """A folder from a stranger's repository must not send, or overwrite, files of other places."""
    if place.is_symlink():
        raise server_command.CommandError(f"{place} is a symbolic link; use a folder and files of its own")


def _write(place: Path, template: Template) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
        for member, name in FILES.items():
            if member in template:
                end = "\n" if member in LINES else ""
                (place / name).write_bytes(f"{template[member]}{end}".encode())
            else:
                (place / name).unlink(missing_ok=True)
    except OSError as problem:
        raise server_command.CommandError(f"{place} cannot be written: {problem.strerror}") from None


def fetch(server: api_client.Client) -> Templates:
    """The templates of a server. Its aliases become names of folders, so they are checked."""
    found: dict[str, Template] = {}
    for alias in _aliases(server):
        if not ALIAS.fullmatch(alias):
            raise server_command.CommandError(f"{server.url}: {alias} cannot be the alias of a template")
        one = _call(server, "GET", alias).get("template")
        members = one if isinstance(one, dict) else {}
        found[alias] = {name: members[name] for name in FILES if isinstance(members.get(name), str)}
    return found


def _aliases(server: api_client.Client) -> Iterator[str]:
    for page in server_command.pages(server, PATH, limit=100):
        yield from (str(one.get("alias")) for one in server_command.objects(page.get("templates")))


def _call(server: api_client.Client, method: str, alias: str, body: Template | None = None) -> dict[str, Any]:
    """One request for a template. There may be more of them than a key may make in a second."""
    for _ in range(MAX_RETRIES):
        try:
            return server.call(method, f"{PATH}/{parse.quote(alias, safe='')}", body)
        except api_client.ServerError as problem:
            if problem.status != RATE_LIMITED:
                raise api_client.ServerError(f"{alias}: {problem}", status=problem.status) from None
        time.sleep(1)
    raise api_client.ServerError(f"{alias}: too many requests", status=RATE_LIMITED)


def differences(before: Templates, after: Templates) -> Iterator[str]:
    """The lines of a unified diff, without what could control a terminal."""
    for alias in sorted(before.keys() | after.keys()):
        for member, name in FILES.items():
            old, new = (side.get(alias, {}).get(member, "").splitlines() for side in (before, after))
            path = f"{alias}/{name}"
            lines = difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="")
            yield from map(output.printable, lines)


def _summary(before: Templates, after: Templates) -> dict[str, list[str]]:
    return {
        "added": sorted(after.keys() - before.keys()),
        "changed": sorted(one for one in before.keys() & after.keys() if before[one] != after[one]),
        "removed": sorted(before.keys() - after.keys()),
    }


def _counts(data: Mapping[str, list[str]]) -> str:
    return ", ".join(f"{len(names)} {what}" for what, names in data.items()) + "."
