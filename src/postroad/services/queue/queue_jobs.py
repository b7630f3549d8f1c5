"""Retry, cancel or expire what an operator selects of the queue of all accounts: a job in steps, so that mail goes on.

A step examines a bounded number of rows along the primary key, whatever the selection, and is one transaction. The
audit log gets one entry of the installation, and one of each account whose mail was changed, when the job ends.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from postroad import errors
from postroad.services import audit_log, context, operator_jobs
from postroad.services.accounts import registry
from postroad.services.queue import cancellation, inspection, queue_summary
from postroad.storage import operator_jobs as stored_jobs
from postroad.storage import queue, queue_views, queue_walks

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
    ctx: context.Context, jobs: operator_jobs.Jobs, action: Action, chosen: queue_walks.Selection
) -> stored_jobs.Job:
    """Start the job."""

    async def work(report: operator_jobs.Report) -> dict[str, int]:
        return await _walk(ctx, action, chosen, report)

    return await jobs.start(ctx, f"queue.{action}", scope(chosen), work)


async def select(
    ctx: context.Context, *, account_id: str | None, domain: str | None, everything: bool | None
) -> queue_walks.Selection:
    """A selection. Exactly one kind is required, so that no selection never means the whole queue."""
    if bool(everything) == (account_id is not None or domain is not None):
        raise errors.InvalidRequest("all: give account_id, domain or both, or all alone")
    return await narrow(ctx, account_id=account_id, domain=domain)


async def narrow(ctx: context.Context, *, account_id: str | None, domain: str | None) -> queue_walks.Selection:
    """The part of the queue that belongs to an account that exists, and goes to a domain; None stands for all."""
    return queue_walks.Selection(
        "" if account_id is None else (await registry.find(ctx, account_id)).id,
        "" if domain is None else inspection.domain(domain),
    )


async def count(
    ctx: context.Context, summary: queue_summary.QueueSummary, action: Action, chosen: queue_walks.Selection
) -> tuple[int, bool]:
    """How many recipients a selection has that can be changed, and whether all rows were examined in time.

    Otherwise it is the number of the last count in the background, if that is larger, whatever their state.
    """
    number, is_complete = await _count(ctx, action, chosen)
    if not is_complete and (known := summary.last) is not None:
        number = max(number, known.of_selection(chosen))
    return number, is_complete


async def _count(ctx: context.Context, action: Action, chosen: queue_walks.Selection) -> tuple[int, bool]:
    found, after = 0, queue_walks.START
    until = time.monotonic() + COUNT_SECONDS
    while time.monotonic() < until:
        async with ctx.store.scanning() as tx:
            some, place = await queue_walks.step(
                tx, chosen, after=after, examined=COUNTED, only_waiting=action == "retry"
            )
        found += len(some)
        if place is None:
            return found, True
        after = place
    return found, False


def scope(chosen: queue_walks.Selection) -> str:
    """A selection in words."""
    mail = f"mail to {chosen.domain}" if chosen.domain else "all mail"
    return f"{mail} of account {chosen.account_id}" if chosen.account_id else mail


async def _walk(
    ctx: context.Context, action: Action, chosen: queue_walks.Selection, report: operator_jobs.Report
) -> dict[str, int]:
    changed: Counter[str] = Counter()
    examined, after = 0, queue_walks.START
    of_account, of_installation = _ACTIONS[action]
    try:
        while True:
            async with ctx.store.scanning() as tx:
                some, place = await queue_walks.step(
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
        await inspection.write_audit_log(ctx, of_account, changed)
        async with ctx.store.transaction() as tx:
            number = changed.total()
            subject = f"{number} recipient" if number == 1 else f"{number} recipients"
            await audit_log.write(ctx, tx, audit_log.INSTALLATION, of_installation, subject, scope(chosen))
    return {"changed": changed.total()}


async def _change(
    ctx: context.Context, action: Action, some: Sequence[queue_views.UnleasedRecipient]
) -> Mapping[str, int]:
    """Change what can be changed, account by account; returns how many of each."""
    by_account: dict[str, list[queue_views.UnleasedRecipient]] = {}
    for one in some:
        by_account.setdefault(one.account_id, []).append(one)
    changed = {}
    for account_id, own in by_account.items():
        if action == "cancel":
            changed[account_id] = await cancellation.cancel_unleased(ctx, own)
        elif action == "expire":
            changed[account_id] = await cancellation.expire_unleased(ctx, own)
        else:
            changed[account_id] = await _make_ready(ctx, [one.key for one in own])
    return changed


async def _make_ready(ctx: context.Context, keys: Sequence[queue.Key]) -> int:
    async with ctx.store.transaction() as tx:
        return await queue_views.make_named_ready(tx, keys, now=ctx.clock())
