"""The suppression list as a CSV file (RFC 4180): streamed on export, read as a whole before a row is stored on import.

A file has a header line that names the columns, one of them `email`, or is a plain list of addresses. Errors name their
line, and then nothing of the file is stored. An export can be imported again. Cells that a spreadsheet would evaluate
get an apostrophe in front (`csv_rows.py`). It is removed again in files with all columns of an export and in no other:
there an apostrophe is part of the address.
"""

import csv
import functools
import io
import itertools
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.mail import limits as message_limits
from postroad.model.units import labels, times
from postroad.protocol.mime import address
from postroad.protocol.text import csv_rows
from postroad.services import usage_limits
from postroad.services.suppressions import suppression_list
from postroad.storage.mail import suppressions as stored

COLUMNS: Final = ("email", "source", "reason", "smtp_code", "message_id", "created_at", "list")
# What the exports of every version have.
EXPORTED: Final = frozenset(COLUMNS[:-1])
MAX_BYTES: Final = 10 * 1024 * 1024
MAX_ROWS: Final = 100_000
# A server's reply has at most 2,000 characters, and may be in an export.
REASON_CHARACTERS: Final = 4_000
# Enough to see what is wrong with a file.
SHOWN_PROBLEMS: Final = 5
# For one query.
PAGE_ROWS: Final = 1_000
# A file of a hundred thousand rows uses a core for seconds, and half of the database for longer.
IMPORTS: Final = usage_limits.WorkLimit("imports", per_account=1, per_process=2, retry_seconds=5)

# The number of a line, and its cells.
Row = tuple[int, list[str]]

_UNSEEN: Final = re.compile(f"[{address.UNSEEN}]")


class FileLimits(msgspec.Struct, frozen=True):
    """How large a file may be; all of it is held in memory."""

    max_rows: int
    max_bytes: int


CALLER_LIMITS: Final = FileLimits(MAX_ROWS, MAX_BYTES)
# Operators import in a process of their own.
OPERATOR_LIMITS: Final = FileLimits(10 * MAX_ROWS, 10 * MAX_BYTES)


class Imported(msgspec.Struct, frozen=True):
    """How many rows added an address, and how many named one that was on the list already."""

    added: int
    unchanged: int


async def export(ctx: context.Context, account_id: str) -> AsyncGenerator[bytes, None]:
    page = await suppression_list.page(ctx, account_id, after="", limit=PAGE_ROWS)
    yield csv_rows.lines([COLUMNS, *map(_cells, page)])
    while len(page) == PAGE_ROWS:
        page = await suppression_list.page(ctx, account_id, after=page[-1].email_key, limit=PAGE_ROWS)
        if page:
            yield csv_rows.lines([_cells(suppression) for suppression in page])
    after = ("", "")
    while page := await suppression_list.page_of_lists(ctx, account_id, after=after, limit=PAGE_ROWS):
        yield csv_rows.lines([_cells(suppression) for suppression in page])
        after = (page[-1].list_name, page[-1].email_key)


async def import_csv(
    ctx: context.Context, account_id: str, content: bytes, *, limits: FileLimits = CALLER_LIMITS
) -> Imported:
    """Import the addresses of a file. Nothing is stored when anything in it is invalid.

    The rows are written in small transactions. After a database failure the same file can be imported again.
    """
    with usage_limits.acquire(ctx, IMPORTS, account_id):
        reasons, rows = await ctx.threads.run(account_id, functools.partial(_read, content, limits))
        await usage_limits.check_suppression_quota(ctx, account_id)
        now = ctx.clock()
        wanted = [
            stored.Suppression(account_id, key, stored.Source.IMPORT, reason, None, None, now, list_name)
            for (key, list_name), reason in sorted(reasons.items())
        ]
        subject = "1 address" if len(wanted) == 1 else f"{len(wanted)} addresses"
        added = await suppression_list.add_in_batches(ctx, wanted, audit_subject=subject)
    return Imported(added, rows - added)


def _cells(suppression: stored.Suppression) -> tuple[str, ...]:
    code = "" if suppression.smtp_code is None else str(suppression.smtp_code)
    return (
        suppression.email_key,
        suppression.source,
        suppression.reason,
        code,
        suppression.message_id or "",
        times.to_wire(suppression.created_at),
        suppression.list_name,
    )


def _read(content: bytes, limits: FileLimits) -> tuple[dict[tuple[str, str], str], int]:
    """The first reason for each address and list, and the number of rows."""
    columns, rows = _table(_rows(_decode(content, limits)))
    reasons: dict[tuple[str, str], str] = {}
    problems: list[str] = []
    count = 0
    for line, row in rows:
        count += 1
        if count > limits.max_rows:
            raise errors.InvalidRequest(f"body: at most {limits.max_rows} addresses per import; split the file")
        try:
            key, reason = _entry(columns, row)
        except (ValueError, errors.InvalidRequest) as problem:
            problems.append(f"line {line}: {problem}")
            if len(problems) > SHOWN_PROBLEMS:
                break
        else:
            reasons.setdefault(key, reason)
    if problems:
        more = ["and more"] if len(problems) > SHOWN_PROBLEMS else []
        raise errors.InvalidRequest("; ".join([*problems[:SHOWN_PROBLEMS], *more]))
    return reasons, count


def _decode(content: bytes, limits: FileLimits) -> str:
    if len(content) > limits.max_bytes:
        raise errors.PayloadTooLarge(f"body: at most {limits.max_bytes} bytes; split the file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise errors.InvalidRequest("body: the file is not UTF-8; save it as CSV in UTF-8") from None


def _rows(text: str) -> Iterator[Row]:
    """The non-empty rows, each with the number of its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error:
        raise errors.InvalidRequest(f"line {reader.line_num}: unbalanced quotes, or a cell is too long") from None


def _table(rows: Iterator[Row]) -> tuple[Sequence[str], Iterator[Row]]:
    """The column names, and the rows; a plain list of addresses has one column without a name."""
    first = next(rows, None)
    if first is None:
        raise errors.InvalidRequest("body: the file is empty")
    line, row = first
    names = [cell.strip().lower() for cell in row]
    if "email" in names:
        return _checked(line, names), rows
    if len(row) == 1 and "@" in row[0]:
        return ("email",), itertools.chain([first], rows)
    raise errors.InvalidRequest(
        f"line {line}: must name the columns, separated by commas and including email; or send one address per "
        "line and nothing else"
    )


def _checked(line: int, names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in COLUMNS:
            raise errors.InvalidRequest(f"line {line}: unknown column {name[:64]!r}; use {', '.join(COLUMNS)}")
        if names.count(name) > 1:
            raise errors.InvalidRequest(f"line {line}: the column {name} occurs twice")
    return names


def _entry(columns: Sequence[str], row: Sequence[str]) -> tuple[tuple[str, str], str]:
    if len(row) != len(columns):
        raise ValueError(f"{len(row)} cells, expected {len(columns)}")
    is_export = set(columns) >= EXPORTED
    cells = dict(zip(columns, map(csv_rows.plain, row) if is_export else row, strict=True))
    reason = _UNSEEN.sub(" ", cells.get("reason", "")).strip()
    if len(reason) > REASON_CHARACTERS:
        raise ValueError(f"reason: at most {REASON_CHARACTERS} characters")
    if list_name := cells.get("list", "").strip():
        labels.check_label("list", list_name, limit=message_limits.LIST_CHARACTERS)
    return (address.parse(cells["email"].strip()).key, list_name), reason or "imported"
