"""The life of a message, as it happened: accepted, attempts, results, late reports, and what the webhook was told.

Every step is a sentence of ours, and the words of others beside it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from postroad.model import judging, mail
from postroad.services import messages, webhook_log
from postroad.storage import attempts, queue_views, recipients

# What can be read at a glance. Fifty recipients have far more, and their own tables have every attempt.
MOST_STEPS: Final = 30
_DOORS: Final = {
    mail.Source.API: "Accepted over HTTP",
    mail.Source.SMTP: "Accepted over SMTP",
    mail.Source.TEST: "Accepted as a test from this dashboard",
}
_VERDICTS: Final = {
    judging.Verdict.DELIVERED: "Delivered to {}",
    judging.Verdict.RETRY: "Put off for {}",
    judging.Verdict.BOUNCED: "Refused for {}",
    judging.Verdict.FAILED: "Given up for {}",
}
_ENDS: Final = {
    mail.RecipientStatus.DELIVERED: "Delivered to {}",
    mail.RecipientStatus.BOUNCED: "Not sent to {}",
    mail.RecipientStatus.FAILED: "Given up for {}",
}
_TONES: Final = {
    judging.Verdict.DELIVERED: "good",
    judging.Verdict.RETRY: "wait",
    judging.Verdict.BOUNCED: "bad",
    judging.Verdict.FAILED: "bad",
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
    """Steps, oldest first, and how many more there were between the first and the others."""

    steps: list[Step]
    left_out: int


def of(found: messages.Details, waiting: Iterable[queue_views.Waiting], told: list[webhook_log.Entry]) -> Timeline:
    """Everything that is known, in order."""
    names = {one.id: one.email for one in found.recipients}
    past = [
        *(_attempted(one, names) for one in found.attempts),
        *_ended_unattempted(found),
        *(_reported(one.received_at, names.get(one.recipient_id, ""), one.response) for one in found.late_bounces),
        *(_told(entry, names) for entry in told if entry.attempts),
    ]
    past.sort(key=lambda step: (step.at is None, step.at or 0))
    first = _accepted(found)
    ahead = sorted(_ahead(waiting), key=lambda step: step.at or 0)
    kept = past[-MOST_STEPS:]
    return Timeline([first, *kept, *ahead], len(past) - len(kept))


def _accepted(found: messages.Details) -> Step:
    message = found.message
    to = "1 recipient" if message.recipient_count == 1 else f"{message.recipient_count} recipients"
    door = _DOORS.get(mail.Source(message.source), "Accepted")
    return Step(message.created_at, f"{door}, for {to}", "wait")


def _attempted(one: attempts.Attempt, names: Mapping[str, str]) -> Step:
    verdict = judging.Verdict(one.verdict)
    title = _VERDICTS[verdict].format(names.get(one.recipient_id, "a recipient"))
    where = f"{one.host} took it." if verdict is judging.Verdict.DELIVERED and one.host else ""
    return Step(
        one.started_at,
        title,
        _TONES[verdict],
        where if verdict is judging.Verdict.DELIVERED else judging.explain(one.reason),
        "" if verdict is judging.Verdict.DELIVERED else _reply(one.smtp_code, one.response),
    )


def _ended_unattempted(found: messages.Details) -> Iterator[Step]:
    """Results that no attempt tells: of suppressed addresses, and of what was cancelled."""
    ends = {judging.Verdict.DELIVERED, judging.Verdict.BOUNCED, judging.Verdict.FAILED}
    told = {one.recipient_id for one in found.attempts if one.verdict in ends}
    for one in found.recipients:
        if one.status in mail.FINAL and one.id not in told:
            status = mail.RecipientStatus(one.status)
            tone = "good" if status is mail.RecipientStatus.DELIVERED else "bad"
            yield Step(_ended_at(one), _ENDS[status].format(one.email), tone, "", one.last_smtp_response or "")


def _ended_at(one: recipients.Recipient) -> int | None:
    return one.delivered_at or one.bounced_at


def _reported(at: int, email: str, response: str) -> Step:
    return Step(at, f"A bounce came back later for {email}", "bad", "The final result stays as it is.", response)


def _told(entry: webhook_log.Entry, names: Mapping[str, str]) -> Step:
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


def _ahead(waiting: Iterable[queue_views.Waiting]) -> Iterator[Step]:
    for one in waiting:
        if one.state == queue_views.WAITING:
            yield Step(one.due_at, f"Next attempt for {one.email}", "wait", is_ahead=True)


def _reply(code: int | None, text: str) -> str:
    return text if code is None or text.startswith(str(code)) else f"{code} {text}"
