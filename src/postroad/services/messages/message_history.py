"""What happened to the newest messages of an account, event by event, and what it has sent to one address."""

import collections
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.bounces import disposition
from postroad.model.mail import statuses
from postroad.protocol.mime import address
from postroad.services.messages import lookup
from postroad.storage.engine import store
from postroad.storage.mail import attempts, messages, suppressions

MAX_TAIL_MESSAGES: Final = 100
MAX_EVENTS: Final = 300
# Each recipient has an event sooner or later.
MAX_RECIPIENTS: Final = MAX_EVENTS
# As much as a line shows.
REPLY_CHARACTERS: Final = 300
ACCEPTED: Final = "accepted"


class Event(msgspec.Struct, frozen=True):
    """One line. `at` is None for what ended without an attempt at a time that is not stored."""

    key: str
    at: int | None
    kind: str
    message_id: str
    text: str


async def newest_events(ctx: context.Context, account_id: str, found: lookup.SearchPage) -> list[Event]:
    """The newest events of the messages of a page, oldest first."""
    newest = list(_newest(found.messages))
    ids = [message.id for message in newest]
    async with ctx.store.scanning(account_id) as tx:
        reached = await messages.recipient_results(tx, account_id, ids)
        ended = await attempts.latest_ends(tx, account_id, ids, limit=MAX_EVENTS, characters=REPLY_CHARACTERS)
    by_recipient: dict[str, list[attempts.AttemptEnd]] = {}
    # No event before these is shown.
    for attempt in sorted(ended, key=lambda end: end.at)[-MAX_EVENTS:]:
        by_recipient.setdefault(attempt.recipient_id, []).append(attempt)
    timed: list[tuple[int, Event]] = []
    for message in newest:
        timed.append((message.created_at, _accepted(message)))
        for recipient in reached.get(message.id, []):
            its_events = _of_recipient(recipient, by_recipient.get(recipient.id, []))
            timed.extend((event.at or message.created_at, event) for event in its_events)
    return [event for _, event in sorted(timed, key=lambda pair: pair[0])][-MAX_EVENTS:]


def _newest(found: Sequence[messages.Message]) -> Iterator[messages.Message]:
    """Messages with at most so many recipients together, and at least one message."""
    reached = 0
    for message in found:
        reached += message.recipient_count
        if reached > max(MAX_RECIPIENTS, message.recipient_count):
            return
        yield message


def _accepted(message: messages.Message) -> Event:
    counted = "1 recipient" if message.recipient_count == 1 else f"{message.recipient_count} recipients"
    text = f"{message.sender}, {counted}  {message.subject}"
    return Event(message.id, message.created_at, ACCEPTED, message.id, text)


def _of_recipient(recipient: messages.RecipientResult, ended: Sequence[attempts.AttemptEnd]) -> Iterator[Event]:
    for attempt in ended:
        is_final = attempt.verdict != disposition.Verdict.RETRY
        kind = (
            recipient.status
            if is_final and recipient.status in statuses.FINAL
            else statuses.RecipientStatus.DEFERRED.value
        )
        yield _event(f"{recipient.id} {attempt.at}", attempt.at, kind, recipient, attempt.smtp_code, attempt.response)
    has_end = bool(ended) and ended[-1].verdict != disposition.Verdict.RETRY
    if recipient.status in statuses.FINAL and not has_end:
        at = recipient.delivered_at or recipient.bounced_at
        yield _event(
            f"{recipient.id} end",
            at,
            recipient.status,
            recipient,
            recipient.last_smtp_code,
            recipient.last_smtp_response,
        )


def _event(  # noqa: PLR0917 - a line, in reading order
    key: str, at: int | None, kind: str, recipient: messages.RecipientResult, code: int | None, response: str | None
) -> Event:
    said = " ".join((response or "").split())
    shown = said if code is None or said.startswith(str(code)) else f"{code} {said}"
    return Event(key, at, kind, recipient.message_id, f"{recipient.email}  {shown}".rstrip())


# What an account has sent to one address: its latest messages with their results, and whether it is suppressed.
#
# Bounded by the index of recipients, however much was sent: the counts are those of the messages that are listed.

# What a person reads through; the search has the rest.
MAX_MESSAGES: Final = 100


class History(msgspec.Struct, frozen=True):
    """Messages to an address, newest first; `has_more` when there are older ones."""

    email_key: str
    sent: list[messages.Sent]
    has_more: bool
    first_at: int | None
    suppression: suppressions.Suppression | None
    # The lists that it has left.
    lists: list[str]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many of the listed messages have each status, most first."""
        return dict(collections.Counter(message.status for message in self.sent).most_common())


async def of_address(ctx: context.Context, account_id: str, email: str) -> History:
    """The history of an address in any spelling. NotFound when nothing is known of it."""
    key = ""
    with contextlib.suppress(address.AddressError):
        key = address.parse(email).key
    async with ctx.store.scanning(account_id) as tx:
        history = await _read(tx, account_id, key) if key else None
    if history is None or not (history.sent or history.suppression or history.lists):
        raise errors.NotFound("this account has sent nothing to this address")
    return history


async def _read(tx: store.Transaction, account_id: str, key: str) -> History:
    sent = await messages.sent_to(tx, account_id, key, limit=MAX_MESSAGES + 1)
    suppressed = await suppressions.find(tx, [(account_id, key)])
    has_more = len(sent) > MAX_MESSAGES
    first_at = await messages.first_sent_at(tx, account_id, key) if has_more else None
    if sent and not has_more:
        first_at = sent[-1].created_at
    names = await suppressions.lists(tx, account_id, limit=suppressions.MAX_LISTS)
    left = await suppressions.find_left(tx, [(account_id, name, key) for name in names]) if names else {}
    lists = [row.list_name for row in left.values()]
    return History(key, sent[:MAX_MESSAGES], has_more, first_at, suppressed.get((account_id, key)), lists)
