"""Late bounces: what comes back to a return path after a host had taken the message.

A report is matched to its message by the token that it was sent to, and to a recipient by the address that it names. A
failure is written down beside the recipient, once however often it is told; the recipient's own state stays, because
final is final. An address that does not exist is put onto the suppression list. Everything else is told to the caller,
who may log it, and kept nowhere: delays, successes, reports about others, mail that is no report.

Whoever got a message knows its token, and can claim this of all its recipients. So the bounce guard counts one late
bounce for a message, ever, and none of an address that is on the list already.
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
from postroad.storage import accounts, async_bounces, store, suppressions

# Whoever got a message knows its token: nobody may fill the store with ever new reports about it.
MAX_PER_RECIPIENT: Final = 10


class ReportResult(StrEnum):
    """What became of one outcome of a report."""

    RECORDED = "recorded"
    REPEATED = "repeated"
    TOO_MANY = "too_many"
    NOT_FINAL = "not_final"
    NOT_A_FAILURE = "not_a_failure"
    UNKNOWN_RECIPIENT = "unknown_recipient"
    UNKNOWN_MESSAGE = "unknown_message"


class Handled(msgspec.Struct, frozen=True):
    """An outcome of a report and what became of it; of one that was recorded, the judgement too.

    `is_gone`: the report says that this very address does not exist.
    """

    result: ReportResult
    outcome: dsn.RecipientReport
    recipient: async_bounces.ReportedRecipient | None = None
    disposition: bounces_disposition.Disposition | None = None
    is_gone: bool = False


class ProcessedReport(msgspec.Struct, frozen=True):
    """What became of each outcome of a report, and what the bounce guard did."""

    handled: Sequence[Handled]
    notices: Sequence[account_guard.Notice] = ()


# A failure as it is told: of whom, with which status, in which words.
_Told = tuple[str, str, str]


async def receive(ctx: context.Context, message_id: str, content: bytes) -> ProcessedReport:
    """Read mail that came to a message's return path. What has to be kept is on disk when this returns."""
    outcomes = dsn.read(content)
    if not any(outcome.action is dsn.Action.FAILED for outcome in outcomes):
        return ProcessedReport([Handled(ReportResult.NOT_A_FAILURE, outcome) for outcome in outcomes])
    async with ctx.store.scanning() as tx:
        account_id = await async_bounces.account_of(tx, message_id)
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
    # Reports about one message wait for each other here, and those who count for each other too.
    locked = await accounts.lock(tx, [account_id])
    addressees = await async_bounces.addressees(tx, account_id, message_id)
    known = await async_bounces.of_message(tx, account_id, message_id)
    handled = _handle_all(outcomes, addressees, [(b.recipient_id, b.status, b.response) for b in known])
    # A row is known by its time, so no two of a message have the same.
    begin = max([now, *(bounce.received_at + 1 for bounce in known)])
    bounces: list[async_bounces.LateBounce] = []
    gone: list[suppressions.Suppression] = []
    for each in handled:
        if each.recipient and each.disposition:
            who, outcome, disposition = each.recipient, each.outcome, each.disposition
            told = (outcome.action, _status(outcome), disposition.fault or "", outcome.words)
            bounces.append(async_bounces.LateBounce(account_id, message_id, who.id, begin + len(bounces), *told))
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
    tx: store.Transaction, handled: Sequence[Handled], known: Sequence[async_bounces.LateBounce], *, account_id: str
) -> bool:
    """Whether the message bounces late for the first time, and at an address that nobody had given up before."""
    if any(bounce.fault == bounces_disposition.Fault.ADDRESS for bounce in known):
        return False
    gone = [each.recipient for each in handled if each.is_gone and each.recipient]
    places = {(account_id, who.email_key) for who in gone if who.status != mail.RecipientStatus.BOUNCED}
    return len(await suppressions.find(tx, sorted(places))) < len(places)


def _handle_all(
    outcomes: Sequence[dsn.RecipientReport], addressees: Sequence[async_bounces.ReportedRecipient], told: list[_Told]
) -> list[Handled]:
    handled = []
    for outcome in outcomes:
        each = _handle(outcome, _find(addressees, outcome), told)
        if each.recipient and each.result is ReportResult.RECORDED:
            told.append((each.recipient.id, _status(outcome), outcome.words))
        handled.append(each)
    return handled


def _handle(
    outcome: dsn.RecipientReport, recipient: async_bounces.ReportedRecipient | None, told: Sequence[_Told]
) -> Handled:
    if outcome.action is not dsn.Action.FAILED:
        return Handled(ReportResult.NOT_A_FAILURE, outcome, recipient)
    if recipient is None:
        return Handled(ReportResult.UNKNOWN_RECIPIENT, outcome)
    if recipient.status not in mail.FINAL:
        return Handled(ReportResult.NOT_FINAL, outcome, recipient)
    if (recipient.id, _status(outcome), outcome.words) in told:
        return Handled(ReportResult.REPEATED, outcome, recipient)
    if sum(recipient_id == recipient.id for recipient_id, _, _ in told) >= MAX_PER_RECIPIENT:
        return Handled(ReportResult.TOO_MANY, outcome, recipient)
    disposition = bounces_disposition.classify(values.RecipientResult(values.Stage.CONTENT, outcome.reply))
    # The address may be a list or be forwarded: that one behind it does not exist says nothing of itself.
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
    """Whom a report means; one that names nobody can only mean the only one."""
    named = [address.key_of(text) for text in (outcome.final_recipient, outcome.original_recipient) if text]
    for key in named:
        for recipient in addressees:
            if recipient.email_key == key:
                return recipient
    return addressees[0] if len(addressees) == 1 and not named else None


def _status(outcome: dsn.RecipientReport) -> str:
    return outcome.reply.enhanced or outcome.status
