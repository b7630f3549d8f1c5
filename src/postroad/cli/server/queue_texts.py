"""The output of `postroad queue`, as text and as JSON."""

from typing import Final

from postroad.cli.framework import output
from postroad.model.bounces import disposition
from postroad.model.units import times
from postroad.services.messages import queue_inspection
from postroad.services.queue import holds, wait_reasons
from postroad.storage.mail import attempts, queue_views
from postroad.storage.mail import delivery_controls as stored_holds

View = dict[str, object]
TITLES = ("recipient", "address", "state", "attempts", "next attempt", "provider queue", "reason")
RECIPIENT: Final = "id email status billing_status attempt_count last_smtp_code last_smtp_response".split()
_MESSAGE: Final = (
    "id account_id source from subject status billing_status recipient_count size request_id created_at".split()
)
_ENTRY: Final = (
    "id message_id account_id email state attempt_count lost_leases queued_at next_attempt_at worker provider_queue "
    "last_smtp_code last_smtp_response reason ahead"
).split()
_ATTEMPT: Final = (
    "started_at duration_ms provider_queue host address tls source stage verdict fault reason explanation smtp_code "
    "enhanced_code response in_doubt"
).split()
# States whose next attempt has a time.
_LATER: Final = (queue_views.WAITING, queue_views.SCHEDULED)
_ASYNC_BOUNCE: Final = ("received_at", "action", "status", "fault", "response")


def overview(found: queue_inspection.Overview) -> str:
    """The list, with a summary below it."""
    rows = [
        (
            line.waiting.recipient_id,
            line.waiting.email,
            line.waiting.state,
            line.waiting.attempt_count,
            _next_attempt(line.waiting, now=found.now),
            line.provider_queue,
            _reason(line),
        )
        for line in found.entries
    ]
    total = sum(count.recipients for count in found.counts.values())
    held = "".join(
        f"\nHeld: {holds.scope(one)}, since {times.to_wire(one.held_at)}: {one.reason}." for one in found.holds
    )
    if not total:
        return f"The queue is empty.{held}"
    listed = output.table(TITLES, rows, empty="No recipients are in this state.")
    by_state = ", ".join(f"{_number(found, state)} {state}" for state in queue_views.STATES)
    oldest = min(count.queued_at for count in found.counts.values())
    busiest = ", ".join(f"{domain} {number}" for domain, number in found.domains)
    return (
        f"{listed}\n\n{output.recipients(total)}: {by_state}.\n"
        f"Oldest: queued at {times.to_wire(oldest)}, {times.relative_time(oldest, now=found.now)}.\n"
        f"Top domains: {busiest}{held}"
    )


def overview_view(found: queue_inspection.Overview) -> View:
    """The same as JSON."""
    oldest = min((count.queued_at for count in found.counts.values()), default=None)
    return {
        "recipients": [_entry_view(line) for line in found.entries],
        "counts": {state: _number(found, state) for state in queue_views.STATES},
        "oldest_queued_at": times.optional_to_wire(oldest),
        "domains": [{"domain": domain, "recipients": number} for domain, number in found.domains],
        "holds": [hold_view(one) for one in found.holds],
    }


def hold_view(hold: stored_holds.Hold) -> View:
    """A hold as JSON; null stands for all."""
    return times.wire_fields(
        hold,
        ("account_id", "domain", "reason", "held_at"),
        account_id=hold.account_id or None,
        domain=hold.domain or None,
    )


def trace(found: queue_inspection.MessageTrace) -> str:
    """A message with its recipients and their attempts."""
    message = found.message
    head = (
        f"Message {message.id} of account {message.account_id}\n"
        f"  from {message.sender}, {message.subject!r}, {message.size} bytes, by {message.source}\n"
        f"  accepted at {times.to_wire(message.created_at)}, "
        f"{times.relative_time(message.created_at, now=found.now)}; "
        f"{message.status}, {output.recipients(message.recipient_count)}; "
        f"request {message.request_id}"
    )
    return "\n\n".join([head, *(_recipient_trace(recipient_trace) for recipient_trace in found.courses)])


def trace_view(found: queue_inspection.MessageTrace) -> View:
    """The same as JSON."""
    message = found.message
    return {
        "message": times.wire_fields(message, _MESSAGE, **{"from": message.sender}),
        "recipients": [_recipient_trace_view(recipient_trace) for recipient_trace in found.courses],
    }


def _number(found: queue_inspection.Overview, state: str) -> int:
    return found.counts[state].recipients if state in found.counts else 0


def _reason(line: queue_inspection.QueueEntry) -> str:
    """The last reply says most, unless the recipient is held."""
    row = line.waiting
    reply = wait_reasons.last_response(row.last_smtp_code, row.last_smtp_response)
    return line.why if row.state == queue_views.HELD else reply or line.why


def _next_attempt(row: queue_views.QueuedRecipient, *, now: int) -> str:
    if row.state == queue_views.HELD:
        return "after the hold"
    if row.state not in _LATER:
        return "now"
    return f"{times.to_wire(row.due_at)} ({times.relative_time(row.due_at, now=now)})"


def _entry_view(line: queue_inspection.QueueEntry) -> View:
    row = line.waiting
    return times.wire_fields(
        row,
        _ENTRY,
        id=row.recipient_id,
        next_attempt_at=times.optional_to_wire(line.reason.next_attempt_at),
        provider_queue=line.provider_queue,
        reason={"code": line.reason.code, "text": line.why},
        ahead=line.reason.ahead,
    )


def _recipient_trace(recipient_trace: queue_inspection.RecipientTrace) -> str:
    recipient = recipient_trace.recipient
    lines = [
        f"{recipient.id} {recipient.email}: {recipient.status}",
        f"  {recipient_trace.why}",
    ]
    if recipient_trace.line and recipient_trace.line.waiting.lost_leases:
        lines.append(
            f"  lease lost during an attempt ({recipient_trace.line.waiting.lost_leases} times): "
            "the message may have been delivered twice"
        )
    for number, attempt in enumerate(recipient_trace.attempts, start=1):
        lines += _attempt(number, attempt)
    lines += [
        f"  asynchronous bounce at {times.to_wire(report.received_at)}: {f'{report.action} {report.status}'.strip()}, "
        f"{wait_reasons.shortened(report.response)}"
        for report in recipient_trace.async_bounces
    ]
    return "\n".join(lines)


def _attempt(number: int, attempt: attempts.Attempt) -> list[str]:
    where = f"{attempt.host} [{attempt.address}]" if attempt.host else "no host"
    provider, encryption = attempt.provider_queue or "-", attempt.tls or "no TLS"
    source = f", from {attempt.source}" if attempt.source else ""
    fault = f", fault: {attempt.fault}" if attempt.fault else ""
    doubt = "; in doubt: the server may have accepted the message" if attempt.in_doubt else ""
    when = f"{times.to_wire(attempt.started_at)}, {attempt.duration / 1_000_000:.3f} s"
    lines = [
        f"  {times.ordinal(number)} attempt at {when}, to {where}{source}, provider queue {provider}, {encryption}",
        f"    {attempt.stage}: {wait_reasons.last_response(attempt.smtp_code, attempt.response)}",
        f"    {attempt.verdict} ({attempt.reason}{fault}){doubt}",
    ]
    return lines if attempt.fault is None else [*lines, f"    {disposition.explain(attempt.reason)}"]


def _recipient_trace_view(recipient_trace: queue_inspection.RecipientTrace) -> View:
    return {
        **times.wire_fields(recipient_trace.recipient, (*RECIPIENT, "delivered_at", "bounced_at")),
        "reason": recipient_trace.why,
        "queue": None if recipient_trace.line is None else _entry_view(recipient_trace.line),
        "attempts": [_attempt_view(attempt) for attempt in recipient_trace.attempts],
        "async_bounces": [times.wire_fields(report, _ASYNC_BOUNCE) for report in recipient_trace.async_bounces],
    }


def _attempt_view(attempt: attempts.Attempt) -> View:
    return times.wire_fields(
        attempt,
        _ATTEMPT,
        duration_ms=attempt.duration / 1_000,
        explanation=disposition.explain(attempt.reason),
        in_doubt=bool(attempt.in_doubt),
    )
