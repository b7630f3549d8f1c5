"""Inspection of the queue: what waits and what keeps it back, and the two actions, retry and cancel."""

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import config, context, errors
from postroad.model.delivery import providers
from postroad.model.mail import limits
from postroad.model.units import identifiers, times
from postroad.services import audit_log, usage_limits
from postroad.services.messages import queue_changes
from postroad.services.queue import sources, wait_reasons
from postroad.storage.engine import store
from postroad.storage.mail import attempts as stored_async_bounces
from postroad.storage.mail import delivery_controls as stored_holds
from postroad.storage.mail import messages, queue, queue_views
from postroad.storage.operations import processes
from postroad.storage.people import accounts

# Workers report at least twice in this time.
ALIVE_MICROSECONDS: Final = 90_000_000


class Conditions(msgspec.Struct, frozen=True):
    """The status of provider queues that are not open, by name, the holds in force, and the states of sources."""

    statuses: Mapping[str, processes.QueueStatus]
    holds: stored_holds.Holds
    sources: Sequence[stored_holds.SourceState] = ()

    def status(self, settings: config.Settings, queue_key: str, provider_queue: str) -> processes.QueueStatus | None:
        """What keeps a scheduled queue back, if anything does."""
        status = self.statuses.get(provider_queue)
        if not self.sources or queue.simulation_of(queue_key) is not None:
            return status
        provider = providers.label_of(provider_queue) if provider_queue else ""
        pool = sources.pool_of(settings, queue_key, provider or None)
        stopped = sources.stopped(settings, self.sources, pool=pool, provider=provider)
        if stopped is None:
            return status
        reason = f"no source address of pool {pool} may send now ({stopped.source}: {stopped.reason})"
        until = stopped.until or stopped.set_at
        return processes.QueueStatus("", provider_queue, wait_reasons.NO_SOURCE, reason, until, stopped.set_at)


async def conditions(ctx: context.Context) -> Conditions:
    async with ctx.store.reading() as tx:
        return await read_conditions(ctx, tx, now=ctx.clock())


async def read_conditions(ctx: context.Context, tx: store.Transaction, *, now: int) -> Conditions:
    reported = await processes.queues_since(tx, now - ALIVE_MICROSECONDS)
    changed = stored_holds.overrides_in_force(await stored_holds.listed_overrides(tx), now=now)
    paused = [
        processes.QueueStatus(
            "",
            override.name,
            wait_reasons.PAUSED_BY_OPERATOR,
            override.pause_reason,
            override.pause_until or now,
            override.set_at,
        )
        for override in changed.values()
        if override.paused
    ]
    states = await stored_holds.listed_source_states(tx) if ctx.settings.sources else []
    return Conditions(
        wait_reasons.worst_statuses([*reported, *paused]),
        await stored_holds.holds_in_force(tx),
        stored_holds.source_states_in_force(states, now=now),
    )


TOP_DOMAINS: Final = 10
BATCH: Final = 500
# Five million recipients; for more, call again.
MAX_BATCHES: Final = 10_000
# Between an attempt and one that an account requests: a destination that is hammered blames the host and all its users.
MIN_RETRY_INTERVAL_SECONDS: Final = 30


class QueueEntry(msgspec.Struct, frozen=True):
    """A recipient in the queue, and why it is waiting."""

    waiting: queue_views.QueuedRecipient
    provider_queue: str | None
    reason: wait_reasons.WaitReason

    @property
    def why(self) -> str:
        """The reason in one sentence, with the next attempt and the recipients ahead."""
        return self.reason.sentence


class Overview(msgspec.Struct, frozen=True):
    now: int
    entries: list[QueueEntry]
    counts: Mapping[str, queue_views.Count]
    domains: list[tuple[str, int]]
    holds: list[stored_holds.Hold]


class RecipientTrace(msgspec.Struct, frozen=True):
    """One recipient: its queue entry while it has one, its status and its attempts."""

    recipient: messages.Recipient
    line: QueueEntry | None
    why: str
    attempts: list[stored_async_bounces.Attempt]
    async_bounces: list[stored_async_bounces.AsyncBounce]


class MessageTrace(msgspec.Struct, frozen=True):
    """A message, or one of its recipients, with everything known of it."""

    now: int
    message: messages.Message
    courses: list[RecipientTrace]


class QueueChange(msgspec.Struct, frozen=True):
    """How many recipients were changed, and how many were skipped because they are being sent."""

    changed: int
    held: int


async def filter_by_id(ctx: context.Context, text: str) -> queue_views.Filter:
    """The filter for a message's or a recipient's id, in any account."""
    async with ctx.store.scanning() as tx:
        if identifiers.is_identifier(text, identifiers.MESSAGE):
            account_id = await messages.account_of(tx, text)
            if account_id is not None:
                return queue_views.Filter(account_id=account_id, message_id=text)
        elif identifiers.is_identifier(text, identifiers.RECIPIENT):
            # A message is as old as its first recipient, and the others follow by a microsecond each.
            made_at = int(text.removeprefix(identifiers.RECIPIENT)[:14], 16)
            found = await queue_views.locate(
                tx,
                text,
                from_message=identifiers.at(identifiers.MESSAGE, max(0, made_at - limits.UNIQUE_RECIPIENTS)),
                to_message=identifiers.at(identifiers.MESSAGE, made_at + 1),
            )
            if found is not None:
                return queue_views.Filter(account_id=found[0], message_id=found[1], recipient_id=text)
        else:
            raise errors.InvalidRequest(f"{text!r} is not the id of a message (em_…) or of a recipient (rcp_…)")
    raise errors.NotFound(f"no such message or recipient: {text}")


async def overview(ctx: context.Context, chosen: queue_views.Filter, *, state: str | None, limit: int) -> Overview:
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        page = await queue_views.page(tx, chosen, state=state, limit=limit)
        counts = await queue_views.counts(tx, chosen)
        domains = await queue_views.domains(tx, chosen, limit=TOP_DOMAINS)
        current = await read_conditions(ctx, tx, now=now)
    entries = [line(ctx, row, current, now=now) for row in page]
    return Overview(now, entries, counts, domains, list(current.holds.values()))


async def trace(ctx: context.Context, text: str) -> MessageTrace:
    chosen = await filter_by_id(ctx, text)
    account_id, message_id = str(chosen.account_id), str(chosen.message_id)
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        message = await messages.by_id(tx, account_id, message_id)
        known = await messages.recipients(tx, account_id, message_id)
        rows = await queue_views.page(tx, chosen, state=None, limit=limits.UNIQUE_RECIPIENTS)
        tried = await stored_async_bounces.of_message(tx, account_id, message_id)
        reports = await stored_async_bounces.async_bounces(tx, account_id, message_id)
        current = await read_conditions(ctx, tx, now=now)
        ahead = await _ahead(tx, account_id, message_id)
    if message is None:  # gone between the two reads
        raise errors.NotFound(f"no such message: {message_id}")
    lines = {row.recipient_id: line(ctx, row, current, now=now, ahead=ahead.get(row.queue_key)) for row in rows}
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
    """How many recipients the filters select: those that can be changed, and those being sent."""
    changeable = held = 0
    async with ctx.store.scanning() as tx:
        for chosen in choices:
            for state, found in (await queue_views.counts(tx, chosen)).items():
                changeable += found.recipients if state != queue_views.SENDING else 0
                held += found.recipients if state == queue_views.SENDING else 0
    return QueueChange(changeable, held)


async def retry(ctx: context.Context, choices: Sequence[queue_views.Filter]) -> QueueChange:
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
    await write_audit_log(ctx, "message.retried", changed)
    return QueueChange(changed.total(), held)


async def retry_of_account(
    ctx: context.Context, account_id: str, message_id: str, recipient_id: str | None
) -> QueueChange:
    """Retry an account's own message, or one recipient of it.

    Raises Conflict when nothing of it waits, and RateLimited when everything waiting was attempted a moment ago, or
    when the account retries too fast.
    """
    if not identifiers.is_identifier(message_id, identifiers.MESSAGE):
        raise _unknown_message()
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [account_id])
        known = {recipient.id for recipient in await messages.recipients(tx, account_id, message_id)}
        if not known:
            raise _unknown_message()
        if recipient_id is not None and recipient_id not in known:
            raise errors.NotFound("recipient_id: no such recipient in this message")
        await usage_limits.take_repeat(ctx, tx, account_id, usage_limits.Repeat.RETRIES)
        rows = await queue_views.of_message(tx, account_id, message_id)
        chosen = [row for row in rows if recipient_id in {None, row.recipient_id}]
        held = sum(row.state == queue_views.SENDING for row in chosen)
        waiting = [row.recipient_id for row in chosen if row.state == queue_views.WAITING]
        now = ctx.clock()
        keys = [(account_id, message_id, waiting_id) for waiting_id in waiting]
        changed = await queue_views.make_named_ready(tx, await _rested(ctx, tx, keys, now=now), now=now)
        if not changed and any(row.state == queue_views.HELD for row in chosen):
            raise errors.Conflict("delivery is held by the operator of this service; it continues after the hold")
        if not changed and any(row.state == queue_views.SCHEDULED for row in chosen):
            raise errors.Conflict("the message is scheduled; change its send_at to send it earlier")
        if not changed:
            raise errors.Conflict(
                "no recipient is waiting: the rest is being sent or about to be; check again in a moment"
                if rows
                else "no recipient is waiting: all have a final result; send the message again instead"
            )
        await audit_log.write(ctx, tx, account_id, "message.retried", message_id)
    ctx.mail_wakeup.set()
    return QueueChange(changed, held)


async def _rested(
    ctx: context.Context, tx: store.Transaction, waiting: Sequence[queue.Key], *, now: int
) -> list[queue.Key]:
    """Waiting recipients whose last attempt is long enough ago. Raises RateLimited when there is none."""
    if not waiting:
        return []
    account_id, message_id, _ = waiting[0]
    ended = await stored_async_bounces.last_ends(tx, account_id, [message_id])
    pause = retry_interval(ctx)
    left = {key: ended.get(key[2], 0) + pause * times.SECOND - now for key in waiting}
    rested = [key for key in waiting if left[key] <= 0]
    if not rested:
        raise errors.RateLimited(
            f"this was attempted a moment ago; wait {'a second' if pause == 1 else f'{pause} seconds'} after an "
            "attempt",
            retry_after=max(1, math.ceil(min(left.values()) / times.SECOND)),
        )
    return rested


def retry_interval(ctx: context.Context) -> int:
    """The seconds between an attempt and one that an account requests."""
    # At most half of the first delay: where delays are seconds, the first wait leaves time for a retry too.
    return min(MIN_RETRY_INTERVAL_SECONDS, ctx.settings.delivery.retry_seconds[0] // 2)


async def entries_of_message(ctx: context.Context, account_id: str, message_id: str) -> dict[str, QueueEntry]:
    """The queue entries of an account's own message by recipient; empty for an unknown message."""
    if not identifiers.is_identifier(message_id, identifiers.MESSAGE):
        return {}
    now = ctx.clock()
    async with ctx.store.reading() as tx:
        rows = await queue_views.of_message(tx, account_id, message_id)
        if not rows:
            return {}
        current = await read_conditions(ctx, tx, now=now)
        ahead = await _ahead(tx, account_id, message_id)
    return {row.recipient_id: account_entry(ctx, row, current, now=now, ahead=ahead.get(row.queue_key)) for row in rows}


async def _ahead(tx: store.Transaction, account_id: str, message_id: str) -> dict[str, int]:
    """How many ready recipients precede a message in its scheduled queues: one more than is shown means "more"."""
    return await queue_views.ahead(tx, account_id, message_id, limit=wait_reasons.MAX_AHEAD + 1)


async def cancel(ctx: context.Context, choices: Sequence[queue_views.Filter]) -> QueueChange:
    """Fail recipients; credits and messages follow as after the last attempt."""
    changed: Counter[str] = Counter()
    for account_id, chosen in await _by_account(ctx, choices):
        for _ in range(MAX_BATCHES):
            async with ctx.store.scanning() as tx:
                some = await queue_views.unleased(tx, chosen, limit=BATCH)
            canceled = await queue_changes.cancel_unleased(ctx, some) if some else 0
            changed[account_id] += canceled
            if not canceled:
                break
    await write_audit_log(ctx, "message.canceled", changed)
    return QueueChange(changed.total(), (await count(ctx, choices)).held)


async def _by_account(
    ctx: context.Context, choices: Sequence[queue_views.Filter]
) -> list[tuple[str, queue_views.Filter]]:
    """The filters, split by account: each account's audit log records the change."""
    async with ctx.store.scanning() as tx:
        return [
            (account_id, msgspec.structs.replace(chosen, account_id=account_id))
            for chosen in choices
            for account_id in await queue_views.accounts(tx, chosen)
        ]


async def write_audit_log(ctx: context.Context, action: str, changed: Mapping[str, int]) -> None:
    """One entry for each account, whatever the number of transactions."""
    entries = sorted((account_id, number) for account_id, number in changed.items() if number)
    if not entries:
        return
    async with ctx.store.transaction() as tx:
        for account_id, number in entries:
            subject = "1 recipient" if number == 1 else f"{number} recipients"
            await audit_log.write(ctx, tx, account_id, action, subject)


def line(
    ctx: context.Context,
    row: queue_views.QueuedRecipient,
    current: Conditions,
    *,
    now: int,
    ahead: int | None = None,
) -> QueueEntry:
    """A queue row for operators; `current` is what keeps mail back."""
    entry = account_entry(ctx, row, current, now=now, ahead=ahead)
    status = current.status(ctx.settings, row.queue_key, entry.provider_queue or "")
    detail = wait_reasons.detail(row, status, now=now, hold=stored_holds.holds_covering(current.holds, row.queue_key))
    return msgspec.structs.replace(entry, reason=dataclasses.replace(entry.reason, detail=detail))


def account_entry(
    ctx: context.Context,
    row: queue_views.QueuedRecipient,
    current: Conditions,
    *,
    now: int,
    ahead: int | None = None,
) -> QueueEntry:
    """A queue row for users of the account, without hosts and details of others' mail."""
    provider_queue = _provider_queue(ctx, row)
    status = current.status(ctx.settings, row.queue_key, provider_queue or "")
    return QueueEntry(row, provider_queue, wait_reasons.explain(row, status, now=now, ahead=ahead))


def _provider_queue(ctx: context.Context, row: queue_views.QueuedRecipient) -> str | None:
    """The provider queue. Before the first attempt it is known only where all mail is routed the same way."""
    if queue.simulation_of(row.queue_key) is not None:
        return providers.SIMULATOR
    settings = ctx.settings
    only = settings.upstreams[0].provider_queue if settings.upstreams and not settings.routes else None
    return row.provider_queue or only


def _unknown_message() -> errors.NotFound:
    return errors.NotFound("no such message in this account")
