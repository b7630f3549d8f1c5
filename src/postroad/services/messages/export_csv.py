"""The messages that a search finds as a CSV file (RFC 4180), newest first, one row for each recipient.

Streamed in steps of bounded size, each with transactions of its own, so that a million messages hold neither memory nor
the database. What is accepted after the export has begun is not in it. The listener disconnects a caller that does not
read at all (`write_seconds`); one that reads very slowly is ended here.
"""

import functools
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.bounces import reasons
from postroad.model.mail import statuses
from postroad.model.units import times
from postroad.protocol.text import csv_rows
from postroad.services import usage_limits
from postroad.services.messages import lookup
from postroad.storage.mail import messages as stored_messages

COLUMNS: Final = (
    "message_id",
    "accepted_at",
    "from",
    "to",
    "subject",
    "status",
    "cause",
    "reason",
    "code",
    "enhanced_code",
    "reply",
    "attempts",
    "finished_at",
    "source",
    "mode",
    "tags",
    "metadata",
)
# With 50 recipients each and replies of 2,000 characters, about 20 MB.
STEP_MESSAGES: Final = 200
# Each reads as fast as the database gives.
EXPORTS: Final = usage_limits.WorkLimit("exports of messages", per_account=2, per_process=10, retry_seconds=10)
# 128 kbit/s, slower than any usual connection, and some time for connections that stall.
MIN_OCTETS_PER_SECOND: Final = 16 * 1024
STALLED_SECONDS: Final = 60.0


class _Step(msgspec.Struct, frozen=True):
    messages: Sequence[stored_messages.Message]
    results: Mapping[str, list[stored_messages.RecipientResult]]
    tags: Mapping[tuple[str, str], set[str]]
    metadata: Mapping[str, str]


async def export(
    ctx: context.Context, account_id: str, filters: lookup.Filters, *, hides_content: bool = False
) -> AsyncGenerator[bytes, None]:
    """The file, with or without content."""
    with usage_limits.acquire(ctx, EXPORTS, account_id):
        yield csv_rows.lines([COLUMNS])
        left = STALLED_SECONDS
        async for part in lookup.matches(ctx, account_id, filters, limit=STEP_MESSAGES):
            if part:
                step = await _read(ctx, account_id, part)
                if hides_content:
                    hidden = [lookup.message_without_content(message) for message in part]
                    step = msgspec.structs.replace(step, messages=hidden, metadata={})
                # Thousands of rows take some hundredths of a second.
                lines = await ctx.threads.run(account_id, functools.partial(_lines, step))
                began = time.monotonic()
                yield lines
                left += len(lines) / MIN_OCTETS_PER_SECOND - (time.monotonic() - began)
                if left < 0:
                    raise errors.ServiceUnavailable("the export was read too slowly", retry_after=EXPORTS.retry_seconds)


async def _read(ctx: context.Context, account_id: str, part: Sequence[stored_messages.Message]) -> _Step:
    ids = [message.id for message in part]
    async with ctx.store.scanning(account_id) as tx:
        results = await stored_messages.recipient_results(tx, account_id, ids)
        tags = await stored_messages.tags(tx, [(account_id, message_id) for message_id in ids])
        metadata = await stored_messages.metadata(tx, account_id, ids)
    return _Step(part, results, tags, metadata)


def _lines(step: _Step) -> bytes:
    return csv_rows.lines(
        _cells(message, to, step) for message in step.messages for to in step.results.get(message.id, [])
    )


def _cells(message: stored_messages.Message, to: stored_messages.RecipientResult, step: _Step) -> tuple[str | int, ...]:
    known = reasons.REASONS.get(to.reason or "")
    finished_at = to.delivered_at or to.bounced_at
    return (
        message.id,
        times.to_wire(message.created_at),
        message.sender,
        to.email,
        message.subject,
        to.status,
        known.fault.value if known and known.fault else "",
        to.reason or "",
        "" if to.last_smtp_code is None else to.last_smtp_code,
        to.enhanced_code or "",
        to.last_smtp_response or "",
        to.attempt_count,
        "" if finished_at is None else times.to_wire(finished_at),
        message.source,
        statuses.Mode.TEST.value if message.is_test else statuses.Mode.LIVE.value,
        "; ".join(sorted(step.tags.get((message.account_id, message.id), ()))),
        step.metadata.get(message.id, ""),
    )
