"""The recipients of a message as pages show them: queue entry, attempts, later bounces, and what became of the mail.

An outcome says why, and what to do, in the sentences of `model/bounces` and of the queue. Recipients with the same
outcome share it, so that the card on top of a page is short however many there are.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from postroad import context
from postroad.dashboard.framework import navigation
from postroad.model.bounces import disposition, failure_causes
from postroad.model.delivery import providers
from postroad.model.mail import statuses
from postroad.services.messages import lookup, queue_inspection
from postroad.services.queue import wait_reasons
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import attempts as stored_attempts
from postroad.storage.mail import messages as stored_messages
from postroad.storage.mail import queue_views

# As the verdicts of other pages are coloured.
_TONES: Final = {
    statuses.RecipientStatus.DELIVERED: "good",
    statuses.RecipientStatus.DEFERRED: "warn",
    **dict.fromkeys(statuses.FAILURES, "bad"),
}


class RecipientView(msgspec.Struct, frozen=True):
    """One recipient: its queue entry while it has one, its attempts, and its asynchronous bounces."""

    recipient: stored_messages.Recipient
    queue_entry: queue_inspection.QueueEntry | None
    attempts: list[stored_attempts.Attempt]
    async_bounces: list[stored_attempts.AsyncBounce]
    is_suppressed: bool

    @property
    def is_final(self) -> bool:
        """Whether it has its result, and can be sent the message again."""
        return self.recipient.status in statuses.FINAL

    @property
    def is_waiting(self) -> bool:
        return self.queue_entry is not None and self.queue_entry.waiting.state == queue_views.WAITING

    @property
    def is_untried(self) -> bool:
        """Whether it can be canceled: no attempt has begun."""
        waiting = self.queue_entry.waiting if self.queue_entry else None
        return waiting is not None and waiting.worker is None and not waiting.attempt_count and not waiting.lost_leases

    @property
    def rank(self) -> int:
        """Sort order: failures first, then queued, then delivered."""
        if self.async_bounces or self.recipient.status in statuses.FAILURES:
            return 0
        return 2 if self.recipient.status in statuses.FINAL else 1

    @property
    def explanation(self) -> str:
        return disposition.explain(self.attempts[-1].reason) if self.attempts else ""


class Link(msgspec.Struct, frozen=True):
    text: str
    path: str
    is_external: bool = False


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of some recipients, or why they wait. `quoted` is the text of a remote server."""

    title: str
    tone: str
    text: str = ""
    waits: wait_reasons.WaitReason | None = None
    at: int | None = None
    quoted: str = ""
    link: Link | None = None
    emails: tuple[str, ...]


async def read(ctx: context.Context, account_id: str, found: lookup.Details) -> list[RecipientView]:
    """The recipients of a message, those first that did not get it."""
    queue_entries = await queue_inspection.entries_of_message(ctx, account_id, found.message.id)
    suppressed = await suppressions.listed(ctx, account_id, [recipient.email for recipient in found.recipients])
    views = [
        RecipientView(
            recipient,
            queue_entries.get(recipient.id),
            [attempt for attempt in found.attempts if attempt.recipient_id == recipient.id],
            [bounce for bounce in found.async_bounces if bounce.recipient_id == recipient.id],
            recipient.email in suppressed,
        )
        for recipient in found.recipients
    ]
    return sorted(views, key=lambda view: view.rank)


def outcomes(views: Iterable[RecipientView]) -> list[Outcome]:
    """The outcome of each recipient, one for all that share it."""
    shared: dict[tuple[str, str], Outcome] = {}
    for view in views:
        outcome = _outcome(view)
        key = (outcome.title, outcome.text or (outcome.waits.text if outcome.waits else ""))
        known = shared.get(key)
        shared[key] = msgspec.structs.replace(known, emails=known.emails + outcome.emails) if known else outcome
    return list(shared.values())


def _outcome(view: RecipientView) -> Outcome:
    status, entry = statuses.RecipientStatus(view.recipient.status), view.queue_entry
    title, tone, emails = status.title(), _TONES.get(status, "unknown"), (view.recipient.email,)
    if entry is not None:
        if entry.waiting.state == queue_views.SCHEDULED:
            title = queue_views.SCHEDULED.title()
        return Outcome(title=title, tone=tone, text=view.explanation, waits=entry.reason, emails=emails)
    if view.async_bounces:
        bounce = view.async_bounces[-1]
        text = "The receiving server accepted the message and returned it later. The final status does not change."
        return Outcome(title="Asynchronous bounce", tone="bad", text=text, quoted=bounce.response, emails=emails)
    if status in statuses.FAILURES:
        return _failure(view, status, emails)
    if status is statuses.RecipientStatus.DELIVERED:
        host = view.attempts[-1].host if view.attempts else ""
        text = f"Accepted by {host or 'the receiving server'}."
        return Outcome(title=title, tone=tone, text=text, at=view.recipient.delivered_at, emails=emails)
    text = f"{view.recipient.last_smtp_response or ''}".capitalize()
    return Outcome(title=title, tone=tone, text=text and f"{text}.", emails=emails)


def _failure(view: RecipientView, status: statuses.RecipientStatus, emails: tuple[str, ...]) -> Outcome:
    last = view.attempts[-1] if view.attempts else None
    provider = last.provider_queue if last else ""
    reason = last.reason if last else view.recipient.cause
    cause = failure_causes.describe(failure_causes.of_outcome(reason, status), provider)
    reply = wait_reasons.last_response(view.recipient.last_smtp_code, view.recipient.last_smtp_response)
    ended = "" if last is None or status is statuses.RecipientStatus.BOUNCED else _ENDED[status]
    return Outcome(
        title=cause.label,
        tone="bad",
        text=f"{ended}{cause.explanation}",
        quoted=reply if last else "",
        link=_link(cause.action, provider, emails[0]),
        emails=emails,
    )


# Before the cause of the last attempt, which was temporary.
_ENDED: Final[Mapping[str, str]] = {
    statuses.RecipientStatus.FAILED: "Retries ended. ",
    statuses.RecipientStatus.EXPIRED: "The message expired. ",
}


def _link(action: failure_causes.Action, provider: str, email: str) -> Link | None:
    """The page that helps; what has a button, or is only to be read, needs none."""
    match action:
        case failure_causes.Action.READ_GUIDANCE:
            url, title = failure_causes.GUIDANCE[provider]
            return Link(f"{providers.NAMES[provider]}: {title}", url, is_external=True)
        case failure_causes.Action.CHECK_DOMAIN:
            return Link("Check the domain", "/domains")
        case failure_causes.Action.SEE_SUPPRESSIONS:
            return Link("See the suppression", navigation.recipient_url(email))
        case _:
            return None
