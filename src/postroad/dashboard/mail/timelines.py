"""The timeline of a message: acceptance, attempts, results, asynchronous bounces and webhook deliveries.

A step has a title and detail of ours, and the quoted text of a remote server.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from postroad.model.bounces import disposition
from postroad.model.mail import statuses
from postroad.services.messages import lookup as messages
from postroad.services.webhooks import delivery_log
from postroad.storage.mail import attempts, queue_views

# What can be read at a glance. The tables of the recipients have every attempt.
MAX_STEPS: Final = 30
# In a longer timeline failed webhooks share one step; the webhook table has the rest.
MAX_UNABRIDGED_STEPS: Final = 10
# Failures are always shown: one for each of 50 recipients, and room for asynchronous bounces.
MAX_FAILURES: Final = 100
# How a message was submitted. One that sends another again has the content of that one, wherever that was asked for.
RESEND: Final = "resend"
SOURCE_LABELS: Final = {
    statuses.Source.API: "HTTP API",
    statuses.Source.SMTP: "SMTP",
    statuses.Source.TEST: "dashboard test",
}
_ATTEMPT_TITLES: Final = {
    disposition.Verdict.DELIVERED: "Delivered: {}",
    disposition.Verdict.RETRY: "Deferred: {}",
    disposition.Verdict.BOUNCED: "Bounced: {}",
    disposition.Verdict.FAILED: "Failed: {}",
}
_FINAL_TITLES: Final = {
    statuses.RecipientStatus.DELIVERED: "Delivered: {}",
    statuses.RecipientStatus.BOUNCED: "Not sent: {}",
    statuses.RecipientStatus.FAILED: "Failed: {}",
    statuses.RecipientStatus.CANCELED: "Canceled: {}",
    statuses.RecipientStatus.EXPIRED: "Expired: {}",
}
_FINAL_TONES: Final = {
    statuses.RecipientStatus.DELIVERED: "good",
    statuses.RecipientStatus.CANCELED: "wait",
}
_UPCOMING_TITLES: Final = {
    queue_views.WAITING: "Next attempt: {}",
    queue_views.SCHEDULED: "Scheduled: {}",
}
_ATTEMPT_TONES: Final = {
    disposition.Verdict.DELIVERED: "good",
    disposition.Verdict.RETRY: "wait",
    disposition.Verdict.BOUNCED: "bad",
    disposition.Verdict.FAILED: "bad",
}


class Step(msgspec.Struct, frozen=True):
    """One step; `at` is None if the time is not known. `quoted` is the text of a remote server."""

    at: int | None
    title: str
    tone: str
    detail: str = ""
    quoted: str = ""
    is_upcoming: bool = False


class Timeline(msgspec.Struct, frozen=True):
    """Steps, oldest first, and how many are left out after the first one; none of those is a failure."""

    steps: list[Step]
    omitted_count: int


def build(
    found: messages.Details, waiting: Iterable[queue_views.QueuedRecipient], deliveries: list[delivery_log.Entry]
) -> Timeline:
    """The steps in order; a long timeline is shortened to the most relevant."""
    names = {recipient.id: recipient.email for recipient in found.recipients}
    past = [
        *(_attempt_step(attempt, names) for attempt in found.attempts),
        *_steps_without_attempt(found),
        *(
            Step(
                bounce.received_at,
                f"Asynchronous bounce: {names.get(bounce.recipient_id, '')}",
                "bad",
                "The final status does not change.",
                bounce.response,
            )
            for bounce in found.async_bounces
        ),
    ]
    webhook_steps = [_webhook_step(entry, names) for entry in deliveries if entry.attempts]
    kept = [*past, *webhook_steps]
    if len(kept) > MAX_UNABRIDGED_STEPS:
        kept = _most_relevant([*past, *_failed_webhook_steps(webhook_steps)])
    ahead = sorted(_upcoming_steps(waiting), key=_sort_key)
    shown = [*sorted(kept, key=_sort_key), *ahead[:MAX_UNABRIDGED_STEPS]]
    return Timeline([_accepted_step(found), *shown], len(past) + len(webhook_steps) + len(ahead) - len(shown))


def source_label(found: messages.Details) -> str:
    is_resend = found.receipt.resend_of is not msgspec.UNSET
    return RESEND if is_resend else SOURCE_LABELS[statuses.Source(found.message.source)]


def _sort_key(step: Step) -> tuple[bool, int]:
    """Steps without a time come last."""
    return step.at is None, step.at or 0


def _failed_webhook_steps(webhook_steps: list[Step]) -> list[Step]:
    """Failed webhook deliveries as one step: an endpoint that is down misses all of them."""
    missed = sorted((step for step in webhook_steps if step.tone == "bad"), key=_sort_key)
    if len(missed) <= 1:
        return missed
    last = missed[-1]
    detail = "See Webhook for each response. The last error:" if last.quoted else last.detail
    return [Step(last.at, f"Webhook failed: {len(missed)} events", "bad", detail, last.quoted)]


def _most_relevant(steps: list[Step]) -> list[Step]:
    newest = sorted(steps, key=_sort_key, reverse=True)
    failures = [step for step in newest if step.tone == "bad"][:MAX_FAILURES]
    others = [step for step in newest if step.tone != "bad"]
    return [*failures, *others[: max(MAX_STEPS - len(failures), 0)]]


def _accepted_step(found: messages.Details) -> Step:
    message = found.message
    to = "1 recipient" if message.recipient_count == 1 else f"{message.recipient_count} recipients"
    return Step(message.created_at, f"Accepted for {to} ({source_label(found)})", "wait")


def _attempt_step(attempt: attempts.Attempt, names: Mapping[str, str]) -> Step:
    verdict = disposition.Verdict(attempt.verdict)
    title = _ATTEMPT_TITLES[verdict].format(names.get(attempt.recipient_id, "a recipient"))
    where = f"Accepted by {attempt.host or 'the receiving server'}."
    return Step(
        attempt.started_at,
        title,
        _ATTEMPT_TONES[verdict],
        where if verdict is disposition.Verdict.DELIVERED else disposition.explain(attempt.reason),
        "" if verdict is disposition.Verdict.DELIVERED else _reply(attempt.smtp_code, attempt.response),
    )


def _steps_without_attempt(found: messages.Details) -> Iterator[Step]:
    """Results without an attempt: suppressed addresses and canceled recipients."""
    ends = {disposition.Verdict.DELIVERED, disposition.Verdict.BOUNCED, disposition.Verdict.FAILED}
    attempted = {attempt.recipient_id for attempt in found.attempts if attempt.verdict in ends}
    # What was canceled or expired has no time of its own; where all were, it is that of the message.
    ended_at = found.message.ended_at if len({recipient.status for recipient in found.recipients}) == 1 else None
    for recipient in found.recipients:
        if recipient.status in statuses.FINAL and recipient.id not in attempted:
            status = statuses.RecipientStatus(recipient.status)
            title, tone = _FINAL_TITLES[status].format(recipient.email), _FINAL_TONES.get(status, "bad")
            yield Step(
                recipient.delivered_at or recipient.bounced_at or ended_at,
                title,
                tone,
                "",
                recipient.last_smtp_response or "",
            )


def _webhook_step(entry: delivery_log.Entry, names: Mapping[str, str]) -> Step:
    last, event = entry.attempts[-1], entry.delivery.event_type
    email = names.get(entry.delivery.recipient_id or "", "")
    about = f"{event} for {email}" if email else event
    if entry.status == "succeeded":
        return Step(last.started_at, f"Webhook sent: {about}", "good", f"Response: {last.status_code}")
    tries = "1 attempt" if len(entry.attempts) == 1 else f"{len(entry.attempts)} attempts"
    outlook = "It will be retried." if entry.status == "pending" else "It will not be retried."
    response = f"Last response: {last.status_code}." if last.status_code else "No response."
    detail = f"{tries}. {response} {outlook}"
    return Step(last.started_at, f"Webhook failed: {about}", "bad", detail, last.error or "")


def _upcoming_steps(waiting: Iterable[queue_views.QueuedRecipient]) -> Iterator[Step]:
    for recipient in waiting:
        if recipient.state in _UPCOMING_TITLES:
            yield Step(
                recipient.due_at, _UPCOMING_TITLES[recipient.state].format(recipient.email), "wait", is_upcoming=True
            )


def _reply(code: int | None, text: str) -> str:
    return text if code is None or text.startswith(str(code)) else f"{code} {text}"
