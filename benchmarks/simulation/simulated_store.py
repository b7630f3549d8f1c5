"""A store in memory that takes time: what each host sees of the database that they share.

It answers the named queries that delivery and the bounce guard ask. A transaction changes the data at once and ends
when the host's core, and the server's, have done its work and the disk has it. A host that has crashed gets no answer.
"""

import asyncio
import collections
import typing

from benchmarks.simulation import costs, queue_table, virtual_time
from postroad.model.bounces import bounce_guard
from postroad.storage.engine import store
from postroad.storage.people import accounts

# What takes less is counted, but not waited for.
MIN_WAIT_SECONDS = 1e-4


class Account:
    """What is known of an account: as much as the bounce guard asks."""

    __slots__ = ("id", "name", "status")

    def __init__(self, account_id: str) -> None:
        self.id = self.name = account_id
        self.status = ""


class Database:
    """The data of all hosts, and the server."""

    def __init__(self, spent: costs.Costs, *, cores: float) -> None:
        self.queue = queue_table.QueueTable()
        self.costs = spent
        self.server = costs.Core(cores)
        self.accounts: dict[str, Account] = {}
        self.suspended: dict[str, int] = {}  # when
        self._days: dict[str, dict[int, bounce_guard.Counts]] = collections.defaultdict(dict)
        self._queries = self._table()

    def _table(self) -> dict[str, typing.Callable[..., typing.Any]]:
        queue = self.queue
        return {
            "queue.find_work": lambda *arguments: [queue.find_work(*arguments)],
            "queue.promote": queue.promote,
            "queue.queue_keys": queue.queue_keys,
            "queue.urgent_keys": queue.urgent_keys,
            "queue.claim": queue.claim,
            "queue.claim_urgent": queue.claim_urgent,
            "queue.claim_expired": queue.claim_expired,
            "queue.extend": queue.extend,
            "queue.release": queue.release,
            "queue.postpone": queue.postpone,
            "queue.remove": queue.remove,
            "bounce_guard_days.add": self._add_counts,
            "bounce_guard_days.sums": self._sum_counts,
            "accounts.suspend": self._suspend,
            # Nobody holds mail, pauses a provider or suppresses an address here, and nobody reads the audit log.
            "holds.listed": list,
            "provider_overrides.listed": list,
            "suppressions.find": lambda *_: [],
            "audit_log.insert": lambda *_: 1,
        }

    def answer(self, query: str, arguments: typing.Sequence[object]) -> typing.Any:  # noqa: ANN401 - as the query is
        """The result of a query."""
        return self._queries[query](*arguments)

    def _add_counts(self, account_id: str, day: int, *added: int) -> list[store.Row]:
        days = self._days[account_id]
        counts = days[day] = days.get(day, bounce_guard.Counts()).plus(bounce_guard.Counts(*added))
        return [(account_id, counts.recipients, counts.bounces, counts.complaints)]

    def _sum_counts(self, account_id: str, after_day: int) -> list[store.Row]:
        counts = bounce_guard.Counts()
        for day, found in self._days[account_id].items():
            if day > after_day:
                counts = counts.plus(found)
        return [(account_id, counts.recipients, counts.bounces, counts.complaints)]

    def _suspend(self, account_id: str, _: str, __: str, now: int) -> int:
        self.accounts[account_id].status = accounts.SUSPENDED
        self.suspended[account_id] = now
        return 1


class HostStore:
    """The database as one host sees it."""

    dialect = "simulated"

    def __init__(self, database: Database, core: costs.Core) -> None:
        self._database = database
        self._core = core
        self.is_dead = False

    def transaction(self) -> "Transaction":
        """A change."""
        return Transaction(self, self._database, commit_seconds=self._database.costs.commit)

    def leasing(self) -> "Transaction":
        """A claim: on PostgreSQL, a change like any other."""
        return self.transaction()

    def reading(self) -> "Transaction":
        """A view."""
        return Transaction(self, self._database, commit_seconds=0.0)

    def looking_up(self) -> "Transaction":
        """Lookups."""
        return self.reading()

    def scanning(self, _: str = "", /) -> "Transaction":
        """A view for long reads."""
        return self.reading()

    async def close(self) -> None:
        """There is nothing to close."""

    async def work(self, seconds: float, *, server_seconds: float, commit_seconds: float) -> None:
        """Wait until the work is done, and written if it is a change. A dead host waits for ever."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        done = max(self._core.work(now, seconds), self._database.server.work(now, server_seconds)) + commit_seconds
        if done - now > MIN_WAIT_SECONDS:
            await virtual_time.sleep(done - now)
        if self.is_dead:
            await loop.create_future()


class Transaction:
    """One transaction. What it costs depends on the rows that it claims and records."""

    def __init__(self, host: HostStore, database: Database, *, commit_seconds: float) -> None:
        self._host = host
        self._database = database
        self._commit_seconds = commit_seconds
        self._seconds = self._server_seconds = 0.0

    async def __aenter__(self) -> typing.Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._host.work(self._seconds, server_seconds=self._server_seconds, commit_seconds=self._commit_seconds)

    async def fetch(self, query: str, *arguments: object) -> list[store.Row]:
        """All rows of a query."""
        rows: list[store.Row] = self._database.answer(query, arguments)
        self._count(query, len(rows))
        return rows

    async def fetch_one(self, query: str, *arguments: object) -> store.Row | None:
        """The first row."""
        return next(iter(await self.fetch(query, *arguments)), None)

    async def fetch_many(self, query: str, rows: typing.Sequence[store.Row]) -> list[store.Row]:
        """The rows for each of the given ones."""
        found = [found_row for row in rows for found_row in self._database.answer(query, row)]
        self._count(query, len(found))
        return found

    async def execute(self, query: str, *arguments: object) -> int:
        """A change."""
        changed: int = self._database.answer(query, arguments)
        return changed

    async def execute_many(self, query: str, rows: typing.Sequence[store.Row]) -> None:
        """A change for each row."""
        for row in rows:
            self._database.answer(query, row)
        self._count(query, len(rows))

    async def execute_later(self, query: str, rows: typing.Sequence[store.Row]) -> None:
        """The same."""
        await self.execute_many(query, rows)

    async def fetch_composed(self, statement: str, *arguments: object) -> list[store.Row]:
        """Nobody searches here."""
        raise NotImplementedError

    async def add_rows(self, table: str, columns: typing.Sequence[str], rows: typing.Sequence[store.Row]) -> None:
        """Nobody stores content here."""
        raise NotImplementedError

    async def run_script(self, script: str) -> None:
        """There are no migrations."""
        raise NotImplementedError

    def _count(self, query: str, rows: int) -> None:
        spent = self._database.costs
        if query in {"queue.claim", "queue.claim_urgent", "queue.claim_expired"}:
            self._seconds += rows * spent.claim
            self._server_seconds += rows * spent.server_claim
        elif query in {"queue.remove", "queue.postpone"}:
            self._seconds += rows * spent.result
            self._server_seconds += rows * spent.server_result
        elif query in {"queue.queue_keys", "queue.urgent_keys"}:
            self._seconds += rows * spent.queue_key
            self._server_seconds += rows * spent.server_queue_key
