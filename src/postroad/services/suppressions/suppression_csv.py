"""The suppression list as a CSV file (RFC 4180): written page by page, and read as a whole before a row is stored.

A file is read when its first line names the columns, one of them `email`, or when it is a bare list of addresses. What
is wrong is told by its line, and then nothing of the file is stored. An export can be imported again.

Cells that a spreadsheet would run have an apostrophe before them (`csv_cells.py`). It is taken off again in files with
all the columns of an export, and in no other: there an apostrophe is part of the address.
"""

import asyncio
import csv
import functools
import io
import itertools
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from postroad import errors
from postroad.model import times
from postroad.protocol import address
from postroad.protocol.mime import header_text
from postroad.services import audit_log, context, csv_rows, quota
from postroad.services.maintenance import throttled_batches
from postroad.services.suppressions import registry as suppressions
from postroad.storage import store
from postroad.storage import suppressions as stored

COLUMNS: Final = ("email", "source", "reason", "smtp_code", "message_id", "created_at")
MAX_BYTES: Final = 10 * 1024 * 1024
MAX_ROWS: Final = 100_000
# A destination's reply has at most 2,000 characters, and may have come with an export.
REASON_CHARACTERS: Final = 4_000
NO_REASON: Final = "imported"
# Enough to see what is wrong with a file.
SHOWN_PROBLEMS: Final = 5
# For one look at the store, and for one transaction, which everybody who writes waits for.
PAGE_ROWS: Final = 1_000
BATCH_ROWS: Final = 500
# A file of a hundred thousand rows keeps a processor for seconds, and half of the store for longer.
IMPORTS: Final = quota.Quota("imports", per_account=1, per_process=2, retry_seconds=5)

# The number of a line, and its cells.
Row = tuple[int, list[str]]

_UNSEEN: Final = re.compile(f"[{header_text.UNSEEN}]")


@dataclass(frozen=True, slots=True)
class FileLimits:
    """How long a file may be; all of it is held in memory."""

    max_rows: int
    max_bytes: int


CALLER_LIMITS: Final = FileLimits(MAX_ROWS, MAX_BYTES)
# Operators have a process of their own for it.
OPERATOR_LIMITS: Final = FileLimits(10 * MAX_ROWS, 10 * MAX_BYTES)


@dataclass(frozen=True, slots=True)
class Imported:
    """How many rows of a file put an address onto the list, and how many named one that was there already."""

    added: int
    already: int


async def export(ctx: context.Context, account_id: str) -> AsyncGenerator[bytes, None]:
    """The whole list as a file, in parts; nothing of it is held longer than it takes to write one."""
    page = await suppressions.page(ctx, account_id, after="", limit=PAGE_ROWS)
    yield csv_rows.lines([COLUMNS, *map(_cells, page)])
    while len(page) == PAGE_ROWS:
        page = await suppressions.page(ctx, account_id, after=page[-1].email_key, limit=PAGE_ROWS)
        if page:
            yield csv_rows.lines([_cells(one) for one in page])


async def import_csv(
    ctx: context.Context, account_id: str, content: bytes, *, limits: FileLimits = CALLER_LIMITS
) -> Imported:
    """Put the addresses of a file onto the list. Nothing is stored when anything is wrong with it.

    The rows go down in small transactions. After a failure of the store the same file can be imported again.
    """
    with quota.acquire(ctx, IMPORTS, account_id):
        reasons, rows = await asyncio.to_thread(_read, content, limits)
        now, added = ctx.clock(), 0
        wanted = sorted(reasons.items())
        for first in range(0, len(wanted), BATCH_ROWS):
            batch = [
                stored.Suppression(account_id, key, stored.Source.IMPORT, reason, None, None, now)
                for key, reason in wanted[first : first + BATCH_ROWS]
            ]
            # It is told with the first part: whatever happens to the others, somebody has brought the file.
            told = len(wanted) if first == 0 else None
            added += len(await throttled_batches.run_batch(ctx, functools.partial(_store, ctx, batch=batch, told=told)))
    return Imported(added, rows - added)


async def _store(
    ctx: context.Context, tx: store.Transaction, *, batch: Sequence[stored.Suppression], told: int | None
) -> Sequence[stored.SuppressionKey]:
    if told is not None:
        subject = "1 address" if told == 1 else f"{told} addresses"
        await audit_log.write(ctx, tx, batch[0].account_id, "suppression.imported", subject)
    return await stored.add(tx, batch)


def _cells(one: stored.Suppression) -> tuple[str, ...]:
    code = "" if one.smtp_code is None else str(one.smtp_code)
    return (one.email_key, one.source, one.reason, code, one.message_id or "", times.to_wire(one.created_at))


def _read(content: bytes, limits: FileLimits) -> tuple[dict[str, str], int]:
    """The reason for each address, the first one that was given, and the number of rows."""
    columns, rows = _table(_rows(_decode(content, limits)))
    reasons: dict[str, str] = {}
    problems: list[str] = []
    count = 0
    for line, row in rows:
        count += 1
        if count > limits.max_rows:
            raise errors.InvalidRequest(f"body: at most {limits.max_rows} addresses at once; split the file")
        try:
            key, reason = _entry(columns, row)
        except ValueError as problem:
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
    """The rows that are not empty, each with the number of its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error:
        raise errors.InvalidRequest(f"line {reader.line_num}: the quotes do not match, or a cell is too long") from None


def _table(rows: Iterator[Row]) -> tuple[Sequence[str], Iterator[Row]]:
    """The names of the columns, and the rows under them; a bare list of addresses has one column and no names."""
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
        f"line {line}: name the columns here, with commas between them and one of them email; "
        "or send one address a line and nothing else"
    )


def _checked(line: int, names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in COLUMNS:
            raise errors.InvalidRequest(f"line {line}: the column {name[:64]!r} is unknown; use {', '.join(COLUMNS)}")
        if names.count(name) > 1:
            raise errors.InvalidRequest(f"line {line}: the column {name} is there twice")
    return names


def _entry(columns: Sequence[str], row: Sequence[str]) -> tuple[str, str]:
    if len(row) != len(columns):
        raise ValueError(f"{len(row)} cells instead of {len(columns)}")
    is_export = len(columns) == len(COLUMNS)
    cells = dict(zip(columns, map(csv_rows.plain, row) if is_export else row, strict=True))
    reason = _UNSEEN.sub(" ", cells.get("reason", "")).strip()
    if len(reason) > REASON_CHARACTERS:
        raise ValueError(f"reason: at most {REASON_CHARACTERS} characters")
    return address.parse(cells["email"].strip()).key, reason or NO_REASON
