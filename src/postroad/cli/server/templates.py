"""`postroad template`: templates with {{placeholders}}.

With `push`, `pull` and `diff` a folder, for example in git, is their source. Each template is a folder named as its
alias, with `subject.txt`, and `body.txt`, `body.html` or both; `layout.txt` has the alias of its layout. Nothing is
deleted from a server without `--delete`, and no file that differs is overwritten without `--force`.
"""

import difflib
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO
from urllib import parse

import click

from postroad import errors
from postroad.cli.framework import output, server_command
from postroad.model.mail import limits
from postroad.network.http import api_client

if TYPE_CHECKING:
    from postroad.cli.framework.local_server import LocalServer

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


TEXT_FILE: Final = click.File("r", encoding="utf-8")


@click.command("put", cls=server_command.AccountCommand)
@click.argument("alias")
@click.option("--subject", required=True, help="Subject, with {{placeholders}}.")
@click.option("--text", help="Plain text body, with {{placeholders}}.")
@click.option("--text-file", type=TEXT_FILE, help="Read the plain text body from a file; - is standard input.")
@click.option("--html", help="HTML body, with {{placeholders}}.")
@click.option("--html-file", type=TEXT_FILE, help="Read the HTML body from a file; - is standard input.")
@click.option("--layout", metavar="ALIAS", help="Alias of the layout: a template with {{> content}}.")
def put(
    server: "LocalServer",
    *,
    alias: str,
    subject: str,
    text: str | None,
    text_file: TextIO | None,
    html: str | None,
    html_file: TextIO | None,
    layout: str | None,
) -> output.Report:
    """Create a template, or replace the one with this alias."""
    plain = _content(text, text_file, name="text")
    rich = _content(html, html_file, name="html")
    body = {"subject": subject, "text": plain, "html": rich, "layout": layout}
    given = {name: value for name, value in body.items() if value is not None}
    stored = server.call("PUT", f"{PATH}/{parse.quote(alias, safe='')}", given)["template"]
    return output.Report(data={"template": server.owned(stored)}, text=f"Template {stored['alias']!r} is stored.")


def _content(given: str | None, file: TextIO | None, *, name: str) -> str | None:
    if given is not None and file is not None:
        raise click.UsageError(f"--{name} and --{name}-file cannot be combined; use one of them.")
    try:
        return file.read() if file else given
    except UnicodeDecodeError:
        raise errors.InvalidRequest(f"{file.name if file else name} is not UTF-8 text") from None


@click.command("list", cls=server_command.AccountCommand)
@click.option("--after", default="", metavar="ALIAS", help="Start after this template.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Maximum number of rows.")
def show_list(server: "LocalServer", *, after: str, limit: int) -> output.Report:
    """List an account's templates by alias."""
    listed, has_more = server_command.first_rows(server, PATH, "templates", limit=limit, cursor=after or None)
    next_cursor = listed[-1]["alias"] if has_more else None
    rows = [(template["alias"], template["subject"], template["updated_at"]) for template in listed]
    text = output.table(["alias", "subject", "updated"], rows, empty="There are no templates.")
    data = {"templates": [server.owned(template) for template in listed], "next_after": next_cursor}
    return output.Report(data=data, text=output.with_more(text, next_cursor))


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
    """Upload the templates of a folder to a server, after showing the differences.

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
        click.echo("\n".join(differences({alias: local[alias] for alias in data["changed"]}, there)), err=True)
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
        template = given[alias]
        for used in sorted(
            {template.get("layout", ""), *PART.findall(template.get("text", "") + template.get("html", ""))}
        ):
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
    for listed in server_command.all_rows(server, PATH, "templates"):
        alias = str(listed.get("alias"))
        if not ALIAS.fullmatch(alias):
            raise server_command.CommandError(f"{server.url}: {alias} cannot be the alias of a template")
        template = _call(server, "GET", alias).get("template")
        members = template if isinstance(template, dict) else {}
        found[alias] = {name: members[name] for name in FILES if isinstance(members.get(name), str)}
    return found


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
        "changed": sorted(alias for alias in before.keys() & after.keys() if before[alias] != after[alias]),
        "removed": sorted(before.keys() - after.keys()),
    }


def _counts(data: Mapping[str, list[str]]) -> str:
    return ", ".join(f"{len(names)} {what}" for what, names in data.items()) + "."
