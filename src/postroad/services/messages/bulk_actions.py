"""Retry, cancel, resend and suppress what a search finds: the actions of single messages, for many.

The messages are selected first, so that their number is exact before anything changes; a search that finds too many, or
takes too long to answer, is refused. Then they are changed in small transactions. Every step leaves alone what is
changed already, so that the same request can be sent again. One audit log entry has the search and the counts; what is
sent again has one for each message.
"""

import dataclasses
import datetime as dt
import functools
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.delivery import providers
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.model.search import search_query
from postroad.model.units import times
from postroad.protocol.mime import address
from postroad.services import audit_log, throttled_batches, usage_limits
from postroad.services.messages import lookup, queue_changes, queue_inspection, resend
from postroad.services.suppressions import suppression_list as suppression_batches
from postroad.storage.engine import store
from postroad.storage.mail import attempts, messages, queue_views, suppressions
from postroad.storage.people import accounts

MAX_MESSAGES: Final = 10_000
# Each examines 10,000 entries, in about a tenth of a second; longer where messages have many recipients.
MAX_STEPS: Final = 50
MAX_SELECT_SECONDS: Final = 15.0
# Each is accepted as a new message is, under the rate of its sender; as many as may come at once by default.
MAX_RESENT: Final = 200
MAX_CONFIRMATION_AGE: Final = times.HOUR
# One transaction: some hundredths of a second of work, during which other writers wait.
STEP_MESSAGES: Final = 100
# A message may have 50.
STEP_RECIPIENTS: Final = 200
BULK: Final = usage_limits.WorkLimit("bulk actions", per_account=1, per_process=5, retry_seconds=5)
# Each holds 10,000 messages in memory.
SELECTIONS: Final = usage_limits.WorkLimit("counts for bulk actions", per_account=2, per_process=10, retry_seconds=5)
SUPPRESSION_REASON: Final = "suppressed by a bulk action"


class Action(StrEnum):
    RETRY = "retry"
    CANCEL = "cancel"
    RESEND = "resend"
    SUPPRESS = "suppress"


# The audit log action of each, and what is counted: one, and several.
_AUDITED: Final = {
    Action.RETRY: ("message.retried", ("recipient", "recipients")),
    Action.CANCEL: ("message.canceled", ("recipient", "recipients")),
    Action.SUPPRESS: ("suppression.added", ("address", "addresses")),
}
_STATE_TEXTS: Final = {
    queue_views.READY: "about to be sent",
    queue_views.SENDING: "being sent",
    queue_views.SCHEDULED: "scheduled for later",
    queue_views.HELD: "held by the operator",
}
TOO_SOON: Final = "attempted a moment ago"
FINAL_RESULT: Final = "with a final result"
BEGUN: Final = "attempted before"
NOT_FAILED: Final = "not failed"
SUPPRESSED: Final = "already suppressed"
RESENT: Final = "already resent"
# Why a message is not resent, by the error.
_REFUSALS: Final[dict[type[errors.PostroadError], str]] = {
    resend.NobodyFailed: NOT_FAILED,
    resend.Suppressed: "suppressed",
    resend.NotRetained: "no longer retained",
    errors.IdempotencyInProgress: "being resent",
    errors.InsufficientCredits: "without credits",
    errors.RateLimited: "over the rate limit",
    errors.Forbidden: "from a domain that cannot send",
}


class Report(msgspec.Struct):
    """How many recipients or addresses were changed, and how many were not, by reason."""

    changed: int = 0
    unchanged: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, changed: int, unchanged: Counter[str]) -> None:
        self.changed += changed
        self.unchanged.update(unchanged)


class Suppressible(msgspec.Struct):
    """The addresses of failed recipients that are not on the suppression list, and how many others there are."""

    rows: list[suppressions.Suppression] = msgspec.field(default_factory=list)
    suppressed: int = 0
    not_failed: int = 0


def filters_as_confirmed(
    ctx: context.Context, query: search_query.Query, *, confirmed_at: int, zone: dt.tzinfo
) -> lookup.Filters:
    """The filters of a search when somebody saw its count: ages are from then, and nothing newer is found."""
    if not ctx.clock() - MAX_CONFIRMATION_AGE <= confirmed_at <= ctx.clock():
        raise errors.Conflict("this confirmation is older than an hour; look at the list again and confirm once more")
    then = dataclasses.replace(ctx, clock=lambda: confirmed_at)
    filters = lookup.filters_of(then, query, zone=zone)
    return msgspec.structs.replace(filters, before=min(confirmed_at, filters.before or confirmed_at))


async def select(ctx: context.Context, account_id: str, filters: lookup.Filters) -> list[messages.Message]:
    """All messages that match. Raises Conflict when there are too many to work on, or to look through."""
    found: list[messages.Message] = []
    steps, ends_at = 0, time.monotonic() + MAX_SELECT_SECONDS
    with usage_limits.acquire(ctx, SELECTIONS, account_id):
        async for part in lookup.matches(ctx, account_id, filters):
            found += part
            steps += 1
            if len(found) > MAX_MESSAGES:
                raise errors.Conflict(
                    f"the search finds more than {MAX_MESSAGES:,} messages; narrow it, for example with after: and "
                    "before:"
                )
            if steps > MAX_STEPS or time.monotonic() > ends_at:
                raise errors.Conflict("the search takes too long to count; narrow it, for example with after:7d")
    return found


async def run(
    ctx: context.Context, account_id: str, action: Action, selected: Sequence[messages.Message], *, search: str
) -> Report:
    """Do it; `search` is for the audit log. What is done when a step fails stays done, and is in the audit log."""
    with usage_limits.acquire(ctx, BULK, account_id):
        report = Report()
        try:
            if action is Action.SUPPRESS:
                await _suppress(ctx, account_id, selected, report)
            else:
                await _change_queue(ctx, account_id, action, selected, report)
        finally:
            await _finish(ctx, account_id, action, report, search=search)
    return report


def waiting(selected: Sequence[messages.Message]) -> list[messages.Message]:
    """Those that can be retried or canceled: a recipient waits."""
    return [message for message in selected if message.status == statuses.MessageStatus.QUEUED]


async def resendable(
    ctx: context.Context, account_id: str, selected: Sequence[messages.Message]
) -> list[messages.Message]:
    """Those that have failed and were not resent yet."""
    failed = _failed(selected)
    async with ctx.store.scanning(account_id) as tx:
        resent = await messages.resends_of_messages(tx, account_id, [message.id for message in failed])
    return [message for message in failed if message.id not in resent]


def _failed(selected: Sequence[messages.Message]) -> list[messages.Message]:
    """Those with a final result that did not reach everybody."""
    return [
        message
        for message in selected
        if message.status in {statuses.MessageStatus.PARTIAL, statuses.MessageStatus.FAILED}
    ]


async def send_again(
    ctx: context.Context, who: callers.Caller, selected: Sequence[messages.Message], *, request_id: str
) -> Report:
    """Resend messages to the recipients that they did not reach: each once, however often this is called."""
    again = await resendable(ctx, who.account_id, selected)
    if len(again) > MAX_RESENT:
        raise errors.Conflict(
            f"the search finds {len(again):,} messages; at most {MAX_RESENT} can be resent at once; narrow it, for "
            "example with after: and before:"
        )
    with usage_limits.acquire(ctx, BULK, who.account_id):
        report = Report(unchanged=Counter({RESENT: len(_failed(selected)) - len(again)}))
        for message in again:
            try:
                accepted = await resend.resend(
                    ctx,
                    who,
                    message.id,
                    to=resend.Recipients.FAILED,
                    request_id=request_id,
                    # Of the message alone: two who do this at the same time send it once.
                    key=f"bulk {message.id}",
                )
            except errors.PostroadError as refusal:
                reason = next((text for kind, text in _REFUSALS.items() if isinstance(refusal, kind)), refusal.code)
                report.unchanged[reason] += 1
            else:
                report.add(int(not accepted.replayed), Counter({RESENT: int(accepted.replayed)}))
    return report


async def _change_queue(
    ctx: context.Context, account_id: str, action: Action, selected: Sequence[messages.Message], report: Report
) -> None:
    """Only messages that are not final are in the queue."""
    queued = waiting(selected)
    report.unchanged[FINAL_RESULT] = sum(
        message.recipient_count for message in selected if message.status != statuses.MessageStatus.QUEUED
    )
    if action is Action.RETRY and queued:
        # It counts as one of the account's retries: providers are protected by the pause after attempts.
        async with ctx.store.transaction() as tx:
            await accounts.lock(tx, [account_id])
            await usage_limits.take_repeat(ctx, tx, account_id, usage_limits.Repeat.RETRIES)
    step = _retry if action is Action.RETRY else _cancel
    for ids in steps(queued):
        work = functools.partial(step, ctx, account_id=account_id, message_ids=ids)
        report.add(*await throttled_batches.run_batch(ctx, work))


def steps(queued: Sequence[messages.Message]) -> Iterator[list[str]]:
    """The ids of messages that are changed in one transaction."""
    ids: list[str] = []
    reached = 0
    for message in queued:
        if ids and (len(ids) == STEP_MESSAGES or reached + message.recipient_count > STEP_RECIPIENTS):
            yield ids
            ids, reached = [], 0
        ids.append(message.id)
        reached += message.recipient_count
    if ids:
        yield ids


async def _retry(
    ctx: context.Context, tx: store.Transaction, *, account_id: str, message_ids: Sequence[str]
) -> tuple[int, Counter[str]]:
    await accounts.lock(tx, [account_id])
    now = ctx.clock()
    ended = await attempts.last_ends(tx, account_id, message_ids)
    rested_at = now - queue_inspection.retry_interval(ctx) * times.SECOND
    rested = []
    seen: Counter[str] = Counter()
    for message_id in message_ids:
        for row in await queue_views.of_message(tx, account_id, message_id):
            if row.state != queue_views.WAITING:
                seen[_STATE_TEXTS[row.state]] += 1
            elif ended.get(row.recipient_id, 0) > rested_at:
                seen[TOO_SOON] += 1
            else:
                rested.append((account_id, message_id, row.recipient_id))
    return await queue_views.make_named_ready(tx, rested, now=now) if rested else 0, seen


async def _cancel(
    ctx: context.Context, tx: store.Transaction, *, account_id: str, message_ids: Sequence[str]
) -> tuple[int, Counter[str]]:
    await accounts.lock(tx, [account_id])
    waiting = sum([len(await queue_views.of_message(tx, account_id, message_id)) for message_id in message_ids])
    canceled = await queue_changes.cancel_batch(ctx, tx, account_id, message_ids)
    return canceled, Counter({BEGUN: waiting - canceled})


async def _suppress(
    ctx: context.Context, account_id: str, selected: Sequence[messages.Message], report: Report
) -> None:
    await usage_limits.check_suppression_quota(ctx, account_id)
    found = await suppressible(ctx, account_id, selected)
    report.unchanged[NOT_FAILED] = found.not_failed
    added = await suppression_batches.add_in_batches(ctx, found.rows, audit_subject=None)
    report.add(added, Counter({SUPPRESSED: found.suppressed + len(found.rows) - added}))


async def suppressible(ctx: context.Context, account_id: str, selected: Sequence[messages.Message]) -> Suppressible:
    """The addresses that can be suppressed because mail to them failed."""
    found = Suppressible()
    failed: dict[str, suppressions.Suppression] = {}
    now = ctx.clock()
    with usage_limits.acquire(ctx, SELECTIONS, account_id):
        for first in range(0, len(selected), STEP_MESSAGES):
            ids = [message.id for message in selected[first : first + STEP_MESSAGES]]
            new: dict[str, suppressions.Suppression] = {}
            async with ctx.store.scanning(account_id) as tx:
                results = await messages.recipient_results(tx, account_id, ids)
                for result in (result for of_message in results.values() for result in of_message):
                    if result.status not in statuses.FAILURES:
                        found.not_failed += 1
                    elif (key := address.parse(result.email).key) not in failed:
                        row = (account_id, key, suppressions.Source.ACCOUNT, SUPPRESSION_REASON, result.last_smtp_code)
                        new.setdefault(key, suppressions.Suppression(*row, result.message_id, now))
                listed = await suppressions.find(tx, [(account_id, key) for key in new])
            failed.update(new)
            found.suppressed += len(listed)
            found.rows += [row for key, row in new.items() if (account_id, key) not in listed]
    found.rows.sort(key=lambda row: row.email_key)
    return found


async def _finish(ctx: context.Context, account_id: str, action: Action, report: Report, *, search: str) -> None:
    changed = report.changed
    if not changed:
        return
    name, (single, several) = _AUDITED[action]
    subject = f"{changed} {single if changed == 1 else several}"
    detail = f"{report.unchanged.total():,} not changed; search: {search or 'all messages'}"
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, account_id, name, subject, detail)
    if action is Action.RETRY:
        ctx.mail_wakeup.set()
    if action is Action.CANCEL:
        for _ in range(changed):
            ctx.metrics.recipients.add(providers.NO_PROVIDER, statuses.RecipientStatus.CANCELED.value)
        ctx.webhook_wakeup.set()
