"""Complaints: a mailbox provider reports that its user marked a message as unwanted (RFC 5965).

The recipient is found by its signed token: in the envelope sender that the report names, in the return path of the
returned message, or in the address that the report was sent to. What the report says about recipients does not matter:
providers hide it, and anybody can write it. A complaint is recorded once with the recipient and suppresses the address,
whatever `testing.suppress` says, replacing any earlier reason. Reports of other types, such as `not-spam`, are not
stored. The bounce guard counts it only from an authenticated feedback loop whose signature covers the token: anybody
can send a signed report again, to any address. It then counts even if somebody else has reported it before: otherwise
a sender could report its own recipients first.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad import context
from postroad.mail import outbox, return_path
from postroad.mail.results import guard_counts, report_authentication
from postroad.model.bounces import bounce_guard
from postroad.model.events import events
from postroad.model.mail import statuses
from postroad.protocol.reports import arf
from postroad.storage.engine import store
from postroad.storage.mail import attempts, messages, suppressions
from postroad.storage.people import accounts

# The local part of the address for reports, at the domain of return paths.
LOCAL_PART: Final = "complaints"
# The `action` of a complaint among the reports of a recipient.
ACTION: Final = "complaint"
# Complaints (RFC 5965 section 7.3): spam or fraud.
KINDS: Final = frozenset({"abuse", "fraud"})
# A failed recipient may have got the message: the reply to its content may have been lost.
ARRIVED: Final = frozenset({statuses.RecipientStatus.DELIVERED, statuses.RecipientStatus.FAILED})


class ReportResult(StrEnum):
    """The result of a report."""

    RECORDED = "recorded"
    REPEATED = "repeated"
    NOT_DELIVERED = "not_delivered"
    NOT_A_COMPLAINT = "not_a_complaint"
    UNKNOWN_RECIPIENT = "unknown_recipient"
    UNKNOWN_MESSAGE = "unknown_message"


class ProcessedReport(msgspec.Struct, frozen=True):
    """A report's result, its message and recipient, whether it could count, and the bounce guard's actions."""

    result: ReportResult
    message_id: str | None = None
    recipient_id: str | None = None
    is_authenticated: bool = False
    notices: Sequence[guard_counts.Notice] = ()


def is_ours(ctx: context.Context, recipient: str) -> bool:
    domain = ctx.settings.delivery.return_path_domain
    return bool(domain) and recipient.lower() == f"{LOCAL_PART}@{domain}".lower()


async def receive(ctx: context.Context, report: arf.FeedbackReport, content: bytes, *, sent_to: str) -> ProcessedReport:
    """Process a report sent to this address. What has to be kept is on disk when this returns."""
    signed = _named(ctx, report.senders)
    named = signed or _named(ctx, [sent_to])
    if report.kind not in KINDS:
        return ProcessedReport(ReportResult.NOT_A_COMPLAINT, named.message_id if named else None)
    if named is None:
        return ProcessedReport(ReportResult.UNKNOWN_MESSAGE)
    async with ctx.store.scanning("reports") as tx:
        account_id = await messages.account_of(tx, named.message_id)
    if account_id is None:
        return ProcessedReport(ReportResult.UNKNOWN_MESSAGE, named.message_id)
    proof = await report_authentication.authenticate(ctx, content) if signed else None
    async with ctx.store.transaction() as tx:
        return await _record(ctx, tx, report, account_id=account_id, named=named, proof=proof)


def _named(ctx: context.Context, addresses: Sequence[str]) -> return_path.ReturnPath | None:
    found = (return_path.named_by(ctx.keys, text) for text in addresses)
    return next((named for named in found if named is not None), None)


async def _record(
    ctx: context.Context,
    tx: store.Transaction,
    report: arf.FeedbackReport,
    *,
    account_id: str,
    named: return_path.ReturnPath,
    proof: report_authentication.Proof | None,
) -> ProcessedReport:
    message_id = named.message_id
    locked = await accounts.lock(tx, [account_id])
    addressees = {each.id: each for each in await attempts.addressees(tx, account_id, message_id)}
    who = addressees.get(named.recipient(addressees) or "")
    known = await attempts.async_bounces(tx, account_id, message_id)
    result = _result(who, known)
    if who is None or result is ReportResult.NOT_DELIVERED:
        return ProcessedReport(result, message_id, who.id if who else None)
    if result is ReportResult.RECORDED:
        await _keep(ctx, tx, report, who, known, account_id=account_id, message_id=message_id)
    notices: Sequence[guard_counts.Notice] = ()
    if proof is not None:
        notices = await guard_counts.count_report(
            tx,
            guard_counts.rules_of(ctx.settings.bounce_guard, notices_from=ctx.settings.operator.sender),
            account_id,
            bounce_guard.Counts(complaints=1),
            email_key=who.email_key,
            signature=proof.signature,
            locked=locked,
            now=ctx.clock(),
        )
    await ctx.outbox.write_account(tx, guard_counts.events_of(notices, now=ctx.clock()))
    return ProcessedReport(result, message_id, who.id, proof is not None, notices)


async def _keep(
    ctx: context.Context,
    tx: store.Transaction,
    report: arf.FeedbackReport,
    who: attempts.ReportedRecipient,
    known: Sequence[attempts.AsyncBounce],
    *,
    account_id: str,
    message_id: str,
) -> None:
    """Record the complaint and suppress the address, as a complaint also if it is suppressed already."""
    now, words = ctx.clock(), f"feedback report: {report.kind}"
    # A row is identified by its time, so no two of a message share one.
    received_at = max([now, *(bounce.received_at + 1 for bounce in known)])
    kept = attempts.AsyncBounce(account_id, message_id, who.id, received_at, ACTION, "", "", words)
    await attempts.insert_async_bounces(tx, [kept])
    wanted = suppressions.Suppression(
        account_id, who.email_key, suppressions.Source.COMPLAINT, words, None, message_id, now
    )
    place = (account_id, who.email_key)
    found = (await suppressions.find(tx, [place])).get(place)
    if found is not None and found.source != suppressions.Source.COMPLAINT:
        await suppressions.remove(tx, *place)
    await suppressions.add(tx, [wanted])
    happened = events.RecipientEvent(
        key=(account_id, message_id, who.id),
        kind=events.EventType.COMPLAINED,
        at=now,
        feedback_type=report.kind,
    )
    await ctx.outbox.write(tx, [happened] if found else [happened, outbox.suppressed(happened, wanted.source)])


def _result(who: attempts.ReportedRecipient | None, known: Sequence[attempts.AsyncBounce]) -> ReportResult:
    if who is None:
        return ReportResult.UNKNOWN_RECIPIENT
    if who.status not in ARRIVED:
        return ReportResult.NOT_DELIVERED
    has_complained = any(bounce.recipient_id == who.id and bounce.action == ACTION for bounce in known)
    return ReportResult.REPEATED if has_complained else ReportResult.RECORDED
