"""The queue: what waits and why, and the two things to do about it, to try at once or to give up.

Operators see all of it; an account sees its own messages, and may have them tried at once, with a pause after each
attempt. An attempt that is asked for takes no step of the schedule: whoever is impatient loses no mail.

Neither touches what is under a lease: a worker is sending it right now, and records the result. Both work in batches,
each a transaction of its own, so that mail goes on meanwhile.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad import errors
from postroad.model import cursors, identifiers, limits, providers, times
from postroad.model.bounces import disposition
from postroad.protocol import address
from postroad.services import audit_log, context
from postroad.services.queue import wait_reasons
from postroad.services.results import outcomes
from postroad.storage import (
    accounts,
    async_bounces,
    attempts,
    messages,
    provider_queues,
    queue,
    queue_views,
    recipients,
    store,
)

TOP_DOMAINS: Final = 10
BATCH: Final = 500
# Five million recipients; whoever has more calls again.
MAX_BATCHES: Final = 10_000
CANCELLED: Final = "cancelled by the operator"
# From an attempt to one that an account asks for: a destination that is hammered blames the host, and all who use it.
MIN_RETRY_INTERVAL_SECONDS: Final = 30
# Workers repeat what they tell at least twice in this time.
ALIVE_MICROSECONDS: Final = 90_000_000


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A recipient in the queue, and why it is there."""

    waiting: queue_views.QueuedRecipient
    pool: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The oldest recipients of a choice, and how much there is of it."""

    now: int
    entries: list[QueueEntry]
    counts: Mapping[str, queue_views.Count]
    domains: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class RecipientTrace:
    """What is known of one recipient: its line while it is in the queue, how it stands, and what was tried."""

    recipient: recipients.Recipient
    line: QueueEntry | None
    why: str
    attempts: list[attempts.Attempt]
    late_bounces: list[async_bounces.LateBounce]


@dataclass(frozen=True, slots=True)
class MessageTrace:
    """What is known of a message, or of one of its recipients."""

    now: int
    message: messages.Message
    courses: list[RecipientTrace]


@dataclass(frozen=True, slots=True)
class QueueChange:
    """How many recipients were changed, and how many were left alone because they are being sent."""

    changed: int
    held: int


def domain(text: str) -> str:
    """A recipients' domain as the queue has it."""
    try:
        return address.parse_domain(text)
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"domain: {problem}") from None


async def filter_by_id(ctx: context.Context, text: str) -> queue_views.Filter:
    """The choice of what a message's or a recipient's id names, in whatever account."""
    async with ctx.store.scanning() as tx:
        if identifiers.is_identifier(text, identifiers.MESSAGE):
            account_id = await async_bounces.account_of(tx, text)
            if account_id is not None:
                return queue_views.Filter(account_id=account_id, message_id=text)
        elif identifiers.is_identifier(text, identifiers.RECIPIENT):
            # A message is as old as its first recipient, and the others follow by a microsecond each.
            made_at = int(text.removeprefix(identifiers.RECIPIENT)[:14], 16)
            found = await queue_views.locate(
                tx,
                text,
                from_message=cursors.at(identifiers.MESSAGE, max(0, made_at - limits.UNIQUE_RECIPIENTS)),
                to_message=cursors.at(identifiers.MESSAGE, made_at + 1),
            )
            if found is not None:
                return queue_views.Filter(account_id=found[0], message_id=found[1], recipient_id=text)
        else:
            raise errors.InvalidRequest(f"{text!r} is not the id of a message (em_…) or of a recipient (rcp_…)")
    raise errors.NotFound(f"there is no message or recipient {text}")


async def overview(ctx: context.Context, chosen: queue_views.Filter, *, state: str | None, limit: int) -> Overview:
    """What waits."""
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        page = await queue_views.page(tx, chosen, state=state, limit=limit)
        counts = await queue_views.counts(tx, chosen)
        domains = await queue_views.domains(tx, chosen, limit=TOP_DOMAINS)
        told = wait_reasons.worst_statuses(await provider_queues.heard_since(tx, now - ALIVE_MICROSECONDS))
    return Overview(now, [line(ctx, row, told, now=now) for row in page], counts, domains)


async def trace(ctx: context.Context, text: str) -> MessageTrace:
    """Everything about a message, or about one recipient of it."""
    chosen = await filter_by_id(ctx, text)
    account_id, message_id = str(chosen.account_id), str(chosen.message_id)
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        message = await messages.by_id(tx, account_id, message_id)
        known = await recipients.of_message(tx, account_id, message_id)
        rows = await queue_views.page(tx, chosen, state=None, limit=limits.UNIQUE_RECIPIENTS)
        tried = await attempts.of_message(tx, account_id, message_id)
        reports = await async_bounces.of_message(tx, account_id, message_id)
        told = wait_reasons.worst_statuses(await provider_queues.heard_since(tx, now - ALIVE_MICROSECONDS))
    if message is None:  # gone between the two looks
        raise errors.NotFound(f"there is no message {message_id}")
    lines = {row.recipient_id: line(ctx, row, told, now=now) for row in rows}
    courses = []
    for recipient in known:
        if chosen.recipient_id in {None, recipient.id}:
            waits = lines.get(recipient.id)
            courses.append(
                RecipientTrace(
                    recipient,
                    waits,
                    waits.why if waits else wait_reasons.explain_final(recipient),
                    [attempt for attempt in tried if attempt.recipient_id == recipient.id],
                    [report for report in reports if report.recipient_id == recipient.id],
                )
            )
    return MessageTrace(now, message, courses)


async def count(ctx: context.Context, choices: Sequence[queue_views.Filter]) -> QueueChange:
    """How many recipients choices mean: those that can be changed, and those that are being sent."""
    changeable = held = 0
    async with ctx.store.scanning() as tx:
        for chosen in choices:
            for state, found in (await queue_views.counts(tx, chosen)).items():
                changeable += found.recipients if state != queue_views.SENDING else 0
                held += found.recipients if state == queue_views.SENDING else 0
    return QueueChange(changeable, held)


async def retry(ctx: context.Context, choices: Sequence[queue_views.Filter]) -> QueueChange:
    """Let those that wait for their next attempt be tried now."""
    held = (await count(ctx, choices)).held
    changed: Counter[str] = Counter()
    for account_id, chosen in await _by_account(ctx, choices):
        for _ in range(MAX_BATCHES):
            async with ctx.store.transaction() as tx:
                some = await queue_views.make_ready(tx, chosen, now=ctx.clock(), limit=BATCH)
            changed[account_id] += some
            if some < BATCH:
                break
    ctx.mail_wakeup.set()
    await _write_audit_log(ctx, "message.retried", changed)
    return QueueChange(changed.total(), held)


async def retry_of_account(
    ctx: context.Context, account_id: str, message_id: str, recipient_id: str | None
) -> QueueChange:
    """Let an account's own message be tried now, or one recipient of it.

    Raises Conflict when nothing of it waits, and RateLimited when all that waits was tried a moment ago.
    """
    if not identifiers.is_identifier(message_id, identifiers.MESSAGE):
        raise _unknown_message()
    async with ctx.store.transaction() as tx:
        known = {recipient.id for recipient in await recipients.of_message(tx, account_id, message_id)}
        if not known:
            raise _unknown_message()
        if recipient_id is not None and recipient_id not in known:
            raise errors.NotFound("recipient_id: the message has no such recipient")
        rows = await queue_views.of_message(tx, account_id, message_id)
        chosen = [row for row in rows if recipient_id in {None, row.recipient_id}]
        held = sum(row.state == queue_views.SENDING for row in chosen)
        waiting = [row.recipient_id for row in chosen if row.state == queue_views.WAITING]
        now = ctx.clock()
        keys = [(account_id, message_id, one) for one in waiting]
        changed = await queue_views.make_named_ready(tx, await _rested(ctx, tx, keys, now=now), now=now)
        if not changed:
            raise errors.Conflict(
                "nothing waits: what is not final yet is being sent, or is about to be; look again in a moment"
                if rows
                else "nothing waits: every recipient has its final result; send the message again instead"
            )
        await audit_log.write(ctx, tx, account_id, "message.retried", message_id)
    ctx.mail_wakeup.set()
    return QueueChange(changed, held)


async def _rested(
    ctx: context.Context, tx: store.Transaction, waiting: Sequence[queue.Key], *, now: int
) -> list[queue.Key]:
    """Of waiting recipients of one message those whose last attempt is long enough ago. RateLimited when none is."""
    if not waiting:
        return []
    # In the order of time, so that the last one of each stays.
    tried = await attempts.of_message(tx, *waiting[0][:2])
    ended = {one.recipient_id: one.started_at + one.duration for one in tried}
    # Half of the first delay at most: where delays are seconds, the first wait leaves time to ask as well.
    pause = min(MIN_RETRY_INTERVAL_SECONDS, ctx.settings.delivery.retry_seconds[0] // 2)
    left = {key: ended.get(key[2], 0) + pause * times.SECOND - now for key in waiting}
    rested = [key for key in waiting if left[key] <= 0]
    if not rested:
        raise errors.RateLimited(
            f"this was tried a moment ago; wait {'a second' if pause == 1 else f'{pause} seconds'} after an attempt",
            retry_after=max(1, math.ceil(min(left.values()) / times.SECOND)),
        )
    return rested


async def entries_of_message(ctx: context.Context, account_id: str, message_id: str) -> dict[str, QueueEntry]:
    """What of an account's own message is still in the queue, by recipient; nothing of one that is unknown to it."""
    if not identifiers.is_identifier(message_id, identifiers.MESSAGE):
        return {}
    now = ctx.clock()
    async with ctx.store.reading() as tx:
        rows = await queue_views.of_message(tx, account_id, message_id)
        told = (
            wait_reasons.worst_statuses(await provider_queues.heard_since(tx, now - ALIVE_MICROSECONDS)) if rows else {}
        )
    return {row.recipient_id: account_entry(ctx, row, told, now=now) for row in rows}


async def cancel(ctx: context.Context, choices: Sequence[queue_views.Filter]) -> QueueChange:
    """End recipients as failed; credits and messages follow as they do after the last attempt."""
    changed: Counter[str] = Counter()
    for account_id, chosen in await _by_account(ctx, choices):
        for _ in range(MAX_BATCHES):
            async with ctx.store.scanning() as tx:
                some = await queue_views.free(tx, chosen, limit=BATCH)
            cancelled = await _cancel(ctx, some) if some else 0
            changed[account_id] += cancelled
            if not cancelled:
                break
    await _write_audit_log(ctx, "message.cancelled", changed)
    return QueueChange(changed.total(), (await count(ctx, choices)).held)


async def _by_account(
    ctx: context.Context, choices: Sequence[queue_views.Filter]
) -> list[tuple[str, queue_views.Filter]]:
    """The choices, each for one account: every account is told what was done to its mail."""
    async with ctx.store.scanning() as tx:
        return [
            (account_id, msgspec.structs.replace(chosen, account_id=account_id))
            for chosen in choices
            for account_id in await queue_views.accounts(tx, chosen)
        ]


async def _write_audit_log(ctx: context.Context, action: str, changed: Mapping[str, int]) -> None:
    """One entry for each account, whatever number of transactions it took."""
    told = sorted((account_id, number) for account_id, number in changed.items() if number)
    if not told:
        return
    async with ctx.store.transaction() as tx:
        for account_id, number in told:
            subject = "1 recipient" if number == 1 else f"{number} recipients"
            await audit_log.write(ctx, tx, account_id, action, subject)


async def _cancel(ctx: context.Context, some: Sequence[queue_views.UnleasedRecipient]) -> int:
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        # In the order of everybody who records results: first the accounts.
        await accounts.lock(tx, {one.account_id for one in some})
        free = await queue_views.still_free(tx, [one.key for one in some])
        if free:
            await outcomes.record(tx, [[_outcome(ctx, one, now=now) for one in free]], outbox=ctx.outbox)
    return len(free)


def _outcome(ctx: context.Context, one: queue_views.UnleasedRecipient, *, now: int) -> outcomes.Outcome:
    return outcomes.Outcome(
        key=one.key,
        email_key=one.email_key,
        recipient_count=0,
        verdict=disposition.Verdict.FAILED,
        smtp_code=None,
        response=CANCELLED,
        at=now,
        ledger_id=ctx.new_id(identifiers.LEDGER, now=now),
        worker="",
    )


def line(
    ctx: context.Context, row: queue_views.QueuedRecipient, told: Mapping[str, provider_queues.Pool], *, now: int
) -> QueueEntry:
    """A row of the queue for operators; `told` is how pools stand."""
    pool = _provider_queue(ctx, row, told)
    return QueueEntry(row, pool, wait_reasons.why(row, told.get(pool or ""), now=now))


def account_entry(
    ctx: context.Context, row: queue_views.QueuedRecipient, told: Mapping[str, provider_queues.Pool], *, now: int
) -> QueueEntry:
    """The same for people of the account, who see nothing of hosts and of others' mail."""
    pool = _provider_queue(ctx, row, told)
    return QueueEntry(row, pool, wait_reasons.explain_to_account(row, told.get(pool or ""), now=now))


def _provider_queue(
    ctx: context.Context, row: queue_views.QueuedRecipient, told: Mapping[str, provider_queues.Pool]
) -> str | None:
    """Before the first attempt a pool is known only where all mail goes the same way."""
    one_way = ctx.settings.delivery.smarthost or providers.SMARTHOST in told
    return row.pool or (providers.SMARTHOST if one_way else None)


def _unknown_message() -> errors.NotFound:
    return errors.NotFound("there is no such message in this account")
