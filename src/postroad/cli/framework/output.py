"""The output of commands, as text or as JSON.

A command returns a `Report` and prints nothing itself, so that both formats have the same data.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import click

SHOWN_ONCE: Final = "Shown only once; store it safely."


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a command: `data` for JSON, `text`, and the exit code."""

    data: Mapping[str, object]
    text: str
    exit_code: int = 0


def show(report: Report, *, as_json: bool) -> None:
    """Print a report as JSON or text. The text of an export to stdout is empty."""
    if as_json:
        import msgspec  # noqa: PLC0415 - it takes longer than the text of a command over HTTP

        click.echo(_escaped(msgspec.json.format(msgspec.json.encode(report.data), indent=2).decode()))
    elif report.text:
        click.echo(report.text)


def _escaped(document: str) -> str:
    """JSON without what a terminal could obey: JSON itself escapes only a part of the control characters."""
    if document.isascii() and "\x7f" not in document:
        return document
    return "".join(
        character if character.isprintable() or character == "\n" else json.dumps(character)[1:-1]
        for character in document
    )


def printable(text: str) -> str:
    """Foreign text with its control characters escaped: printed as they are, they would be obeyed by a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def table(titles: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> str:
    """An aligned table; `empty` if there are no rows."""
    if not rows:
        return empty
    cells = [[title.upper() for title in titles], *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(titles))]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells)
    return "\n".join(lines)


def printable_table(titles: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> str:
    return table(titles, [[printable(_cell(value)) for value in row] for row in rows], empty=empty)


def recipients(number: object) -> str:
    return f"{number} {'recipient' if number == 1 else 'recipients'}"


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def with_more(text: str, next_cursor: str | None) -> str:
    return text if next_cursor is None else f"{text}\nMore rows: --after {next_cursor}"


def literal(value: object) -> str:
    """A value as TOML. Only tables differ from JSON here."""
    if isinstance(value, Mapping):
        pairs = (f"{key if key.isidentifier() else literal(key)} = {literal(member)}" for key, member in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(literal, value))}]"
    import msgspec  # noqa: PLC0415 - see above

    return msgspec.json.encode(value).decode()
