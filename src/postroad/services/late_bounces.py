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

from postroad.model import bounce_guard, judging, mail
from postroad.protocol import address, dsn
from postroad.protocol.smtp import values
from postroad.services import context, guarding
from postroad.storage import accounts, late_bounces, store, suppressions

# Whoever got a message knows its token: nobody may fill the store with ever new reports about it.
MOST_FOR_RECIPIENT: Final = 10


class Fate(StrEnum):
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

    fate: Fate
    outcome: dsn.Outcome
    addressee: late_bounces.Addressee | None = None
    judgement: judging.Judgement | None = None
    is_gone: bool = False


class Received(msgspec.Struct, frozen=True):
    """What became of each outcome of a report, and what the bounce guard did."""

    handled: Sequence[Handled]
    notices: Sequence[guarding.Notice] = ()


# A failure as it is told: of whom, with which status, in which words.
_Told = tuple[str, str, str]


async def receive(ctx: context.Context, message_id: str, content: bytes) -> Received:
    """Read mail that came to a message's return path. What has to be kept is on disk when this returns."""
    outcomes = dsn.read(content)
    if not any(outcome.action is dsn.Action.FAILED for outcome in outcomes):
        return Received([Handled(Fate.NOT_A_FAILURE, outcome) for outcome in outcomes])
    async with ctx.store.scanning() as tx:
        account_id = await late_bounces.account_of(tx, message_id)
    if account_id is None:
        return Received([Handled(Fate.UNKNOWN_MESSAGE, outcome) for outcome in outcomes])
    async with ctx.store.transaction() as tx:
        return await _record(ctx, tx, outcomes, account_id=account_id, message_id=message_id)


async def _record(
    ctx: context.Context, tx: store.Transaction, outcomes: Sequence[dsn.Outcome], *, account_id: str, message_id: str
) -> Received:
    now = ctx.clock()
    # Reports about one message wait for each other here, and those who count for each other too.
    locked = await accounts.lock(tx, [account_id])
    addressees = await late_bounces.addressees(tx, account_id, message_id)
    known = await late_bounces.of_message(tx, account_id, message_id)
    handled = _handle_all(outcomes, addressees, [(b.recipient_id, b.status, b.response) for b in known])
    # A row is known by its time, so no two of a message have the same.
    begin = max([now, *(bounce.received_at + 1 for bounce in known)])
    bounces: list[late_bounces.LateBounce] = []
    gone: list[suppressions.Suppression] = []
    for each in handled:
        if each.addressee and each.judgement:
            who, outcome, judgement = each.addressee, each.outcome, each.judgement
            told = (outcome.action, _status(outcome), judgement.fault or "", outcome.words)
            bounces.append(late_bounces.LateBounce(account_id, message_id, who.id, begin + len(bounces), *told))
            if each.is_gone and ctx.settings.delivery.suppress:
                why = (suppressions.Source.LATE_BOUNCE, outcome.words or judgement.reason)
                gone.append(
                    suppressions.Suppression(
                        account_id, who.email_key, *why, outcome.reply.code or None, message_id, now
                    )
                )
    await late_bounces.insert(tx, bounces)
    is_news = await _is_news(tx, handled, known, account_id=account_id)
    await suppressions.add(tx, gone)
    counted = [guarding.Counted(account_id, bounce_guard.Counts(bounces=1))] if is_news else []
    guard = guarding.rules_of(ctx.settings.bounce_guard)
    return Received(handled, await guarding.count(tx, guard, counted, locked=locked, now=now))


async def _is_news(
    tx: store.Transaction, handled: Sequence[Handled], known: Sequence[late_bounces.LateBounce], *, account_id: str
) -> bool:
    """Whether the message bounces late for the first time, and at an address that nobody had given up before."""
    if any(bounce.fault == judging.Fault.ADDRESS for bounce in known):
        return False
    gone = [each.addressee for each in handled if each.is_gone and each.addressee]
    places = {(account_id, who.email_key) for who in gone if who.status != mail.RecipientStatus.BOUNCED}
    return len(await suppressions.find(tx, sorted(places))) < len(places)


def _handle_all(
    outcomes: Sequence[dsn.Outcome], addressees: Sequence[late_bounces.Addressee], told: list[_Told]
) -> list[Handled]:
    handled = []
    for outcome in outcomes:
        each = _handle(outcome, _find(addressees, outcome), told)
        if each.addressee and each.fate is Fate.RECORDED:
            told.append((each.addressee.id, _status(outcome), outcome.words))
        handled.append(each)
    return handled


def _handle(outcome: dsn.Outcome, addressee: late_bounces.Addressee | None, told: Sequence[_Told]) -> Handled:
    if outcome.action is not dsn.Action.FAILED:
        return Handled(Fate.NOT_A_FAILURE, outcome, addressee)
    if addressee is None:
        return Handled(Fate.UNKNOWN_RECIPIENT, outcome)
    if addressee.status not in mail.FINAL:
        return Handled(Fate.NOT_FINAL, outcome, addressee)
    if (addressee.id, _status(outcome), outcome.words) in told:
        return Handled(Fate.REPEATED, outcome, addressee)
    if sum(recipient_id == addressee.id for recipient_id, _, _ in told) >= MOST_FOR_RECIPIENT:
        return Handled(Fate.TOO_MANY, outcome, addressee)
    judgement = judging.judge(values.Result(values.Stage.CONTENT, outcome.reply))
    # The address may be a list or be forwarded: that one behind it does not exist says nothing of itself.
    is_itself = address.key_of(outcome.final_recipient) in {"", addressee.email_key}
    is_gone = judgement.verdict is judging.Verdict.BOUNCED and judgement.fault is judging.Fault.ADDRESS and is_itself
    return Handled(Fate.RECORDED, outcome, addressee, judgement, is_gone)


def _find(addressees: Sequence[late_bounces.Addressee], outcome: dsn.Outcome) -> late_bounces.Addressee | None:
    """Whom a report means; one that names nobody can only mean the only one."""
    named = [address.key_of(text) for text in (outcome.final_recipient, outcome.original_recipient) if text]
    for key in named:
        for addressee in addressees:
            if addressee.email_key == key:
                return addressee
    return addressees[0] if len(addressees) == 1 and not named else None


def _status(outcome: dsn.Outcome) -> str:
    return outcome.reply.enhanced or outcome.status
