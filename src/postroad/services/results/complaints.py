"""Complaints: somebody has told their mailbox provider that a message was unwanted, and the provider tells us.

The message is found by its token, which nobody can invent: in the envelope sender that the report names, in the return
path of the message that came back, or in the address that the report was sent to. The recipient is the one that the
report names; where the provider hides it, the only one. A complaint is written down beside the recipient once, and puts
the address onto the suppression list, whatever `delivery.suppress` says of addresses that do not exist: whoever
complains gets no more mail. Whatever reason the list had before gives way, so that no account can lift it by itself.
Reports of other types, such as `not-spam`, are kept nowhere.

Whoever got a message knows its token, and can name the others. So the bounce guard counts one complaint for a message,
ever, and one for an address as long as the list knows it.
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
from postroad.storage import accounts, async_bounces, store, suppressions

# The local part of the address that providers send reports to, at the domain of return paths.
LOCAL_PART: Final = "complaints"
# The `action` of a complaint in the log of late reports.
ACTION: Final = "complaint"
# What a person has said (RFC 5965 section 7.3): it is spam, or it is a fraud.
KINDS: Final = frozenset({"abuse", "fraud"})
# What was given up may have arrived: the answer to its content may have been lost.
ARRIVED: Final = frozenset({mail.RecipientStatus.DELIVERED, mail.RecipientStatus.FAILED})


class ReportResult(StrEnum):
    """What became of a report, or of one recipient that it names."""

    RECORDED = "recorded"
    REPEATED = "repeated"
    NOT_DELIVERED = "not_delivered"
    NOT_A_COMPLAINT = "not_a_complaint"
    UNKNOWN_RECIPIENT = "unknown_recipient"
    UNKNOWN_MESSAGE = "unknown_message"


class Handled(msgspec.Struct, frozen=True):
    """What became of a complaint, of whom it was, and of which message."""

    result: ReportResult
    message_id: str | None = None
    recipient_id: str | None = None


class ProcessedReport(msgspec.Struct, frozen=True):
    """What became of each complaint of a report, and what the bounce guard did."""

    handled: Sequence[Handled]
    notices: Sequence[account_guard.Notice] = ()


def is_ours(ctx: context.Context, recipient: str) -> bool:
    """Whether this is the address for complaints."""
    domain = ctx.settings.delivery.return_path_domain
    return bool(domain) and recipient.lower() == f"{LOCAL_PART}@{domain}".lower()


async def receive(ctx: context.Context, report: arf.FeedbackReport, *, sent_to: str) -> ProcessedReport:
    """Take a report that came to this address. What has to be kept is on disk when this returns."""
    message_id = _message_id(ctx, [*report.senders, sent_to])
    if report.kind not in KINDS:
        return ProcessedReport([Handled(ReportResult.NOT_A_COMPLAINT, message_id)])
    if message_id is None:
        return ProcessedReport([Handled(ReportResult.UNKNOWN_MESSAGE)])
    async with ctx.store.scanning() as tx:
        account_id = await async_bounces.account_of(tx, message_id)
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
    told = {bounce.recipient_id for bounce in known if bounce.action == ACTION}
    results = [(who, _result(who, told)) for who in _find(addressees, report.recipients)]
    complaining = [who for who, result in results if who and result is ReportResult.RECORDED]
    now, words = ctx.clock(), f"feedback report: {report.kind}"
    # A row is known by its time, so no two of a message have the same.
    begin = max([now, *(bounce.received_at + 1 for bounce in known)])
    kept = [
        async_bounces.LateBounce(account_id, message_id, who.id, begin + place, ACTION, "", "", words)
        for place, who in enumerate(complaining)
    ]
    await async_bounces.insert(tx, kept)
    why = (suppressions.Source.COMPLAINT, words, None, message_id, now)
    is_news = await _suppress(tx, [suppressions.Suppression(account_id, who.email_key, *why) for who in complaining])
    counted = (
        [account_guard.AccountCounts(account_id, bounce_guard.Counts(complaints=1))] if is_news and not told else []
    )
    guard = account_guard.rules_of(ctx.settings.bounce_guard)
    notices = await account_guard.count(tx, guard, counted, locked=locked, now=now)
    return ProcessedReport([Handled(result, message_id, who.id if who else None) for who, result in results], notices)


async def _suppress(tx: store.Transaction, wanted: Sequence[suppressions.Suppression]) -> bool:
    """Put addresses onto the list as complaints, and say whether any was not there as one before."""
    found = await suppressions.find(tx, [(each.account_id, each.email_key) for each in wanted])
    for account_id, email_key in sorted(found):
        if found[account_id, email_key].source != suppressions.Source.COMPLAINT:
            await suppressions.remove(tx, account_id, email_key)
    return bool(await suppressions.add(tx, wanted))


def _find(
    addressees: Sequence[async_bounces.ReportedRecipient], named: Sequence[str]
) -> Sequence[async_bounces.ReportedRecipient | None]:
    """Whom a report means: those that it names, as far as they are the message's; else the only one there is."""
    by_key = {recipient.email_key: recipient for recipient in addressees}
    found = [by_key[key] for key in dict.fromkeys(map(address.key_of, named)) if key in by_key]
    if found:
        return found
    return addressees if len(addressees) == 1 else [None]


def _result(who: async_bounces.ReportedRecipient | None, told: Collection[str]) -> ReportResult:
    if who is None:
        return ReportResult.UNKNOWN_RECIPIENT
    if who.status not in ARRIVED:
        return ReportResult.NOT_DELIVERED
    return ReportResult.REPEATED if who.id in told else ReportResult.RECORDED
