"""Complaints: a mailbox provider reports that its user marked a message as unwanted (RFC 5965).

The message is found by its signed token: in the envelope sender that the report names, in the return path of the
returned message, or in the address that the report was sent to. The recipient is the one that the report names or, if
the provider hides it, the only one. A complaint is recorded once with the recipient and suppresses the address,
whatever `delivery.suppress` says, replacing any earlier reason, so that the account cannot lift it. Reports of other
types, such as `not-spam`, are not stored.

Anyone who got a message knows its token and can name the other recipients. So the bounce guard counts at most one
complaint per message, and one per address while it is suppressed.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model import bounce_guard, mail
from postroad.protocol import address
from postroad.protocol.reports import arf
from postroad.services import context, return_path
from postroad.services.results import bounce_guard as account_guard
from postroad.storage import accounts, async_bounces, messages, store, suppressions

# The local part of the address for reports, at the domain of return paths.
LOCAL_PART: Final = "complaints"
# The `action` of a complaint among the reports of a recipient.
ACTION: Final = "complaint"
# Complaints (RFC 5965 section 7.3): spam or fraud.
KINDS: Final = frozenset({"abuse", "fraud"})
# A failed recipient may have got the message: the reply to its content may have been lost.
ARRIVED: Final = frozenset({mail.RecipientStatus.DELIVERED, mail.RecipientStatus.FAILED})


class ReportResult(StrEnum):
    """The result of a report, or of one recipient that it names."""

    RECORDED = "recorded"
    REPEATED = "repeated"
    NOT_DELIVERED = "not_delivered"
    NOT_A_COMPLAINT = "not_a_complaint"
    UNKNOWN_RECIPIENT = "unknown_recipient"
    UNKNOWN_MESSAGE = "unknown_message"


class Handled(msgspec.Struct, frozen=True):
    """A complaint's result, its recipient and its message."""

    result: ReportResult
    message_id: str | None = None
    recipient_id: str | None = None


class ProcessedReport(msgspec.Struct, frozen=True):
    """The results of a report's complaints, and the bounce guard's actions."""

    handled: Sequence[Handled]
    notices: Sequence[account_guard.Notice] = ()


def is_ours(ctx: context.Context, recipient: str) -> bool:
    """Whether this is the address for complaints."""
    domain = ctx.settings.delivery.return_path_domain
    return bool(domain) and recipient.lower() == f"{LOCAL_PART}@{domain}".lower()


async def receive(ctx: context.Context, report: arf.FeedbackReport, *, sent_to: str) -> ProcessedReport:
    """Process a report sent to this address. What has to be kept is on disk when this returns."""
    message_id = _message_id(ctx, [*report.senders, sent_to])
    if report.kind not in KINDS:
        return ProcessedReport([Handled(ReportResult.NOT_A_COMPLAINT, message_id)])
    if message_id is None:
        return ProcessedReport([Handled(ReportResult.UNKNOWN_MESSAGE)])
    async with ctx.store.scanning("reports") as tx:
        account_id = await messages.account_of(tx, message_id)
    if account_id is None:
        return ProcessedReport([Handled(ReportResult.UNKNOWN_MESSAGE, message_id)])
    async with ctx.store.transaction() as tx:
        return await _record(ctx, tx, report, account_id=account_id, message_id=message_id)


def _message_id(ctx: context.Context, addresses: Sequence[str]) -> str | None:
    found = (return_path.read(ctx.keys.return_path, text) for text in addresses)
    return next((message_id for message_id in found if message_id is not None), None)


async def _record(
    ctx: context.Context,
    tx: store.Transaction,
    report: arf.FeedbackReport,
    *,
    account_id: str,
    message_id: str,
) -> ProcessedReport:
    locked = await accounts.lock(tx, [account_id])
    addressees = await async_bounces.addressees(tx, account_id, message_id)
    known = await async_bounces.of_message(tx, account_id, message_id)
    complained = {bounce.recipient_id for bounce in known if bounce.action == ACTION}
    results = [(who, _result(who, complained)) for who in _find(addressees, report.recipients)]
    complaining = [who for who, result in results if who and result is ReportResult.RECORDED]
    now, words = ctx.clock(), f"feedback report: {report.kind}"
    # A row is identified by its time, so no two of a message share one.
    begin = max([now, *(bounce.received_at + 1 for bounce in known)])
    kept = [
        async_bounces.AsyncBounce(account_id, message_id, who.id, begin + place, ACTION, "", "", words)
        for place, who in enumerate(complaining)
    ]
    await async_bounces.insert(tx, kept)
    why = (suppressions.Source.COMPLAINT, words, None, message_id, now)
    is_news = await _suppress(tx, [suppressions.Suppression(account_id, who.email_key, *why) for who in complaining])
    counted = (
        [account_guard.AccountCounts(account_id, bounce_guard.Counts(complaints=1))]
        if is_news and not complained
        else []
    )
    guard = account_guard.rules_of(ctx.settings.bounce_guard)
    notices = await account_guard.count(tx, guard, counted, locked=locked, now=now)
    return ProcessedReport([Handled(result, message_id, who.id if who else None) for who, result in results], notices)


async def _suppress(tx: store.Transaction, wanted: Sequence[suppressions.Suppression]) -> bool:
    """Suppress addresses as complaints; returns whether any was not suppressed as one before."""
    found = await suppressions.find(tx, [(each.account_id, each.email_key) for each in wanted])
    for account_id, email_key in sorted(found):
        if found[account_id, email_key].source != suppressions.Source.COMPLAINT:
            await suppressions.remove(tx, account_id, email_key)
    return bool(await suppressions.add(tx, wanted))


def _find(
    addressees: Sequence[async_bounces.ReportedRecipient], named: Sequence[str]
) -> Sequence[async_bounces.ReportedRecipient | None]:
    """The recipients that a report means: those it names in the message, or the only one."""
    by_key = {recipient.email_key: recipient for recipient in addressees}
    found = [by_key[key] for key in dict.fromkeys(map(address.key_of, named)) if key in by_key]
    if found:
        return found
    return addressees if len(addressees) == 1 else [None]


def _result(who: async_bounces.ReportedRecipient | None, complained: Collection[str]) -> ReportResult:
    if who is None:
        return ReportResult.UNKNOWN_RECIPIENT
    if who.status not in ARRIVED:
        return ReportResult.NOT_DELIVERED
    return ReportResult.REPEATED if who.id in complained else ReportResult.RECORDED
