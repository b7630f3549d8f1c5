"""The queue of all accounts, as operators see and change it: in numbers, in pages, and by jobs in steps."""

import asyncio
import functools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from postroad import context, errors
from postroad.concurrency import caches
from postroad.model.bounces import reasons
from postroad.model.units import identifiers, labels, times
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.messages import queue_changes, queue_inspection
from postroad.services.operations import operator_jobs
from postroad.services.queue import holds
from postroad.storage.mail import delivery_controls as stored_holds
from postroad.storage.mail import mail_counts, queue, queue_views
from postroad.storage.operations import processes as stored_jobs
from postroad.storage.people import accounts

# Some tens of milliseconds.
MAX_EXAMINED: Final = 10_000
_KINDS: Final = (identifiers.ACCOUNT, identifiers.MESSAGE, identifiers.RECIPIENT)


async def page(
    ctx: context.Context, chosen: queue_views.Selection, *, state: str, cursor: str | None, limit: int
) -> identifiers.Page[queue_inspection.QueueEntry]:
    after = queue_views.WALK_START if cursor is None else _cursor_key(cursor)
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        rows, place = await queue_views.walk_page(
            tx, chosen, state=state, after=after, examined=MAX_EXAMINED, limit=limit
        )
        current = await queue_inspection.read_conditions(ctx, tx, now=now)
    entries = [queue_inspection.line(ctx, row, current, now=now) for row in rows]
    return identifiers.Page(entries, None if place is None else ".".join(place))


def _cursor_key(cursor: str) -> queue.Key:
    parts = cursor.split(".")
    if len(parts) != len(_KINDS) or not all(map(identifiers.is_identifier, parts, _KINDS)):
        raise errors.InvalidRequest("cursor: is not a cursor of this list; use the cursor of the previous page")
    account_id, message_id, recipient_id = parts
    return account_id, message_id, recipient_id


# The queue of the whole installation in numbers: by state, age, account, destination and cause.
#
# Counting reads everything that waits, which takes seconds with millions of recipients. So a process counts in the
# background and shows its last numbers with their time; whoever asks waits only a moment for new ones. A count is
# followed by a pause of twenty times its duration, so that it costs the store at most a twentieth of its time.

# A response may take 300 ms; an ordinary queue is counted in less than this.
WAIT_SECONDS: Final = 0.2
MIN_REFRESH_SECONDS: Final = 2.0
REST_FACTOR: Final = 20
# Today and yesterday in any time zone, also when clocks change.
RECENT_HOURS: Final = 49
DAY_HOURS: Final = 24
# Rows of each list.
LARGEST: Final = 50
# Recipients whose last attempt is looked up.
SAMPLE: Final = 2_000
# The limits of ages, and the names of what lies between them.
AGES: Final[Mapping[str, int | None]] = {
    "under_1_minute": 60 * times.SECOND,
    "under_10_minutes": 600 * times.SECOND,
    "under_1_hour": times.HOUR,
    "under_6_hours": 6 * times.HOUR,
    "under_1_day": times.DAY,
    "over_1_day": None,
}


class Summary(msgspec.Struct, frozen=True):
    """The numbers at one time. `accounts` and `domains` are the largest only; `reasons` of those that are due next."""

    at: int | None
    totals: Sequence[queue_views.Total]
    accounts: Sequence[queue_views.AccountTotal]
    names: Mapping[str, str]
    domains: Sequence[tuple[str, int]]
    reasons: Sequence[queue_views.ReasonTotal]
    holds: Sequence[stored_holds.Hold]
    providers: Sequence[mail_counts.ProviderTotal]
    recent: mail_counts.HourlyTotals
    # Recipients of the last day that were refused for our reputation, by provider.
    blocked: Mapping[str, int] = {}

    @property
    def recipients(self) -> int:
        return sum(total.recipients for total in self.totals)

    def of_selection(self, chosen: queue_views.Selection) -> int:
        """How many a selection has; 0 if it is not among the largest."""
        if chosen.account_id and chosen.domain:
            return 0
        if chosen.account_id:
            return sum(account.recipients for account in self.accounts if account.account_id == chosen.account_id)
        if chosen.domain:
            return sum(number for domain, number in self.domains if domain == chosen.domain)
        return self.recipients

    def by_state(self) -> dict[str, int]:
        return {
            state: sum(total.recipients for total in self.totals if total.state == state)
            for state in queue_views.STATES
        }

    def by_age(self) -> dict[str, int]:
        return {
            name: sum(total.recipients for total in self.totals if total.age == place)
            for place, name in enumerate(AGES)
        }


NOTHING: Final = Summary(None, (), (), {}, (), (), (), (), mail_counts.HourlyTotals(0))


def explain(total: queue_views.ReasonTotal) -> str:
    return reasons.explain(total.reason) if total.reason else "no attempt was made yet"


class QueueSummary:
    def __init__(self) -> None:
        self._flights = caches.SingleFlight(1, what="counts of the queue")
        self._valid_until = float("-inf")
        self._takes_long = False
        # The numbers of the last count; None while there are none yet.
        self.last: Summary | None = None

    async def read(self, ctx: context.Context) -> Summary | None:
        """New numbers, if they are there within a moment; else the last ones, or None while there are none yet.

        Where the last count took longer than that, nobody waits for the next one.
        """
        if time.monotonic() < self._valid_until:
            return self.last
        if self._takes_long:
            self._flights.start("count", lambda: self._count(ctx))
        else:
            counting = asyncio.ensure_future(self._flights.join("count", lambda: self._count(ctx)))
            done, _ = await asyncio.wait([counting], timeout=WAIT_SECONDS)
            if done:
                return counting.result()
            counting.cancel()  # the count itself goes on
        return self.last

    async def close(self) -> None:
        await self._flights.cancel()

    async def _count(self, ctx: context.Context) -> Summary:
        began = time.monotonic()
        self.last = await _count_summary(ctx)
        now = time.monotonic()
        self._takes_long = now - began > WAIT_SECONDS
        self._valid_until = now + max(MIN_REFRESH_SECONDS, REST_FACTOR * (now - began))
        return self.last


async def _count_summary(ctx: context.Context) -> Summary:
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        totals = await queue_views.totals(tx, [now - age for age in AGES.values() if age is not None])
        largest = await queue_views.largest_accounts(tx, limit=LARGEST)
        found = [await accounts.by_id(tx, account.account_id) for account in largest]
        domains = await queue_views.domains(tx, queue_views.Filter(), limit=LARGEST)
        causes = await queue_views.due_reasons(tx, examined=SAMPLE)
        held = await stored_holds.holds_in_force(tx)
        hour = mail_counts.hour_of(now)
        providers = await mail_counts.hourly_by_provider(tx, from_hour=hour - 1)
        first = hour - RECENT_HOURS
        recent = mail_counts.HourlyTotals(first, await mail_counts.hourly_of_all(tx, from_hour=first))
        blocked = await mail_counts.failures_by_provider(tx, reasons.BLOCKED, since_hour=hour - DAY_HOURS + 1)
    names = {account.id: account.name for account in found if account is not None}
    return Summary(now, totals, largest, names, domains, causes, list(held.values()), providers, recent, blocked)


Action = Literal["retry", "cancel", "expire"]
# Rows of a step: some tens of milliseconds of the writer's time when all are changed.
EXAMINED: Final = 500
# Rows of a step that only counts, and for how long a count goes on: a response may take 300 ms.
COUNTED: Final = 2_000
COUNT_SECONDS: Final = 0.15
_ACTIONS: Final[Mapping[Action, tuple[str, str]]] = {
    "retry": ("message.retried", "queue.retried"),
    "cancel": ("message.canceled", "queue.canceled"),
    "expire": ("message.expired", "queue.expired"),
}


async def start(
    ctx: context.Context, jobs: operator_jobs.Jobs, action: Action, chosen: queue_views.Selection
) -> stored_jobs.Job:
    return await jobs.start(ctx, f"queue.{action}", holds.scope(chosen), functools.partial(_walk, ctx, action, chosen))


async def select(
    ctx: context.Context, *, account_id: str | None, domain: str | None, everything: bool | None
) -> queue_views.Selection:
    """A selection. Exactly one kind is required, so that no selection never means the whole queue."""
    if bool(everything) == (account_id is not None or domain is not None):
        raise errors.InvalidRequest("all: give account_id, domain or both, or all alone")
    return await narrow(ctx, account_id=account_id, domain=domain)


async def narrow(ctx: context.Context, *, account_id: str | None, domain: str | None) -> queue_views.Selection:
    """The part of the queue that belongs to an account that exists, and goes to a domain; None stands for all."""
    return queue_views.Selection(
        "" if account_id is None else (await account_registry.find(ctx, account_id)).id,
        "" if domain is None else labels.parse_domain("domain", domain),
    )


async def count(
    ctx: context.Context, summary: QueueSummary, action: Action, chosen: queue_views.Selection
) -> tuple[int, bool]:
    """How many recipients a selection has that can be changed, and whether all rows were examined in time.

    Otherwise it is the number of the last count in the background, if that is larger, whatever their state.
    """
    number, is_complete = await _count(ctx, action, chosen)
    if not is_complete and (known := summary.last) is not None:
        number = max(number, known.of_selection(chosen))
    return number, is_complete


async def _count(ctx: context.Context, action: Action, chosen: queue_views.Selection) -> tuple[int, bool]:
    found, after = 0, queue_views.WALK_START
    until = time.monotonic() + COUNT_SECONDS
    while time.monotonic() < until:
        async with ctx.store.scanning() as tx:
            some, place = await queue_views.walk_step(
                tx, chosen, after=after, examined=COUNTED, only_waiting=action == "retry"
            )
        found += len(some)
        if place is None:
            return found, True
        after = place
    return found, False


async def _walk(
    ctx: context.Context, action: Action, chosen: queue_views.Selection, report: operator_jobs.Report
) -> dict[str, int]:
    changed: Counter[str] = Counter()
    examined, after = 0, queue_views.WALK_START
    of_account, of_installation = _ACTIONS[action]
    try:
        while True:
            async with ctx.store.scanning() as tx:
                some, place = await queue_views.walk_step(
                    tx, chosen, after=after, examined=EXAMINED, only_waiting=action == "retry"
                )
            for account_id, number in (await _change(ctx, action, some)).items():
                changed[account_id] += number
            if place is None:
                break
            examined, after = examined + EXAMINED, place
            await report(examined, {"changed": changed.total()})
    finally:
        ctx.mail_wakeup.set()
        await queue_inspection.write_audit_log(ctx, of_account, changed)
        async with ctx.store.transaction() as tx:
            number = changed.total()
            subject = f"{number} recipient" if number == 1 else f"{number} recipients"
            await audit_log.write(ctx, tx, audit_log.INSTALLATION, of_installation, subject, holds.scope(chosen))
    return {"changed": changed.total()}


async def _change(
    ctx: context.Context, action: Action, some: Sequence[queue_views.UnleasedRecipient]
) -> Mapping[str, int]:
    """Change what can be changed, account by account; returns how many of each."""
    by_account: dict[str, list[queue_views.UnleasedRecipient]] = {}
    for recipient in some:
        by_account.setdefault(recipient.account_id, []).append(recipient)
    changed = {}
    for account_id, own in by_account.items():
        if action == "cancel":
            changed[account_id] = await queue_changes.cancel_unleased(ctx, own)
        elif action == "expire":
            changed[account_id] = await queue_changes.expire_unleased(ctx, own)
        else:
            async with ctx.store.transaction() as tx:
                keys = [row.key for row in own]
                changed[account_id] = await queue_views.make_named_ready(tx, keys, now=ctx.clock())
    return changed
