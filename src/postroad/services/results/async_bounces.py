"""Asynchronous bounces: reports that arrive at a return path after a server had accepted the message.

A report is matched to its message by the token in the address it was sent to, and to a recipient by the address it
names. A failure is recorded with the recipient, once however often it is reported; the recipient's status stays,
because final is final. An address that does not exist is suppressed. Everything else (delays, successes, unknown
recipients, mail that is no report) is returned to the caller for logging and not stored.

Anyone who got a message knows its token and can claim a bounce for all its recipients. So the bounce guard counts at
most one asynchronous bounce per message, and none for an address that is already suppressed.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model import bounce_guard, mail
from postroad.model.bounces import disposition as bounces_disposition
from postroad.protocol import address
from postroad.protocol.reports import dsn
from postroad.protocol.smtp import values
from postroad.services import context
from postroad.services.results import bounce_guard as account_guard
from postroad.storage import accounts, async_bounces, messages, store, suppressions

# Anyone who got a message knows its token: they must not be able to fill the database with reports about it.
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
    recipient: async_bounces.ReportedRecipient | None = None
    disposition: bounces_disposition.Disposition | None = None
    is_gone: bool = False


class ProcessedReport(msgspec.Struct, frozen=True):
    """The results of a report's outcomes, and the bounce guard's actions."""

    handled: Sequence[Handled]
    notices: Sequence[account_guard.Notice] = ()


# A reported failure: recipient, status and diagnostic text.
_Recorded = tuple[str, str, str]


async def receive(ctx: context.Context, message_id: str, content: bytes) -> ProcessedReport:
    """Process mail to a message's return path. What has to be kept is on disk when this returns."""
    outcomes = dsn.read(content)
    if not any(outcome.action is dsn.Action.FAILED for outcome in outcomes):
        return ProcessedReport([Handled(ReportResult.NOT_A_FAILURE, outcome) for outcome in outcomes])
    async with ctx.store.scanning("reports") as tx:
        account_id = await messages.account_of(tx, message_id)
    if account_id is None:
        return ProcessedReport([Handled(ReportResult.UNKNOWN_MESSAGE, outcome) for outcome in outcomes])
    async with ctx.store.transaction() as tx:
        return await _record(ctx, tx, outcomes, account_id=account_id, message_id=message_id)


async def _record(
    ctx: context.Context,
    tx: store.Transaction,
    outcomes: Sequence[dsn.RecipientReport],
    *,
    account_id: str,
    message_id: str,
) -> ProcessedReport:
    now = ctx.clock()
    # Reports about one message serialize here, and so do those that count.
    locked = await accounts.lock(tx, [account_id])
    addressees = await async_bounces.addressees(tx, account_id, message_id)
    known = await async_bounces.of_message(tx, account_id, message_id)
    handled = _handle_all(outcomes, addressees, [(b.recipient_id, b.status, b.response) for b in known])
    # A row is identified by its time, so no two of a message share one.
    begin = max([now, *(bounce.received_at + 1 for bounce in known)])
    bounces: list[async_bounces.AsyncBounce] = []
    gone: list[suppressions.Suppression] = []
    for each in handled:
        if each.recipient and each.disposition:
            who, outcome, disposition = each.recipient, each.outcome, each.disposition
            details = (outcome.action, _status(outcome), disposition.fault or "", outcome.words)
            bounces.append(async_bounces.AsyncBounce(account_id, message_id, who.id, begin + len(bounces), *details))
            if each.is_gone and ctx.settings.delivery.suppress:
                why = (suppressions.Source.LATE_BOUNCE, outcome.words or disposition.reason)
                gone.append(
                    suppressions.Suppression(
                        account_id, who.email_key, *why, outcome.reply.code or None, message_id, now
                    )
                )
    await async_bounces.insert(tx, bounces)
    is_news = await _is_news(tx, handled, known, account_id=account_id)
    await suppressions.add(tx, gone)
    counted = [account_guard.AccountCounts(account_id, bounce_guard.Counts(bounces=1))] if is_news else []
    guard = account_guard.rules_of(ctx.settings.bounce_guard)
    return ProcessedReport(handled, await account_guard.count(tx, guard, counted, locked=locked, now=now))


async def _is_news(
    tx: store.Transaction, handled: Sequence[Handled], known: Sequence[async_bounces.AsyncBounce], *, account_id: str
) -> bool:
    """Whether this is the message's first asynchronous bounce, and at an address not suppressed before."""
    if any(bounce.fault == bounces_disposition.Fault.ADDRESS for bounce in known):
        return False
    gone = [each.recipient for each in handled if each.is_gone and each.recipient]
    places = {(account_id, who.email_key) for who in gone if who.status != mail.RecipientStatus.BOUNCED}
    return len(await suppressions.find(tx, sorted(places))) < len(places)


def _handle_all(
    outcomes: Sequence[dsn.RecipientReport],
    addressees: Sequence[async_bounces.ReportedRecipient],
    recorded: list[_Recorded],
) -> list[Handled]:
    handled = []
    for outcome in outcomes:
        each = _handle(outcome, _find(addressees, outcome), recorded)
        if each.recipient and each.result is ReportResult.RECORDED:
            recorded.append((each.recipient.id, _status(outcome), outcome.words))
        handled.append(each)
    return handled


def _handle(
    outcome: dsn.RecipientReport, recipient: async_bounces.ReportedRecipient | None, recorded: Sequence[_Recorded]
) -> Handled:
    if outcome.action is not dsn.Action.FAILED:
        return Handled(ReportResult.NOT_A_FAILURE, outcome, recipient)
    if recipient is None:
        return Handled(ReportResult.UNKNOWN_RECIPIENT, outcome)
    if recipient.status not in mail.FINAL:
        return Handled(ReportResult.NOT_FINAL, outcome, recipient)
    if (recipient.id, _status(outcome), outcome.words) in recorded:
        return Handled(ReportResult.REPEATED, outcome, recipient)
    if sum(recipient_id == recipient.id for recipient_id, _, _ in recorded) >= MAX_PER_RECIPIENT:
        return Handled(ReportResult.TOO_MANY, outcome, recipient)
    disposition = bounces_disposition.classify(values.RecipientResult(values.Stage.CONTENT, outcome.reply))
    # The address may be a list or be forwarded: a missing one behind it says nothing about itself.
    is_itself = address.key_of(outcome.final_recipient) in {"", recipient.email_key}
    is_gone = (
        disposition.verdict is bounces_disposition.Verdict.BOUNCED
        and disposition.fault is bounces_disposition.Fault.ADDRESS
        and is_itself
    )
    return Handled(ReportResult.RECORDED, outcome, recipient, disposition, is_gone)


def _find(
    addressees: Sequence[async_bounces.ReportedRecipient], outcome: dsn.RecipientReport
) -> async_bounces.ReportedRecipient | None:
    """The recipient that a report means; a report without a name can only mean an only recipient."""
    named = [address.key_of(text) for text in (outcome.final_recipient, outcome.original_recipient) if text]
    for key in named:
        for recipient in addressees:
            if recipient.email_key == key:
                return recipient
    return addressees[0] if len(addressees) == 1 and not named else None


def _status(outcome: dsn.RecipientReport) -> str:
    return outcome.reply.enhanced or outcome.status
