"""How `postroad queue` shows the queue: for people, and for programs."""

from postroad.cli import output
from postroad.model import durations, times
from postroad.model.bounces import disposition
from postroad.services.queue import inspection, wait_reasons
from postroad.storage import async_bounces, attempts, queue_views

View = dict[str, object]
TITLES = ("recipient", "address", "state", "attempts", "next attempt", "pool", "why")


def recipients(number: int) -> str:
    """A number of recipients."""
    return f"{number} {'recipient' if number == 1 else 'recipients'}"


def overview(found: inspection.Overview) -> str:
    """The list, and the summary below it."""
    rows = [
        (
            line.waiting.recipient_id,
            line.waiting.email,
            line.waiting.state,
            line.waiting.attempt_count,
            _next_attempt(line.waiting, now=found.now),
            line.pool,
            wait_reasons.last_response(line.waiting.last_smtp_code, line.waiting.last_smtp_response) or line.why,
        )
        for line in found.entries
    ]
    total = sum(count.recipients for count in found.counts.values())
    if not total:
        return "Nothing waits."
    listed = output.table(TITLES, rows, empty="None of them is in this state.")
    by_state = ", ".join(f"{_number(found, state)} {state}" for state in queue_views.STATES)
    oldest = min(count.queued_at for count in found.counts.values())
    busiest = ", ".join(f"{domain} {number}" for domain, number in found.domains)
    return (
        f"{listed}\n\n{recipients(total)}: {by_state}.\n"
        f"The oldest was queued at {times.to_wire(oldest)}, {durations.relative_time(oldest, now=found.now)}.\n"
        f"Most of them go to: {busiest}"
    )


def overview_view(found: inspection.Overview) -> View:
    """The same for programs."""
    oldest = min((count.queued_at for count in found.counts.values()), default=None)
    return {
        "recipients": [_entry_view(line) for line in found.entries],
        "counts": {state: _number(found, state) for state in queue_views.STATES},
        "oldest_queued_at": times.optional_to_wire(oldest),
        "domains": [{"domain": domain, "recipients": number} for domain, number in found.domains],
    }


def trace(found: inspection.MessageTrace) -> str:
    """A message with each recipient, and what was tried for it."""
    message = found.message
    head = (
        f"Message {message.id} of account {message.account_id}\n"
        f"  from {message.sender}, {message.subject!r}, {message.size} bytes, by {message.source}\n"
        f"  accepted at {times.to_wire(message.created_at)}, "
        f"{durations.relative_time(message.created_at, now=found.now)}; "
        f"{message.status}, {message.billing_status}, {recipients(message.recipient_count)}; "
        f"request {message.request_id}"
    )
    return "\n\n".join([head, *(_recipient_trace(recipient_trace) for recipient_trace in found.courses)])


def trace_view(found: inspection.MessageTrace) -> View:
    """The same for programs."""
    message = found.message
    return {
        "message": {
            "id": message.id,
            "account_id": message.account_id,
            "source": message.source,
            "from": message.sender,
            "subject": message.subject,
            "status": message.status,
            "billing_status": message.billing_status,
            "recipient_count": message.recipient_count,
            "size": message.size,
            "request_id": message.request_id,
            "created_at": times.to_wire(message.created_at),
        },
        "recipients": [_recipient_trace_view(recipient_trace) for recipient_trace in found.courses],
    }


def _number(found: inspection.Overview, state: str) -> int:
    return found.counts[state].recipients if state in found.counts else 0


def _next_attempt(row: queue_views.QueuedRecipient, *, now: int) -> str:
    if row.state != queue_views.WAITING:
        return "now"
    return f"{times.to_wire(row.due_at)} ({durations.relative_time(row.due_at, now=now)})"


def _entry_view(line: inspection.QueueEntry) -> View:
    row = line.waiting
    return {
        "id": row.recipient_id,
        "message_id": row.message_id,
        "account_id": row.account_id,
        "email": row.email,
        "state": row.state,
        "attempt_count": row.attempt_count,
        "lost_leases": row.lost_leases,
        "queued_at": times.to_wire(row.queued_at),
        "next_attempt_at": times.to_wire(row.due_at) if row.state == queue_views.WAITING else None,
        "worker": row.worker,
        "pool": line.pool,
        "last_smtp_code": row.last_smtp_code,
        "last_smtp_response": row.last_smtp_response,
        "why": line.why,
    }


def _recipient_trace(recipient_trace: inspection.RecipientTrace) -> str:
    recipient = recipient_trace.recipient
    lines = [
        f"{recipient.id} {recipient.email}: {recipient.status}, {recipient.billing_status}",
        f"  {recipient_trace.why}",
    ]
    if recipient_trace.line and recipient_trace.line.waiting.lost_leases:
        lines.append(
            f"  a worker vanished while it had this, {recipient_trace.line.waiting.lost_leases} times: "
            "it may have gone twice"
        )
    for number, attempt in enumerate(recipient_trace.attempts, start=1):
        lines += _attempt(number, attempt)
    lines += [
        f"  reported later, at {times.to_wire(report.received_at)}: {f'{report.action} {report.status}'.strip()}, "
        f"{wait_reasons.shortened(report.response)}"
        for report in recipient_trace.late_bounces
    ]
    return "\n".join(lines)


def _attempt(number: int, attempt: attempts.Attempt) -> list[str]:
    where = f"{attempt.host} [{attempt.address}]" if attempt.host else "nowhere"
    encryption = attempt.tls or "no TLS"
    fault = f", fault: {attempt.fault}" if attempt.fault else ""
    doubt = "; in doubt: it may have been taken all the same" if attempt.in_doubt else ""
    when = f"{times.to_wire(attempt.started_at)}, {attempt.duration / 1_000_000:.3f} s"
    lines = [
        f"  {durations.ordinal(number)} attempt at {when}, to {where}, pool {attempt.pool or '-'}, {encryption}",
        f"    {attempt.stage}: {wait_reasons.last_response(attempt.smtp_code, attempt.response)}",
        f"    {attempt.verdict} ({attempt.reason}{fault}){doubt}",
    ]
    return lines if attempt.fault is None else [*lines, f"    {disposition.explain(attempt.reason)}"]


def _recipient_trace_view(recipient_trace: inspection.RecipientTrace) -> View:
    recipient = recipient_trace.recipient
    return {
        "id": recipient.id,
        "email": recipient.email,
        "status": recipient.status,
        "billing_status": recipient.billing_status,
        "attempt_count": recipient.attempt_count,
        "last_smtp_code": recipient.last_smtp_code,
        "last_smtp_response": recipient.last_smtp_response,
        "delivered_at": times.optional_to_wire(recipient.delivered_at),
        "bounced_at": times.optional_to_wire(recipient.bounced_at),
        "why": recipient_trace.why,
        "queue": None if recipient_trace.line is None else _entry_view(recipient_trace.line),
        "attempts": [_attempt_view(attempt) for attempt in recipient_trace.attempts],
        "late_bounces": [_report_view(report) for report in recipient_trace.late_bounces],
    }


def _attempt_view(attempt: attempts.Attempt) -> View:
    return {
        "started_at": times.to_wire(attempt.started_at),
        "duration_ms": attempt.duration / 1_000,
        "pool": attempt.pool,
        "host": attempt.host,
        "address": attempt.address,
        "tls": attempt.tls,
        "stage": attempt.stage,
        "verdict": attempt.verdict,
        "fault": attempt.fault,
        "reason": attempt.reason,
        "explanation": disposition.explain(attempt.reason),
        "smtp_code": attempt.smtp_code,
        "enhanced_code": attempt.enhanced_code,
        "response": attempt.response,
        "in_doubt": bool(attempt.in_doubt),
    }


def _report_view(report: async_bounces.LateBounce) -> View:
    return {
        "received_at": times.to_wire(report.received_at),
        "action": report.action,
        "status": report.status,
        "fault": report.fault,
        "response": report.response,
    }
