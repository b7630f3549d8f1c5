"""The life of a message, as it happened: accepted, attempts, results, late reports, and what the webhook was told.

Every step is a sentence of ours, and the words of others beside it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from postroad.model import mail
from postroad.model.bounces import disposition
from postroad.services.messages import lookup as messages
from postroad.services.webhooks import delivery_log
from postroad.storage import attempts, queue_views, recipients

# What can be read at a glance. Fifty recipients have far more, and their own tables have every attempt.
MAX_STEPS: Final = 30
# In a longer story the webhook has one step at most, if it was not told something; its own table has the rest.
MAX_UNABRIDGED_STEPS: Final = 10
# Failures stay however long the story is. Each of 50 recipients ends once; the rest is room for later reports.
MAX_FAILURES: Final = 100
# How a message came in.
SOURCE_LABELS: Final = {
    mail.Source.API: "over HTTP",
    mail.Source.SMTP: "over SMTP",
    mail.Source.TEST: "as a test from this dashboard",
}
_ATTEMPT_TITLES: Final = {
    disposition.Verdict.DELIVERED: "Delivered to {}",
    disposition.Verdict.RETRY: "Put off for {}",
    disposition.Verdict.BOUNCED: "Refused for {}",
    disposition.Verdict.FAILED: "Given up for {}",
}
_FINAL_TITLES: Final = {
    mail.RecipientStatus.DELIVERED: "Delivered to {}",
    mail.RecipientStatus.BOUNCED: "Not sent to {}",
    mail.RecipientStatus.FAILED: "Given up for {}",
}
_ATTEMPT_TONES: Final = {
    disposition.Verdict.DELIVERED: "good",
    disposition.Verdict.RETRY: "wait",
    disposition.Verdict.BOUNCED: "bad",
    disposition.Verdict.FAILED: "bad",
}


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened; `at` is None where the time is not known. `quoted` is what somebody else said."""

    at: int | None
    title: str
    tone: str
    detail: str = ""
    quoted: str = ""
    is_ahead: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """Steps, oldest first, and how many are left out after the first: none of them a failure."""

    steps: list[Step]
    left_out: int


def build(
    found: messages.Details, waiting: Iterable[queue_views.QueuedRecipient], told: list[delivery_log.Entry]
) -> Timeline:
    """What is known, in order; of a long story what matters most."""
    names = {one.id: one.email for one in found.recipients}
    past = [
        *(_attempt_step(one, names) for one in found.attempts),
        *_steps_without_attempt(found),
        *(
            _async_bounce_step(one.received_at, names.get(one.recipient_id, ""), one.response)
            for one in found.late_bounces
        ),
    ]
    webhook_steps = [_webhook_step(entry, names) for entry in told if entry.attempts]
    kept = [*past, *webhook_steps]
    if len(kept) > MAX_UNABRIDGED_STEPS:
        kept = _most_relevant([*past, *_failed_webhook_steps(webhook_steps)])
    ahead = sorted(_upcoming_steps(waiting), key=_sort_key)
    shown = [*sorted(kept, key=_sort_key), *ahead[:MAX_UNABRIDGED_STEPS]]
    return Timeline([_accepted_step(found), *shown], len(past) + len(webhook_steps) + len(ahead) - len(shown))


def _sort_key(step: Step) -> tuple[bool, int]:
    """What has no time comes last."""
    return step.at is None, step.at or 0


def _failed_webhook_steps(webhook_steps: list[Step]) -> list[Step]:
    """What the webhook was not told, as one step: a receiver that is down misses everything."""
    missed = sorted((step for step in webhook_steps if step.tone == "bad"), key=_sort_key)
    if len(missed) <= 1:
        return missed
    last = missed[-1]
    detail = "Each stands under Webhook with its answer. The last answer:" if last.quoted else last.detail
    return [Step(last.at, f"Webhook not told: {len(missed)} events", "bad", detail, last.quoted)]


def _most_relevant(steps: list[Step]) -> list[Step]:
    """Every failure, and of the others the newest that there is room for."""
    newest = sorted(steps, key=_sort_key, reverse=True)
    failures = [step for step in newest if step.tone == "bad"][:MAX_FAILURES]
    others = [step for step in newest if step.tone != "bad"]
    return [*failures, *others[: max(MAX_STEPS - len(failures), 0)]]


def _accepted_step(found: messages.Details) -> Step:
    message = found.message
    to = "1 recipient" if message.recipient_count == 1 else f"{message.recipient_count} recipients"
    return Step(message.created_at, f"Accepted {SOURCE_LABELS[mail.Source(message.source)]}, for {to}", "wait")


def _attempt_step(one: attempts.Attempt, names: Mapping[str, str]) -> Step:
    verdict = disposition.Verdict(one.verdict)
    title = _ATTEMPT_TITLES[verdict].format(names.get(one.recipient_id, "a recipient"))
    where = f"{one.host} took it." if verdict is disposition.Verdict.DELIVERED and one.host else ""
    return Step(
        one.started_at,
        title,
        _ATTEMPT_TONES[verdict],
        where if verdict is disposition.Verdict.DELIVERED else disposition.explain(one.reason),
        "" if verdict is disposition.Verdict.DELIVERED else _reply(one.smtp_code, one.response),
    )


def _steps_without_attempt(found: messages.Details) -> Iterator[Step]:
    """Results that no attempt tells: of suppressed addresses, and of what was cancelled."""
    ends = {disposition.Verdict.DELIVERED, disposition.Verdict.BOUNCED, disposition.Verdict.FAILED}
    told = {one.recipient_id for one in found.attempts if one.verdict in ends}
    for one in found.recipients:
        if one.status in mail.FINAL and one.id not in told:
            status = mail.RecipientStatus(one.status)
            tone = "good" if status is mail.RecipientStatus.DELIVERED else "bad"
            yield Step(_final_at(one), _FINAL_TITLES[status].format(one.email), tone, "", one.last_smtp_response or "")


def _final_at(one: recipients.Recipient) -> int | None:
    return one.delivered_at or one.bounced_at


def _async_bounce_step(at: int, email: str, response: str) -> Step:
    return Step(at, f"A bounce came back later for {email}", "bad", "The final result stays as it is.", response)


def _webhook_step(entry: delivery_log.Entry, names: Mapping[str, str]) -> Step:
    """One step for a delivery, however often it was tried: the latest answer counts."""
    last, event = entry.attempts[-1], entry.delivery.event_type
    email = names.get(entry.delivery.recipient_id or "", "")
    about = f"{event} for {email}" if email else event
    if entry.status == "succeeded":
        return Step(last.started_at, f"Webhook told: {about}", "good", f"The answer was {last.status_code}.")
    tries = "1 attempt" if len(entry.attempts) == 1 else f"{len(entry.attempts)} attempts"
    goes_on = "It is tried again." if entry.status == "pending" else "It was given up."
    answer = f"The answer was {last.status_code}." if last.status_code else "There was no answer."
    detail = f"{tries} so far. {answer} {goes_on}"
    return Step(last.started_at, f"Webhook not told: {about}", "bad", detail, last.error or "")


def _upcoming_steps(waiting: Iterable[queue_views.QueuedRecipient]) -> Iterator[Step]:
    for one in waiting:
        if one.state == queue_views.WAITING:
            yield Step(one.due_at, f"Next attempt for {one.email}", "wait", is_ahead=True)


def _reply(code: int | None, text: str) -> str:
    return text if code is None or text.startswith(str(code)) else f"{code} {text}"
