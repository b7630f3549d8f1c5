"""`postroad import`: what an account has at another service, created here. Extensions have the commands.

The key of the other service comes from a variable, a file or a prompt, never from an argument, which other users of
this machine could see. It is used for the requests to that service, and neither stored, logged nor shown.
"""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, TextIO, TypeVar

import click
import msgspec

from postroad import context as services_context
from postroad.api.v1 import domains as domain_views
from postroad.cli.framework import output
from postroad.cli.server import domains as domain_texts
from postroad.mail.signing import domain_keys
from postroad.network.http import json_api
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.imports import found, importer
from postroad.storage.people import accounts

# Longer than any key; what is longer is another file.
KEY_CHARACTERS: Final = 500
FILE: Final = click.File("r", encoding="utf-8")
DRY_RUN: Final = click.option("--dry-run", is_flag=True, help="Read and report, without creating anything.")

F = TypeVar("F", bound=Callable[..., Any])


def url_option(default: str) -> Callable[[F], F]:
    return click.option(
        "--url", default=default, show_default=True, help="Base URL of the API; http:// only for this machine."
    )


def key_option(variable: str) -> Callable[[F], F]:
    return click.option(
        "--key-file", type=FILE, metavar="FILE", help=f"File with the key; - is standard input. Default: {variable}."
    )


@contextlib.asynccontextmanager
async def opened(
    context: services_context.Context, url: str, headers: dict[str, str], key: str
) -> AsyncIterator[json_api.JsonApi]:
    api = json_api.JsonApi(url, headers=headers, secrets=[key], name_servers=context.settings.delivery.resolvers)
    try:
        yield api
    finally:
        await api.close()


def key(file: TextIO | None, variable: str) -> str:
    if file is not None:
        text = file.read(KEY_CHARACTERS)
    elif not (text := os.environ.get(variable, "")):
        if not sys.stdin.isatty():
            raise click.UsageError(f"No API key given. Set {variable}, or use --key-file.")
        text = click.prompt("Key", hide_input=True, err=True)
    key = text.strip()
    if not key or len(key) >= KEY_CHARACTERS or not key.isascii() or not key.isprintable() or " " in key:
        source = variable if file is None else file.name
        raise click.UsageError(f"{source} is not a key: it must be one line of ASCII characters without spaces")
    return key


async def run(
    context: services_context.Context, account: accounts.Account, reader: found.Reader, *, dry_run: bool
) -> output.Report:
    report = await importer.Importer(context, account.id, reader, dry_run=dry_run).run()
    named = [*report.domains.created, *report.domains.existing] if not dry_run else report.domains.existing
    records = {item.name: await _records(context, account, item.name, dry_run=dry_run) for item in named}
    sections = {name: _section_view(section) for name, section in report.sections.items()}
    for section in sections["domains"]["created"] + sections["domains"]["existing"]:
        section["records"] = records.get(section["name"], [])
    data = {"dry_run": dry_run, "complete": report.is_complete, **sections}
    text = "\n".join(_lines(report, reader.name, records, dry_run=dry_run))
    return output.Report(data=data, text=text, exit_code=0 if report.is_complete else 1)


async def _records(
    context: services_context.Context, account: accounts.Account, name: str, *, dry_run: bool
) -> list[dict[str, Any]]:
    domain = await domains.by_name(context, account.id, name)
    if not dry_run:
        await domain_keys.keys(context, domain)
    shown = [domain_checks.for_operator(record) for record in await domain_checks.records(context, domain)]
    return [msgspec.to_builtins(domain_views.record_view(record)) for record in shown]


def _section_view(section: importer.Section | importer.SuppressionSection) -> dict[str, Any]:
    if isinstance(section, importer.SuppressionSection):
        counts = {"created": section.created, "existing": section.existing, "refused": section.refused}
        return counts | {"refusals": _items(section.refusals), "stopped": section.stopped}
    return {
        "created": _items(section.created),
        "existing": _items(section.existing),
        "refused": _items(section.refused),
        "stopped": section.stopped,
    }


def _items(items: Sequence[importer.Item]) -> list[dict[str, Any]]:
    return [
        {"name": item.name, "notes": list(item.notes)} | ({"secret": item.secret} if item.secret else {})
        for item in items
    ]


def _lines(
    report: importer.Report,
    vendor: str,
    records: dict[str, list[dict[str, Any]]],
    *,
    dry_run: bool,
) -> list[str]:
    lines = ["Dry run: nothing was created."] if dry_run else []
    created = "to create" if dry_run else "created"
    for name, section in report.sections.items():
        if isinstance(section, importer.SuppressionSection):
            counts, refused = (section.created, section.existing, section.refused), section.refusals
            listed: list[tuple[str, importer.Item]] = []
        else:
            counts = (len(section.created), len(section.existing), len(section.refused))
            refused = section.refused
            listed = [(created, item) for item in section.created] + [
                ("already exists", item) for item in section.existing
            ]
        lines.append(
            f"{name.capitalize()}: {counts[0]} {created}, {counts[1]} already exist, {counts[2]} not imported."
        )
        for state, item in [*listed, *(("not imported", item) for item in refused)]:
            lines.append("; ".join([f"  {item.name}: {state}", *item.notes]))
            if item.secret:
                lines.append(f"    secret:  {item.secret}\n    {output.SHOWN_ONCE}")
            lines += [
                f"    {domain_texts.zone_line(each)}"
                for each in records.get(item.name, ())
                if (each["value"] is not None and each["state"] != "ok" and (not each["managed"]))
            ]
        if section.stopped:
            lines.append(f"  Stopped: {section.stopped}.")
    if not report.is_complete:
        lines.append(f"Not everything at {vendor} was read. Run the command again: it continues where it stopped.")
    return lines
