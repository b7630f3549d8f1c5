"""The queue: one row for each recipient that is not final, claimed under leases.

`queue_key` names a scheduled queue: a recipient domain and an account, and the sender domain and the tag where a rule
of `[[routes]]` names them: what waits for one upstream or pool of source addresses must not hold up what goes through
another. Workers claim from one scheduled queue after the other, so that a destination or an account with a hundred
thousand waiting recipients does not delay the others. A claim lasts until its lease ends, so the claims of a dead
worker become available again. No transaction is open while mail is sent.

Test mail is in scheduled queues of its own. Their domain and the addresses in them cannot exist (RFC 6761), so whatever
goes wrong, there is nowhere to send it to.

A recipient with little time, such as that of a login code, is urgent: its `urgent_key`, which is the same key, puts it
into a list of its own, from which it is claimed before the others (docs/decisions/0015-urgent-mail.md).
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from postroad.model.units import times
from postroad.storage.engine import queries, store
from postroad.storage.mail import messages

ANY_TIME: Final = 2**62
# The domain of the scheduled queues of test mail, the mark in the place of their sender domain, which no domain has,
# and what is appended to the addresses. RFC 6761 section 6.4: names in `invalid` never exist.
SIMULATOR_DOMAIN: Final = "simulator.invalid"
SIMULATOR_MARK: Final = "!"
UNREACHABLE_SUFFIX: Final = ".invalid"
# A recipient with at most this much time, from when it may be sent, is urgent.
MAX_URGENT: Final = 15 * 60 * times.SECOND
Key = tuple[str, str, str]  # account, message, recipient


class Claimed(msgspec.Struct, frozen=True):
    """A recipient under a worker's lease. `lost_leases` counts earlier leases that expired without a result."""

    account_id: str
    message_id: str
    recipient_id: str
    queue_key: str
    email: str
    email_key: str
    size: int
    attempt_count: int
    lost_leases: int
    queued_at: int
    # When to stop trying, if before the end of the retry schedule.
    expires_at: int | None = None
    # The list that the recipient may have left.
    list_name: str | None = None

    @property
    def key(self) -> Key:
        return self.account_id, self.message_id, self.recipient_id

    @property
    def simulation(self) -> str | None:
        """What the simulator plays: the behaviour of a provider, or "" for that of the address; None for live mail."""
        return simulation_of(self.queue_key)

    @property
    def is_urgent(self) -> bool:
        """Whether it goes before others."""
        return self.expires_at is not None and self.expires_at - self.queued_at <= MAX_URGENT


class Expired(msgspec.Struct, frozen=True):
    """A recipient whose time is over, under a worker's lease, and its destination's last reply, if there is one."""

    claim: Claimed
    smtp_code: int | None
    response: str | None


class ClaimRequest(msgspec.Struct, frozen=True):
    """Up to `limit` recipients of a scheduled queue that were queued before a time, or up to `limit` urgent ones."""

    queue_key: str
    limit: int
    queued_before: int = ANY_TIME
    is_urgent: bool = False


class Work(msgspec.Struct, frozen=True):
    """Which kinds of work there are: recipients to promote, urgent ones that are ready, expired ones."""

    is_due: bool
    is_urgent: bool
    is_expired: bool


class AccountTotals(msgspec.Struct, frozen=True):
    """What an account has in the queue, with the bytes of live messages once for each recipient."""

    account_id: str
    recipients: int
    max_live_bytes: int


class Schedule(msgspec.Struct, frozen=True):
    """The times of a message that has any: not before `send_at`, not after `expires_at`."""

    send_at: int | None = None
    expires_at: int | None = None

    def is_urgent(self, now: int) -> bool:
        """Whether a message that is accepted now goes before others."""
        return self.expires_at is not None and self.expires_at - max(now, self.send_at or now) <= MAX_URGENT


UNROUTED: Final = ("", "")


def queue_key_of(domain: str, account_id: str, sender_domain: str = "", tag: str = "") -> str:
    """The key of a scheduled queue. Only a tag may contain spaces."""
    if tag:
        return f"{domain} {account_id} {sender_domain} {tag}"
    return f"{domain} {account_id} {sender_domain}" if sender_domain else f"{domain} {account_id}"


def domain_of(queue_key: str) -> str:
    return queue_key.partition(" ")[0]


def account_of(queue_key: str) -> str:
    return queue_key.split(" ", 2)[1]


def parts_of(queue_key: str) -> tuple[str, str, str, str]:
    """The recipient domain and the account, the sender domain and the tag, if it has them, of a scheduled queue."""
    domain, _, rest = queue_key.partition(" ")
    account_id, _, rest = rest.partition(" ")
    sender_domain, _, tag = rest.partition(" ")
    return domain, account_id, sender_domain, tag


def simulated_queue_key(account_id: str, simulation: str) -> str:
    return queue_key_of(SIMULATOR_DOMAIN, account_id, SIMULATOR_MARK + simulation)


def simulation_of(queue_key: str) -> str | None:
    """What the simulator plays for a scheduled queue of test mail; None for live mail."""
    if not queue_key.startswith(SIMULATOR_DOMAIN):
        return None
    sender_domain = parts_of(queue_key)[2]
    return sender_domain.removeprefix(SIMULATOR_MARK) if sender_domain.startswith(SIMULATOR_MARK) else None


async def insert(
    tx: store.Transaction,
    new: Sequence[messages.NewRecipient],
    sizes: Mapping[str, int],
    *,
    now: int,
    routed: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    schedules: Mapping[str, Schedule] = MappingProxyType({}),
    simulations: Mapping[str, str] = MappingProxyType({}),
    lists: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Queue the recipients of accepted messages.

    `sizes` are those of the messages by id, and so are the sender domain and the tag that routes ask for, and the
    schedules, where they make a difference, the simulations of test messages, and the lists.
    """
    rows: list[store.Row] = []
    for r in new:
        simulation = simulations.get(r.message_id)
        if simulation is None:
            key, email = queue_key_of(r.domain, r.account_id, *routed.get(r.message_id, UNROUTED)), r.email
        else:
            key, email = simulated_queue_key(r.account_id, simulation), r.email + UNREACHABLE_SUFFIX
        due_at, expires_at, urgent_key = now, None, None
        schedule = schedules.get(r.message_id)
        if schedule is not None:
            # The retry period counts from the time to send.
            due_at, expires_at = max(now, schedule.send_at or now), schedule.expires_at
            # The simulator needs no connections, so its mail never waits.
            if simulation is None and schedule.is_urgent(now):
                urgent_key = key
        # Scheduled: not ready, and due exactly when it was queued.
        columns = (due_at, int(due_at == now), due_at, expires_at, urgent_key, lists.get(r.message_id))
        rows.append((r.account_id, r.message_id, r.id, key, email, r.email_key, sizes[r.message_id], *columns))
    await tx.execute_later("queue.insert", rows)


async def find_work(tx: store.Transaction, *, now: int, leases_until: int | None = None) -> Work:
    """What there is to do. What ends by `leases_until` (default: now), a lease or a recipient's time, is over."""
    row = await tx.fetch_one("queue.find_work", now, now if leases_until is None else leases_until)
    assert row is not None  # noqa: S101 - it has no condition
    return Work(*map(bool, row))


# What each account has in the queue; reads all rows.
@queries.rows("queue.totals_by_account", AccountTotals)
async def totals_by_account(tx: store.Transaction, *, recipient_bytes: int) -> list[AccountTotals]: ...
# The bytes of the live messages of an account in the queue; reads all its rows, which takes longer.
@queries.count("queue.live_bytes")
async def live_bytes(tx: store.Transaction, account_id: str, *, recipient_bytes: int) -> int: ...


async def promote(tx: store.Transaction, *, now: int, limit: int, leases_until: int | None = None) -> int:
    """Make due recipients ready; leases that end by `leases_until` (default: now) have expired."""
    return await tx.execute("queue.promote", now, limit, now if leases_until is None else leases_until)


async def queue_keys(tx: store.Transaction, *, after: str, limit: int) -> list[str]:
    """The keys with ready rows after `after`, in order."""
    return [queue_key for (queue_key,) in await tx.fetch("queue.queue_keys", after, limit)]


async def urgent_keys(tx: store.Transaction, *, after: str, limit: int) -> list[str]:
    """The keys with ready rows that are urgent after `after`, in order."""
    return [queue_key for (queue_key,) in await tx.fetch("queue.urgent_keys", after, limit)]


async def claim(
    tx: store.Transaction, wanted: Sequence[ClaimRequest], *, lease_until: int, worker: str
) -> list[Claimed]:
    """Lease ready recipients, oldest first. Recipients of one message come together, even beyond the limit."""
    rows: list[Sequence[Any]] = []
    if urgent := [(w.queue_key, w.limit, lease_until, worker) for w in wanted if w.is_urgent]:
        rows += await tx.fetch_many("queue.claim_urgent", urgent)
    plain = [(w.queue_key, w.limit, lease_until, worker, w.queued_before) for w in wanted if not w.is_urgent]
    rows += await tx.fetch_many("queue.claim", plain)
    return sorted((Claimed(*row) for row in rows), key=lambda claimed: claimed.recipient_id)


async def claim_expired(tx: store.Transaction, *, now: int, limit: int, lease_until: int, worker: str) -> list[Expired]:
    """Lease recipients whose time is over, as far as nobody else has a lease: an attempt that is under way counts."""
    rows = await tx.fetch("queue.claim_expired", now, limit, lease_until, worker)
    return [Expired(Claimed(*row[:-2]), *row[-2:]) for row in rows]


async def extend(tx: store.Transaction, keys: Sequence[Key], *, lease_until: int, worker: str) -> list[Key]:
    """Renew leases; returns those that the worker still held."""
    rows = await tx.fetch_many("queue.extend", [(*key, lease_until, worker) for key in keys])
    return [(account_id, message_id, recipient_id) for account_id, message_id, recipient_id in rows]


async def release(tx: store.Transaction, keys: Sequence[Key], *, now: int, worker: str) -> None:
    """Return claims that were not attempted."""
    await tx.execute_many("queue.release", [(*key, now, worker) for key in keys])


# Return all claims, whose workers are gone: an attempt may have been made.
@queries.change("queue.end_leases")
async def end_leases(tx: store.Transaction, *, now: int) -> None: ...


async def postpone(
    tx: store.Transaction, rows: Sequence[tuple[Key, int]], *, worker: str, is_counted: bool = True
) -> list[Key]:
    """Set the times of next attempts; returns those for which the worker still held the lease.

    An attempt that is not counted leaves the position in the retry schedule as it is.
    """
    step = int(is_counted)
    found = await tx.fetch_many("queue.postpone", [(*key, due_at, worker, step) for key, due_at in rows])
    return [(account_id, message_id, recipient_id) for account_id, message_id, recipient_id in found]


async def remove(tx: store.Transaction, keys: Sequence[Key]) -> None:
    await tx.execute_later("queue.remove", keys)
