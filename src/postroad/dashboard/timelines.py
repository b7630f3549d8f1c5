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
# In a longer story the webhook has one step at most, if it was not told something; its own table has the rest.
SHORT_STORY: Final = 10
# Failures stay however long the story is. Each of 50 recipients ends once; the rest is room for later reports.
MOST_FAILURES: Final = 100
# How a message came in.
CAME: Final = {
    mail.Source.API: "over HTTP",
    mail.Source.SMTP: "over SMTP",
    mail.Source.TEST: "as a test from this dashboard",
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
    """Steps, oldest first, and how many are left out after the first: none of them a failure."""

    steps: list[Step]
    left_out: int


def of(found: messages.Details, waiting: Iterable[queue_views.Waiting], told: list[webhook_log.Entry]) -> Timeline:
    """What is known, in order; of a long story what matters most."""
    names = {one.id: one.email for one in found.recipients}
    past = [
        *(_attempted(one, names) for one in found.attempts),
        *_ended_unattempted(found),
        *(_reported(one.received_at, names.get(one.recipient_id, ""), one.response) for one in found.late_bounces),
    ]
    tellings = [_told(entry, names) for entry in told if entry.attempts]
    kept = [*past, *tellings]
    if len(kept) > SHORT_STORY:
        kept = _most_telling([*past, *_untold(tellings)])
    ahead = sorted(_ahead(waiting), key=_place)
    shown = [*sorted(kept, key=_place), *ahead[:SHORT_STORY]]
    return Timeline([_accepted(found), *shown], len(past) + len(tellings) + len(ahead) - len(shown))


def _place(step: Step) -> tuple[bool, int]:
    """What has no time comes last."""
    return step.at is None, step.at or 0


def _untold(tellings: list[Step]) -> list[Step]:
    """What the webhook was not told, as one step: a receiver that is down misses everything."""
    missed = sorted((step for step in tellings if step.tone == "bad"), key=_place)
    if len(missed) <= 1:
        return missed
    last = missed[-1]
    detail = "Each stands under Webhook with its answer. The last answer:" if last.quoted else last.detail
    return [Step(last.at, f"Webhook not told: {len(missed)} events", "bad", detail, last.quoted)]


def _most_telling(steps: list[Step]) -> list[Step]:
    """Every failure, and of the others the newest that there is room for."""
    newest = sorted(steps, key=_place, reverse=True)
    failures = [step for step in newest if step.tone == "bad"][:MOST_FAILURES]
    others = [step for step in newest if step.tone != "bad"]
    return [*failures, *others[: max(MOST_STEPS - len(failures), 0)]]


def _accepted(found: messages.Details) -> Step:
    message = found.message
    to = "1 recipient" if message.recipient_count == 1 else f"{message.recipient_count} recipients"
    return Step(message.created_at, f"Accepted {CAME[mail.Source(message.source)]}, for {to}", "wait")


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
