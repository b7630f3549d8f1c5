"""A store that fails when it is told to: the process dies, or the store does, at a chosen moment of a transaction.

The product knows nothing of this. A `FaultyStore` stands between the services and a real store and counts statements.
What happens then is real: SQLite's files are copied as a kill would leave them, a file may not grow, connections to
PostgreSQL are cut. A process that has died answers nobody any more, whatever its code still does.
"""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from postroad import errors
from postroad.model.units import identifiers
from postroad.storage.engine import store
from tests.reliability import profile

# The query, or the table.
INSERT_MESSAGES = ("messages.insert", "messages")


class Moment(StrEnum):
    """When it happens."""

    BEFORE = "before the commit"
    DURING = "during the commit"
    AFTER = "after the commit"


def failures(statements: int) -> list[tuple[Moment, int, float]]:
    """Before each of so many statements, and with each share of the commit written: when a store can fail."""
    return [
        *((Moment.BEFORE, count, 0.0) for count in range(statements)),
        *((Moment.DURING, 0, share) for share in profile.shares()),
    ]


def deaths(statements: int) -> list[tuple[Moment, int, float]]:
    """The same, and after the commit: when a process can die."""
    return [*failures(statements), (Moment.AFTER, 0, 0.0)]


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
        self.written: set[str] = set()
        self._fault: Fault | None = None

    def expect(self, fault: Fault) -> None:
        """Let the next transaction meet a fault."""
        self._fault, self.has_struck, self.written = fault, False, set()

    def expect_nothing(self) -> None:
        """A fault that has not come by now does not come."""
        self._fault = None

    async def die(self, fault: Fault) -> None:
        """Die now, unless the fault has come already: a process that does nothing can be killed as well."""
        self._fault = None
        with contextlib.suppress(errors.ServiceUnavailable):
            await self.strike(dataclasses.replace(fault, moment=Moment.AFTER), None)

    def transaction(self) -> AbstractAsyncContextManager[store.Transaction]:
        return self._meet(self.real.transaction)

    def leasing(self) -> AbstractAsyncContextManager[store.Transaction]:
        return self._meet(self.real.leasing)

    @contextlib.asynccontextmanager
    async def _meet(
        self, begin: Callable[[], AbstractAsyncContextManager[store.Transaction]]
    ) -> AsyncIterator[store.Transaction]:
        self._refuse_when_dead()
        fault, self._fault = self._fault, None
        if fault is None:
            async with begin() as tx:
                yield tx
            return
        hit: store.Transaction | None = None
        try:
            async with begin() as tx:
                hit = tx
                yield cast("store.Transaction", _Watched(tx, self, fault))
                if fault.moment is Moment.BEFORE:
                    await self.strike(fault, tx)
                elif fault.moment is Moment.DURING:
                    await fault.brace(tx)
        except errors.PostroadError:
            # A commit that was hit may say so itself.
            if fault.moment is Moment.DURING:
                await self.strike(fault, hit)
            raise
        if fault.moment is not Moment.BEFORE:
            await self.strike(fault, hit)

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

    def looking_up(self) -> AbstractAsyncContextManager[store.Transaction]:
        self._refuse_when_dead()
        return self.real.looking_up()

    def scanning(self, party: str = "") -> AbstractAsyncContextManager[store.Transaction]:
        self._refuse_when_dead()
        return self.real.scanning(party)

    async def close(self) -> None:
        await self.real.close()

    def _refuse_when_dead(self) -> None:
        """Nobody hears it: it only ends what the dead process would not have gone on with."""
        if self.is_dead:
            raise errors.ServiceUnavailable("the process is dead")


class _Watched:
    """A transaction whose statements are counted, whichever method they come by."""

    def __init__(self, tx: store.Transaction, owner: FaultyStore, fault: Fault) -> None:
        self._tx = tx
        self._owner = owner
        self._fault = fault
        self._count = 0

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def counted(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - passed on as it is
            if self._fault.moment is Moment.BEFORE and self._count == self._fault.statements:
                await self._owner.strike(self._fault, self._tx)
            self._count += 1
            result = await getattr(self._tx, name)(*arguments, **options)
            self._owner.written |= _new_messages(*arguments)
            return result

        return counted


def _new_messages(query: str, *arguments: Any) -> set[str]:
    """The ids in the rows that a statement adds to the table of messages."""
    if query not in INSERT_MESSAGES:
        return set()
    cells = (cell for row in arguments[-1] for cell in row)
    return {cell for cell in cells if isinstance(cell, str) and cell.startswith(identifiers.MESSAGE)}
