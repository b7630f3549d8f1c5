"""Asynchronous bounces: reports that arrive at a return path after a server had accepted the message.

A report is matched to its recipient by the token in the address it was sent to, and says nothing about any other
address that it names. A failure is recorded with the recipient, once however often it is reported; the recipient's
status stays, because final is final. An address that does not exist is suppressed. Everything else (delays, successes,
other recipients, mail that is no report) is returned to the caller for logging and not stored. The bounce guard counts
an address that does not exist only if the report is authenticated, as with complaints, and its signed To is the return
path.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad import context
from postroad.mail import outbox, return_path
from postroad.mail.results import guard_counts, report_authentication
from postroad.model.bounces import bounce_guard
from postroad.model.bounces import disposition as bounces_disposition
from postroad.model.events import events
from postroad.model.mail import statuses
from postroad.protocol.mime import address
from postroad.protocol.reports import dsn
from postroad.protocol.smtp import values
from postroad.storage.engine import store
from postroad.storage.mail import attempts, messages, queue, suppressions
from postroad.storage.people import accounts

# Whoever gets a message knows its token: they must not be able to fill the database with reports about it.
MAX_PER_RECIPIENT: Final = 10


class ReportResult(StrEnum):
    """The result of one outcome of a report."""

    RECORDED = "recorded"
    REPEATED = "repeated"
    TOO_MANY = "too_many"
    NOT_FINAL = "not_final"
    NOT_A_FAILURE = "not_a_failure"
    UNKNOWN_RECIPIENT = "unknown_recipient"
    UNKNOWN_MESSAGE = "unknown_message"


class Handled(msgspec.Struct, frozen=True):
    """An outcome of a report and its result, with the disposition if it was recorded.

    `is_gone`: the report says that this very address does not exist.
    """

    result: ReportResult
    outcome: dsn.RecipientReport
    recipient: attempts.ReportedRecipient | None = None
    disposition: bounces_disposition.Disposition | None = None
    is_gone: bool = False


class ProcessedReport(msgspec.Struct, frozen=True):
    """The results of a report's outcomes, and the bounce guard's actions."""

    handled: Sequence[Handled]
    notices: Sequence[guard_counts.Notice] = ()


# A reported failure: recipient, status and diagnostic text.
_Recorded = tuple[str, str, str]


async def receive(ctx: context.Context, named: return_path.ReturnPath, content: bytes) -> ProcessedReport:
    """Process mail to a return path. What has to be kept is on disk when this returns."""
    outcomes = dsn.read(content)
    if not any(outcome.action is dsn.Action.FAILED for outcome in outcomes):
        return ProcessedReport([Handled(ReportResult.NOT_A_FAILURE, outcome) for outcome in outcomes])
    async with ctx.store.scanning("reports") as tx:
        account_id = await messages.account_of(tx, named.message_id)
    if account_id is None:
        return ProcessedReport([Handled(ReportResult.UNKNOWN_MESSAGE, outcome) for outcome in outcomes])
    proof = await report_authentication.authenticate(ctx, content)
    # A report that was signed for another return path can be sent to this one, but says nothing about it.
    if proof is not None and return_path.named_by(ctx.keys, proof.sent_to) != named:
        proof = None
    async with ctx.store.transaction() as tx:
        return await _record(ctx, tx, outcomes, account_id=account_id, named=named, proof=proof)


async def _record(
    ctx: context.Context,
    tx: store.Transaction,
    outcomes: Sequence[dsn.RecipientReport],
    *,
    account_id: str,
    named: return_path.ReturnPath,
    proof: report_authentication.Proof | None,
) -> ProcessedReport:
    now, message_id = ctx.clock(), named.message_id
    # Reports about one message serialize here, and so do those that count.
    locked = await accounts.lock(tx, [account_id])
    addressees = {each.id: each for each in await attempts.addressees(tx, account_id, message_id)}
    recipient = addressees.get(named.recipient(addressees) or "")
    known = await attempts.async_bounces(tx, account_id, message_id)
    handled = _handle_all(outcomes, recipient, [(b.recipient_id, b.status, b.response) for b in known])
    # A row is identified by its time, so no two of a message share one.
    begin = max([now, *(bounce.received_at + 1 for bounce in known)])
    bounces: list[attempts.AsyncBounce] = []
    gone: list[suppressions.Suppression] = []
    for each in handled:
        if each.recipient and each.disposition:
            who, outcome, disposition = each.recipient, each.outcome, each.disposition
            details = (outcome.action, _status(outcome), disposition.fault or "", outcome.words)
            bounces.append(attempts.AsyncBounce(account_id, message_id, who.id, begin + len(bounces), *details))
            if each.is_gone and ctx.settings.testing.suppress:
                why = (suppressions.Source.LATE_BOUNCE, outcome.words or disposition.reason)
                gone.append(
                    suppressions.Suppression(
                        account_id, who.email_key, *why, outcome.reply.code or None, message_id, now
                    )
                )
    await attempts.insert_async_bounces(tx, bounces)
    added = await suppressions.add(tx, gone)
    if recipient is not None:
        key = (account_id, message_id, recipient.id)
        await ctx.outbox.write(tx, _events(handled, key, is_suppressed=bool(added), now=now))
    notices: Sequence[guard_counts.Notice] = ()
    # A recipient that bounced has counted when it did.
    is_news = recipient is not None and recipient.status != statuses.RecipientStatus.BOUNCED
    if recipient is not None and is_news and proof is not None and any(each.is_gone for each in handled):
        notices = await guard_counts.count_report(
            tx,
            guard_counts.rules_of(ctx.settings.bounce_guard, notices_from=ctx.settings.operator.sender),
            account_id,
            bounce_guard.Counts(bounces=1),
            email_key=recipient.email_key,
            signature=proof.signature,
            locked=locked,
            now=now,
        )
    await ctx.outbox.write_account(tx, guard_counts.events_of(notices, now=now))
    return ProcessedReport(handled, notices)


def _events(
    handled: Sequence[Handled], key: queue.Key, *, is_suppressed: bool, now: int
) -> list[events.RecipientEvent]:
    """The events of what was recorded of a recipient, and of its address on the suppression list."""
    happened = [
        (
            each.is_gone,
            events.RecipientEvent(
                key=key,
                kind=events.EventType.BOUNCED_LATER,
                at=now,
                smtp_code=each.outcome.reply.code or None,
                response=each.outcome.words,
                enhanced_code=_status(each.outcome),
                cause=each.disposition.reason,
            ),
        )
        for each in handled
        if each.disposition
    ]
    gone = [outbox.suppressed(event, suppressions.Source.LATE_BOUNCE) for is_gone, event in happened if is_gone]
    return [*(event for _, event in happened), *(gone[:1] if is_suppressed else ())]


def _handle_all(
    outcomes: Sequence[dsn.RecipientReport],
    recipient: attempts.ReportedRecipient | None,
    recorded: list[_Recorded],
) -> list[Handled]:
    handled = []
    for outcome in outcomes:
        each = _handle(outcome, recipient if recipient and _is_about(recipient, outcome) else None, recorded)
        if each.recipient and each.result is ReportResult.RECORDED:
            recorded.append((each.recipient.id, _status(outcome), outcome.words))
        handled.append(each)
    return handled


def _handle(
    outcome: dsn.RecipientReport, recipient: attempts.ReportedRecipient | None, recorded: Sequence[_Recorded]
) -> Handled:
    if outcome.action is not dsn.Action.FAILED:
        return Handled(ReportResult.NOT_A_FAILURE, outcome, recipient)
    if recipient is None:
        return Handled(ReportResult.UNKNOWN_RECIPIENT, outcome)
    if recipient.status not in statuses.FINAL:
        return Handled(ReportResult.NOT_FINAL, outcome, recipient)
    disposition = bounces_disposition.classify(values.RecipientResult(values.Stage.CONTENT, outcome.reply))
    # The address may be a list or be forwarded: a missing one behind it says nothing about itself.
    is_itself = address.key_of(outcome.final_recipient) in {"", recipient.email_key}
    is_gone = (
        disposition.verdict is bounces_disposition.Verdict.BOUNCED
        and disposition.fault is bounces_disposition.Fault.ADDRESS
        and is_itself
    )
    if (recipient.id, _status(outcome), outcome.words) in recorded:
        return Handled(ReportResult.REPEATED, outcome, recipient, is_gone=is_gone)
    if sum(recipient_id == recipient.id for recipient_id, _, _ in recorded) >= MAX_PER_RECIPIENT:
        return Handled(ReportResult.TOO_MANY, outcome, recipient, is_gone=is_gone)
    return Handled(ReportResult.RECORDED, outcome, recipient, disposition, is_gone)


def _is_about(recipient: attempts.ReportedRecipient, outcome: dsn.RecipientReport) -> bool:
    """Whether an outcome is about this recipient: it has its name, or none."""
    names = [address.key_of(text) for text in (outcome.final_recipient, outcome.original_recipient) if text]
    return recipient.email_key in names or not names


def _status(outcome: dsn.RecipientReport) -> str:
    return outcome.reply.enhanced or outcome.status
