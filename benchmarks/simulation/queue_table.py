"""The table `queue` in memory, with the indexes that its queries need (src/postroad/storage/sql/queue.sql).

Every message has one recipient. Entries of heaps whose row has changed since are passed over when they come up.
"""

import bisect
import collections.abc
import heapq
import itertools
import typing

Number = str  # of a message: as an id, and in the order of acceptance


class Row:
    """A recipient that is not final."""

    __slots__ = (
        "account_id",
        "attempt_count",
        "due_at",
        "email",
        "expires_at",
        "is_ready",
        "is_removed",
        "lost_leases",
        "number",
        "queue_key",
        "queued_at",
        "worker",
    )

    def __init__(self, number: Number, account_id: str, queue_key: str, email: str) -> None:
        self.number, self.account_id, self.queue_key, self.email = number, account_id, queue_key, email
        self.attempt_count = self.lost_leases = self.queued_at = self.due_at = 0
        self.expires_at: int | None = None
        self.worker: str | None = None
        self.is_ready = self.is_removed = False

    def columns(self) -> tuple[object, ...]:
        """What a claim returns."""
        return (
            *(self.account_id, self.number, self.number, self.queue_key, self.email, self.email, 5_000),
            *(self.attempt_count, self.lost_leases, self.queued_at, self.expires_at),
        )


class KeyIndex:
    """Ready rows by scheduled queue, oldest message first."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[Number, Row]]] = {}
        self._keys: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._keys)

    def push(self, row: Row) -> None:
        """A row is ready."""
        rows = self._rows.get(row.queue_key)
        if rows is None:
            rows = self._rows[row.queue_key] = []
            bisect.insort(self._keys, row.queue_key)
        heapq.heappush(rows, (row.number, row))

    def pop(self, queue_key: str, limit: int, *, queued_before: int) -> list[Row]:
        """Take ready rows of a scheduled queue."""
        rows, found = self._rows.get(queue_key), list[Row]()
        while rows and len(found) < limit:
            row = rows[0][1]
            if row.is_ready and row.queued_at > queued_before:
                break
            heapq.heappop(rows)
            if row.is_ready:
                row.is_ready = False
                found.append(row)
        if rows is not None and not rows:
            del self._rows[queue_key]
            del self._keys[bisect.bisect_left(self._keys, queue_key)]
        return found

    def keys(self, after: str, limit: int) -> list[tuple[str]]:
        """Scheduled queues after one."""
        place = bisect.bisect_right(self._keys, after)
        return [(key,) for key in self._keys[place : place + limit]]


class DueIndex:
    """Rows by a time. An entry counts while it is the row's time."""

    def __init__(self, is_current: typing.Callable[[Row, int], bool]) -> None:
        self._entries: list[tuple[int, int, Row]] = []
        self._order = itertools.count()
        self._is_current = is_current

    def push(self, at: int, row: Row) -> None:
        """A row has this time."""
        heapq.heappush(self._entries, (at, next(self._order), row))

    def has_due(self, now: int) -> bool:
        """Whether the time of a row has come."""
        while self._entries and not self._is_current(self._entries[0][2], self._entries[0][0]):
            heapq.heappop(self._entries)
        return bool(self._entries) and self._entries[0][0] <= now

    def pop(self, now: int, limit: int) -> list[Row]:
        """Take rows whose time has come."""
        found: list[Row] = []
        while len(found) < limit and self.has_due(now):
            found.append(heapq.heappop(self._entries)[2])
        return found


class QueueTable:
    """The rows, and what the queries do with them."""

    def __init__(self) -> None:
        self.rows: dict[Number, Row] = {}
        self._ready, self._urgent = KeyIndex(), KeyIndex()
        self._waiting = DueIndex(lambda row, at: row.due_at == at and row.worker is None and _is_idle(row))
        self._leased = DueIndex(lambda row, at: row.due_at == at and row.worker is not None and _is_idle(row))
        self._expiring = DueIndex(lambda row, _: not row.is_removed and row.worker is None)

    def insert(self, row: Row, *, now: int) -> None:
        """A message is accepted."""
        row.queued_at = row.due_at = now
        self.rows[row.number] = row
        self._make_ready(row)

    def _make_ready(self, row: Row) -> None:
        row.is_ready, row.worker = True, None
        self._ready.push(row)
        if row.expires_at is not None:
            self._urgent.push(row)
            self._expiring.push(row.expires_at, row)

    def find_work(self, now: int, leases_until: int) -> tuple[bool, bool, bool]:
        """`queue.find_work`."""
        is_due = self._waiting.has_due(now) or self._leased.has_due(min(now, leases_until))
        return is_due, bool(self._urgent), self._expiring.has_due(leases_until)

    def promote(self, now: int, limit: int, leases_until: int) -> int:
        """`queue.promote`."""
        due = self._waiting.pop(now, limit)
        lost = self._leased.pop(min(now, leases_until), limit - len(due))
        for row in lost:
            row.lost_leases += 1
        for row in (*due, *lost):
            self._make_ready(row)
        return len(due) + len(lost)

    def queue_keys(self, after: str, limit: int) -> list[tuple[str]]:
        """`queue.queue_keys`."""
        return self._ready.keys(after, limit)

    def urgent_keys(self, after: str, limit: int) -> list[tuple[str]]:
        """`queue.urgent_keys`."""
        return self._urgent.keys(after, limit)

    def claim(
        self, queue_key: str, limit: int, lease_until: int, worker: str, queued_before: int
    ) -> list[tuple[object, ...]]:
        """`queue.claim`."""
        found = self._ready.pop(queue_key, limit, queued_before=queued_before)
        return self._lease(found, lease_until, worker)

    def claim_urgent(self, queue_key: str, limit: int, lease_until: int, worker: str) -> list[tuple[object, ...]]:
        """`queue.claim_urgent`."""
        return self._lease(self._urgent.pop(queue_key, limit, queued_before=2**62), lease_until, worker)

    def claim_expired(self, now: int, limit: int, lease_until: int, worker: str) -> list[tuple[object, ...]]:
        """`queue.claim_expired`; the last reply of the destination is not kept."""
        found = list(dict.fromkeys(self._expiring.pop(now, limit)))  # a row may have several entries
        for row in found:
            row.is_ready = False
        return [(*columns, None, None) for columns in self._lease(found, lease_until, worker)]

    def _lease(self, rows: collections.abc.Sequence[Row], lease_until: int, worker: str) -> list[tuple[object, ...]]:
        for row in rows:
            row.worker, row.due_at = worker, lease_until
            self._leased.push(lease_until, row)
        return [row.columns() for row in rows]

    def extend(self, _: str, __: str, number: Number, lease_until: int, worker: str) -> list[tuple[object, ...]]:
        """`queue.extend`."""
        row = self.rows.get(number)
        if row is None or row.worker != worker:
            return []
        row.due_at = lease_until
        self._leased.push(lease_until, row)
        return [(row.account_id, number, number)]

    def release(self, _: str, __: str, number: Number, now: int, worker: str) -> list[tuple[object, ...]]:
        """`queue.release`."""
        row = self.rows.get(number)
        if row is not None and row.worker == worker:
            row.due_at = now
            self._make_ready(row)
        return []

    def postpone(
        self, _: str, __: str, number: Number, due_at: int, worker: str, step: int
    ) -> list[tuple[object, ...]]:
        """`queue.postpone`."""
        row = self.rows.get(number)
        if row is None or row.worker != worker:
            return []
        row.due_at, row.worker, row.lost_leases = due_at, None, 0
        row.attempt_count += step
        self._waiting.push(due_at, row)
        if row.expires_at is not None:
            self._expiring.push(row.expires_at, row)
        return [(row.account_id, number, number)]

    def remove(self, _: str, __: str, number: Number) -> list[tuple[object, ...]]:
        """`queue.remove`."""
        row = self.rows.pop(number, None)
        if row is not None:
            row.is_removed, row.is_ready = True, False
        return []


def _is_idle(row: Row) -> bool:
    return not row.is_ready and not row.is_removed
