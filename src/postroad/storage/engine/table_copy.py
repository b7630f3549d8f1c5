"""A copy of all rows of a SQLite file in a PostgreSQL database, and the proof that both have the same.

The tables are those of the catalog, so none can be forgotten. Both engines have the same tables and columns, of three
types. A summary of a table is the number of its rows and the sum of their hashes, which no order changes: SQLite's is
made of the rows as they are copied, and PostgreSQL makes its own of what it has stored. The same `hash`, on both sides,
is that of a row written as text, with the hash of each blob in its place.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import apsw

from postroad.storage.engine import backup_files, sqlite_backup, store

# Of one COPY; blobs are up to tens of megabytes.
MAX_ROWS: Final = 5_000
MAX_BYTES: Final = 8 * 1024 * 1024
# Of a hash, as many bytes as make a number of 64 bits with a sign.
HASH_BYTES: Final = 7

# How PostgreSQL writes a value of a type. Python does in `_written`.
_AS_TEXT: Final = {
    "TEXT": "length({0}) || ':' || {0}",
    "INTEGER": "{0}::TEXT",
    "BLOB": "encode(sha256({0}), 'hex')",
}


class Column(NamedTuple):
    name: str
    # TEXT, INTEGER or BLOB.
    type: str


class Summary(NamedTuple):
    """What two tables have in common if they have the same rows."""

    rows: int
    hashes: int


Tables = Mapping[str, Sequence[Column]]


async def tables(tx: store.Transaction) -> Tables:
    """The tables of a database, and their columns by name."""
    found: dict[str, list[Column]] = {}
    for table, name, kind in await tx.fetch("table_copy.columns"):
        found.setdefault(table, []).append(Column(name, kind))
    return found


async def check_tables(copied: Tables, target: store.Transaction) -> None:
    """Raise BackupError unless the target has all of the tables; others there are none of ours."""
    there = await tables(target)
    if different := sorted(name for name, columns in copied.items() if there.get(name) != columns):
        raise backup_files.BackupError(f"the tables of the two databases differ: {', '.join(different)}")


async def replace(
    source: apsw.Connection, target: store.Transaction, copied: Tables, *, progress: Callable[[int], None]
) -> Mapping[str, Summary]:
    """Replace the rows of these tables in the target, and summarize those of the source.

    `progress` gets the number of rows that are copied.
    """
    done = 0
    summaries = {}
    for table, columns in copied.items():
        names = [column.name for column in columns]
        await target.run_script(f"DELETE FROM {table}")  # noqa: S608 - a name of ours
        rows = hashes = 0
        for batch in _batches(source, table, names):
            await target.add_rows(table, names, batch)
            rows, hashes = rows + len(batch), hashes + sum(map(_hash, batch))
            done += len(batch)
            progress(done)
        summaries[table] = Summary(rows, hashes)
    await target.run_script(f"ANALYZE {', '.join(copied)}")  # PostgreSQL only warns of those of another owner
    return summaries


def summarize_source(source: apsw.Connection, copied: Tables) -> Mapping[str, Summary]:
    """Summaries of the tables of a SQLite file."""
    summaries = {}
    for table, columns in copied.items():
        rows = hashes = 0
        for batch in _batches(source, table, [column.name for column in columns]):
            rows, hashes = rows + len(batch), hashes + sum(map(_hash, batch))
        summaries[table] = Summary(rows, hashes)
    return summaries


async def summarize_target(target: store.Transaction, copied: Tables) -> Mapping[str, Summary]:
    """Summaries of the tables of a PostgreSQL database, which reads them itself."""
    summaries = {}
    for table, columns in copied.items():
        values = (f"coalesce({_AS_TEXT[column.type].format(column.name)}, '-')" for column in columns)
        line = " || ',' || ".join(values)
        digest = f"substr(sha256(convert_to({line}, 'UTF8')), 1, {HASH_BYTES})"
        number = f"('x' || encode({digest}, 'hex'))::BIT({8 * HASH_BYTES})::BIGINT"
        ((rows, hashes),) = await target.fetch_composed(
            f"SELECT COUNT(*), coalesce(SUM({number}), 0)::TEXT FROM {table}"  # noqa: S608 - names of ours
        )
        summaries[table] = Summary(rows, int(hashes))
    return summaries


def _batches(source: apsw.Connection, table: str, names: Sequence[str]) -> Iterator[list[store.Row]]:
    batch: list[store.Row] = []
    size = 0
    for row in sqlite_backup.rows(source, table, names):
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, (str, bytes)))
        if len(batch) == MAX_ROWS or size >= MAX_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _hash(row: store.Row) -> int:
    line = ",".join(map(_written, row))
    return int.from_bytes(hashlib.sha256(line.encode()).digest()[:HASH_BYTES])


def _written(value: object) -> str:
    match value:
        case None:
            return "-"
        case str():
            return f"{len(value)}:{value}"
        case bytes():
            return hashlib.sha256(value).hexdigest()
        case _:
            return str(value)
