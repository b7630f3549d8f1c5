"""`python -m benchmarks.query_times FOLDER serve …`: what `postroad serve …` does, while its queries are timed.

The time of a query is that which its transaction waits for it. Of each query only the counts of times are kept, in
classes that grow by a tenth, so a long run takes no more memory than a short one. When the process ends, it writes them
into FOLDER; `slowest` reads what all processes wrote.
"""

import collections
import contextlib
import dataclasses
import functools
import json
import math
import os
import pathlib
import sys
import time
import typing

from postroad import cli
from postroad.storage.engine import postgres, sqlite

METHODS = ("fetch", "fetch_one", "fetch_many", "execute", "execute_many", "execute_later", "add_rows")
CLASS_FACTOR = 1.1
# What runs less often, such as a sweep, does not slow mail down.
MIN_TIMES = 100

Counts = dict[str, collections.Counter[int]]
Timed = typing.Callable[..., typing.Awaitable[object]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query by its name, its median and its longest time in milliseconds, and how often it ran."""

    name: str
    median: float
    longest: float
    times: int


def main() -> None:
    """Take the folder's name away and go on as the command."""
    with timed(pathlib.Path(sys.argv.pop(1))):
        cli.main(prog_name="postroad")


@contextlib.contextmanager
def timed(folder: pathlib.Path) -> typing.Iterator[None]:
    """While the block runs, time the queries of both stores; then write the counts into a file of this process."""
    counts: Counts = collections.defaultdict(collections.Counter)
    for kind in (sqlite.SqliteTransaction, postgres.PostgresTransaction):
        for method in METHODS:
            setattr(kind, method, _timed(getattr(kind, method), counts))
    try:
        yield
    finally:
        (folder / f"{os.getpid()}.json").write_text(json.dumps(counts))


def _timed(method: Timed, counts: Counts) -> Timed:
    @functools.wraps(method)
    async def work(transaction: object, query: str, *arguments: object) -> object:
        began = time.perf_counter()
        try:
            return await method(transaction, query, *arguments)
        finally:
            counts[query][class_of(time.perf_counter() - began)] += 1

    return work


def class_of(seconds: float) -> int:
    """The class of a time, by its microseconds."""
    return math.ceil(math.log(max(seconds * 1e6, 1.0), CLASS_FACTOR))


def milliseconds_of(number: int) -> float:
    """The longest time of a class."""
    return float(CLASS_FACTOR**number / 1000)


def slowest(folder: pathlib.Path) -> Query | None:
    """The query with the longest median of all processes, of those that ran often; None when there was none."""
    counts: Counts = collections.defaultdict(collections.Counter)
    for path in folder.glob("*.json"):
        for name, classes in json.loads(path.read_text()).items():
            counts[name].update({int(number): times for number, times in classes.items()})
    often = (_query(name, classes) for name, classes in counts.items() if classes.total() >= MIN_TIMES)
    return max(often, key=lambda one: one.median, default=None)


def _query(name: str, classes: collections.Counter[int]) -> Query:
    ordered = sorted(classes.elements())
    return Query(
        name=name,
        median=milliseconds_of(ordered[len(ordered) // 2]),
        longest=milliseconds_of(ordered[-1]),
        times=len(ordered),
    )


if __name__ == "__main__":
    main()
