"""A store that fails when it is told to: the process dies, or the store does, at a chosen moment of a transaction.

The product knows nothing of this. A `FaultyStore` stands between the services and a real store and counts statements.
What happens then is real: SQLite's files are copied as a kill would leave them, a file may not grow, connections to
PostgreSQL are cut. A process that has died answers nobody any more, whatever its code still does.
"""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum

from postroad import errors
from postroad.storage import store

INSERT_MESSAGES = "messages.insert"


class Moment(StrEnum):
    """When it happens."""

    BEFORE = "before the commit"
    DURING = "during the commit"
    AFTER = "after the commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens in one transaction. `brace` comes before a commit that is hit, `strike` is the moment itself."""

    moment: Moment
    # BEFORE: after so many statements, or before the commit when there are not that many.
    statements: int
    is_fatal: bool
    strike: Callable[[store.Transaction | None], Awaitable[None]]
    brace: Callable[[store.Transaction], Awaitable[None]]


class FaultyStore:
    """A store with at most one fault ahead: the next transaction meets it."""

    def __init__(self, real: store.Store) -> None:
        self.real = real
        self.dialect = real.dialect
        self.is_dead = False
        self.has_struck = False
        # The messages that the transaction with the fault has written.
        self.written: list[str] = []
        self._fault: Fault | None = None

    def expect(self, fault: Fault) -> None:
        """Let the next transaction meet a fault."""
        self._fault, self.has_struck, self.written = fault, False, []

    def expect_nothing(self) -> None:
        """A fault that has not come by now does not come."""
        self._fault = None

    async def die(self, fault: Fault) -> None:
        """Die now, unless the fault has come already: a process that does nothing can be killed as well."""
        self._fault = None
        with contextlib.suppress(errors.ServiceUnavailable):
            await self.strike(dataclasses.replace(fault, moment=Moment.AFTER), None)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[store.Transaction]:
        self._refuse_when_dead()
        fault, self._fault = self._fault, None
        if fault is None:
            async with self.real.transaction() as tx:
                yield tx
            return
        try:
            async with self.real.transaction() as tx:
                yield _Watched(tx, self, fault)
                if fault.moment is Moment.BEFORE:
                    await self.strike(fault, tx)
                elif fault.moment is Moment.DURING:
                    await fault.brace(tx)
        except errors.PostroadError:
            # A commit that was hit may say so itself.
            if fault.moment is Moment.DURING:
                await self.strike(fault, tx)
            raise
        if fault.moment is not Moment.BEFORE:
            await self.strike(fault, tx)

    async def strike(self, fault: Fault, tx: store.Transaction | None) -> None:
        """The moment itself, once; without a transaction it comes while nothing happens."""
        if self.has_struck:
            return
        self.has_struck, self.is_dead = True, fault.is_fatal
        await fault.strike(tx)
        self._refuse_when_dead()

    def reading(self) -> AbstractAsyncContextManager[store.Transaction]:
        self._refuse_when_dead()
        return self.real.reading()

    def scanning(self) -> AbstractAsyncContextManager[store.Transaction]:
        self._refuse_when_dead()
        return self.real.scanning()

    async def close(self) -> None:
        await self.real.close()

    def _refuse_when_dead(self) -> None:
        """Nobody hears it: it only ends what the dead process would not have gone on with."""
        if self.is_dead:
            raise errors.ServiceUnavailable("the process is dead")


class _Watched:
    """A transaction whose statements are counted."""

    def __init__(self, tx: store.Transaction, owner: FaultyStore, fault: Fault) -> None:
        self._tx = tx
        self._owner = owner
        self._fault = fault
        self._count = 0

    async def _next(self) -> None:
        if self._fault.moment is Moment.BEFORE and self._count == self._fault.statements:
            await self._owner.strike(self._fault, self._tx)
        self._count += 1

    async def fetch(self, query: str, *arguments: object) -> list[store.Row]:
        await self._next()
        return await self._tx.fetch(query, *arguments)

    async def fetch_one(self, query: str, *arguments: object) -> store.Row | None:
        await self._next()
        return await self._tx.fetch_one(query, *arguments)

    async def fetch_many(self, query: str, rows: Sequence[store.Row]) -> list[store.Row]:
        await self._next()
        return await self._tx.fetch_many(query, rows)

    async def execute(self, query: str, *arguments: object) -> int:
        await self._next()
        return await self._tx.execute(query, *arguments)

    async def execute_many(self, query: str, rows: Sequence[store.Row]) -> None:
        await self._next()
        await self._tx.execute_many(query, rows)
        if query == INSERT_MESSAGES:
            self._owner.written += [str(row[0]) for row in rows]

    async def run_script(self, script: str) -> None:
        await self._next()
        await self._tx.run_script(script)
