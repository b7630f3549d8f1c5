"""What a command says: a value that is printed once, as text for people or as JSON for programs.

A command returns a `Report` and prints nothing itself, so that both forms come from the same facts. Text is short; a
secret is shown here and nowhere else, and the text says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import click
import msgspec

SHOWN_ONCE: Final = "Shown this once; keep it safe."


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a command: `data` for programs, `text` for people, and how the process ends."""

    data: Mapping[str, object]
    text: str
    exit_code: int = 0


def show(report: Report, *, as_json: bool) -> None:
    """Print a report in one of its forms. A command that has printed what it was asked for has nothing to say."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report.data), indent=2))
    elif report.text:
        click.echo(report.text)


def table(titles: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> str:
    """Rows under their titles, in columns; `empty` when there are none."""
    if not rows:
        return empty
    cells = [[title.upper() for title in titles], *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(titles))]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells)
    return "\n".join(lines)


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def with_more(text: str, following: str | None) -> str:
    """A part of a list, with the way to the next one."""
    return text if following is None else f"{text}\nThere are more: --after {following}"


def literal(value: object) -> str:
    """A setting's value as a configuration file has it; JSON and TOML differ in nothing but tables."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {literal(one)}' for key, one in value.items())} }}"
    return msgspec.json.encode(value).decode()
