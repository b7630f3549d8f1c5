"""The one interface that the rest of Postroad has to its data.

A store gives transactions; a transaction runs named queries. Queries are named `file.query` after `sql/*.sql`, where
each is described. `fetch_many` and `execute_many` take a list of rows: SQLite runs the statement for each row,
PostgreSQL gets the columns as arrays in one statement. Both engines behave the same, and the same tests prove it.

A store that cannot be reached or is full raises `ServiceUnavailable`; one that is too slow raises `TemporaryFailure`;
text that cannot be stored raises `InvalidRequest`. In all cases nothing of the transaction is stored, except that a
commit whose answer was lost is in doubt. Errors that the block raises itself pass through unchanged.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

Row = Sequence[Any]


class ConstraintViolated(Exception):
    """A row breaks a rule of its table: its key exists already, or a CHECK refuses it."""


class TransactionAborted(Exception):
    """A statement of this transaction failed and was overlooked: nothing of the transaction is stored."""


class Transaction(Protocol):
    """Named queries over one consistent view of the data. After a failed query there are no others, and no commit."""

    async def fetch(self, query: str, *arguments: object) -> list[Row]:
        """All rows of a query."""
        ...

    async def fetch_one(self, query: str, *arguments: object) -> Row | None:
        """The first row, or None."""
        ...

    async def fetch_many(self, query: str, rows: Sequence[Row]) -> list[Row]:
        """The rows found for each of the given rows, in no promised order."""
        ...

    async def execute(self, query: str, *arguments: object) -> int:
        """Run a change and return how many rows it touched."""
        ...

    async def execute_many(self, query: str, rows: Sequence[Row]) -> None:
        """Run a change for each of the given rows."""
        ...

    async def add_rows(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Add rows as they are, by the quickest way that the engine has; for large values."""
        ...

    async def run_script(self, script: str) -> None:
        """Run several statements without arguments; for migrations only."""
        ...


class Store(Protocol):
    """A database that keeps what it has committed."""

    dialect: str

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A change: committed to disk when the block ends, undone when it raises."""
        ...

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """A consistent view for look-ups by key: quick, so SQLite answers on the event loop itself."""
        ...

    def scanning(self) -> AbstractAsyncContextManager[Transaction]:
        """A consistent view for reads that may take long, such as lists, sums and audits."""
        ...

    async def close(self) -> None:
        """Let go of all connections, after what is under way has ended or a few seconds have passed."""
        ...
