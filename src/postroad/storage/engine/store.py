"""The interface of the database to the rest of Postroad.

A store opens transactions; a transaction runs named queries. Queries are named `file.query` after `sql/*.sql`, where
each is described. `fetch_many` and `execute_many` take a list of rows: SQLite runs the statement for each row,
PostgreSQL gets the columns as arrays in one statement. Both engines behave the same and pass the same tests.

A store that cannot be reached or is full raises `ServiceUnavailable`; one that is too slow raises `TemporaryFailure`;
text that cannot be stored raises `InvalidRequest`. In all cases nothing of the transaction is stored, except that
the result of a commit whose answer was lost is unknown. Errors that the block itself raises are not changed.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

from postroad import errors

Row = Sequence[Any]
# Of four scans, one party gets three: however many pages and exports an account opens, there is one for the next.
SCAN_ALPHA: Final = 2.0
# Of a sweep: so few that it delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000
# What a store raises when it cannot be reached, is full or is too slow: the next transaction would fail as well.
UNAVAILABLE: Final = (errors.ServiceUnavailable, errors.TemporaryFailure)


class ConstraintViolated(Exception):
    """A row violates a constraint of its table: its key exists already, or a CHECK fails."""


class TransactionAborted(Exception):
    """A statement of this transaction failed and the error was ignored: nothing of the transaction is stored."""


class NotPermitted(Exception):
    """The role of the database URL has not the right to do this."""


class Transaction(Protocol):
    """Named queries over one consistent view of the data. After a failed query it runs and commits nothing."""

    async def fetch(self, query: str, *arguments: object) -> list[Row]: ...

    async def fetch_one(self, query: str, *arguments: object) -> Row | None: ...

    async def fetch_composed(self, statement: str, *arguments: object) -> list[Row]:
        """All rows of a SELECT that has no name, because its conditions are chosen (storage/mail/message_search.py)."""
        ...

    async def fetch_many(self, query: str, rows: Sequence[Row]) -> list[Row]:
        """The rows found for each of the given rows, in no particular order."""
        ...

    async def execute(self, query: str, *arguments: object) -> int:
        """Run a change and return how many rows it changed."""
        ...

    async def execute_many(self, query: str, rows: Sequence[Row]) -> None:
        """Run a change for each of the given rows."""
        ...

    async def execute_later(self, query: str, rows: Sequence[Row]) -> None:
        """The same, at the latest with the commit, which raises its errors: PostgreSQL sends several changes together.

        Changes that are sent together do not see what others committed while the first of them waited for a lock. So
        this is for new rows, and for rows that are found by their key under a lock that the transaction already has.
        """
        ...

    async def add_rows(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows by the fastest method of the engine; for large values."""
        ...

    async def run_script(self, script: str) -> None:
        """Run several statements without arguments, however long they take; for changes of the schema only."""
        ...


class Store(Protocol):
    """A database whose commits are durable."""

    dialect: str

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A change: committed to disk when the block ends, rolled back when it raises."""
        ...

    def leasing(self) -> AbstractAsyncContextManager[Transaction]:
        """A change that only the worker that makes it relies on, such as a claim.

        It may be lost together with its worker, so SQLite does not wait for the disk. PostgreSQL does: its server may
        fail while the worker goes on. Transactions that wait go first.
        """
        ...

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """A consistent view for lookups by key: fast, so SQLite runs them on the event loop."""
        ...

    def looking_up(self) -> AbstractAsyncContextManager[Transaction]:
        """The same without the consistent view: each query sees the data as they are then.

        PostgreSQL runs them without a transaction, which saves two round trips, except behind a pooler.
        """
        ...

    def scanning(self, party: str = "", /) -> AbstractAsyncContextManager[Transaction]:
        """A consistent view for reads that may take long, such as lists, sums and consistency checks.

        Their number is limited and shared fairly. `party` is whose read it is: an account, or the service itself.
        """
        ...

    async def close(self) -> None:
        """Close all connections, after running transactions have ended or a few seconds have passed."""
        ...
