"""`/messages/{id}`: one message, what became of it for each recipient and why, and what is in it."""

from dataclasses import dataclass
from typing import Final

from postroad import errors
from postroad.dashboard import forms, previews, timelines, visits
from postroad.dashboard import site as sites
from postroad.model import judging, mail
from postroad.services import context, messages, queues, webhook_log
from postroad.storage import attempts, late_bounces, queue_views, recipients
from postroad.web import routing

# A message has at most 50 recipients, each with an event or two; further ones are in the log.
TOLD: Final = 100
# More than this many recipients are folded, so that the page can be surveyed.
OPEN_RECIPIENTS: Final = 3
BILLED: Final = {
    mail.BillingStatus.RESERVED: "reserved until the results are final",
    mail.BillingStatus.SETTLED: "spent",
    mail.BillingStatus.RELEASED: "given back",
}


class Retry(forms.Form, frozen=True, kw_only=True):
    """Which recipient; without one, all that wait."""

    recipient_id: str | None = None


@dataclass(frozen=True, slots=True)
class Course:
    """One recipient: its line in the queue while it has one, what was tried, and what came back later."""

    recipient: recipients.Recipient
    line: queues.Line | None
    attempts: list[attempts.Attempt]
    late_bounces: list[late_bounces.LateBounce]

    @property
    def is_waiting(self) -> bool:
        """Whether it could be tried now."""
        return self.line is not None and self.line.waiting.state == queue_views.WAITING

    @property
    def rank(self) -> int:
        """What went wrong comes first, then what is on its way, then what was delivered."""
        if self.late_bounces or self.recipient.status in {mail.RecipientStatus.BOUNCED, mail.RecipientStatus.FAILED}:
            return 0
        return 2 if self.recipient.status in mail.FINAL else 1

    @property
    def explanation(self) -> str:
        """In plain words what the last attempt has come to."""
        return judging.explain(self.attempts[-1].reason) if self.attempts else ""


async def show(visit: visits.Visit) -> routing.Answer:
    """Everything that is known of a message."""
    query: previews.Query = visit.query
    ctx, account_id, message_id = visit.ctx, visit.account_id, visit.request.path["id"]
    found = await messages.details(ctx, account_id, message_id)
    lines = await queues.lines_of_message(ctx, account_id, message_id)
    told = await webhook_log.page(ctx, account_id, message_id=message_id, limit=TOLD)
    courses = [_course(found, one, lines.get(one.id)) for one in found.recipients]
    courses.sort(key=lambda course: course.rank)
    can_retry = sum(course.is_waiting for course in courses)
    return visit.page(
        "message.html",
        found=found,
        message=found.message,
        courses=courses,
        can_retry=can_retry,
        are_open=len(courses) <= OPEN_RECIPIENTS,
        are_waiting_open=can_retry <= OPEN_RECIPIENTS,
        timeline=timelines.of(found, [line.waiting for line in lines.values()], told),
        told=told,
        names={one.id: one.email for one in found.recipients},
        # Who watches a message that has ended would ask for all of it again with every other result of the account.
        is_live=bool(lines) or any(entry.status == "pending" for entry in told),
        shown=await _shown(visit, message_id, query.view),
        came=timelines.CAME,
        billed=BILLED,
        faults=judging.FAULT_WORDS,
        explain=judging.explain,
    )


def _course(found: messages.Details, recipient: recipients.Recipient, line: queues.Line | None) -> Course:
    return Course(
        recipient,
        line,
        [one for one in found.attempts if one.recipient_id == recipient.id],
        [one for one in found.late_bounces if one.recipient_id == recipient.id],
    )


async def _shown(visit: visits.Visit, message_id: str, view: previews.View | None) -> previews.Shown | None:
    """What is in the message; None when its body is not kept any more, and for scripts that only look for results."""
    if visit.request.headers.get(visits.REFRESHED) is not None:
        return None
    try:
        raw = await messages.raw(visit.ctx, visit.account_id, message_id)
    except errors.NotFound:
        return None
    return await previews.shown(f"/messages/{message_id}", raw, view)


async def retry(visit: visits.Visit) -> routing.Answer:
    """Try what waits now."""
    form: Retry = visit.form
    message_id = visit.request.path["id"]
    done = await queues.retry_of_account(visit.ctx, visit.account_id, message_id, form.recipient_id)
    counted = "1 recipient is" if done.changed == 1 else f"{done.changed} recipients are"
    return visit.go(f"/messages/{message_id}", notice=f"{counted} tried now.")


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page, and trying again."""
    return (
        visits.look(site, "/messages/{id}", show, query=previews.Query),
        visits.change(site, "/messages/{id}/retry", retry, form=Retry),
    )
