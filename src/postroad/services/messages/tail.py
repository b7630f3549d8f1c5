"""What happened to the newest messages of an account, event by event, as `postroad tail` shows it.

The events are those of the newest `MAX_MESSAGES` that match a search: accepted, deferred, and the final status of each
recipient. What happens to older ones is in the list and on their pages. A page reloads by itself, so it reads little,
however many recipients a message has, however often destinations defer, and whatever they reply.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from postroad.model import mail
from postroad.model.bounces import disposition
from postroad.services import context
from postroad.services.messages import lookup
from postroad.storage import attempts, messages, recipients

MAX_MESSAGES: Final = 100
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


async def events(ctx: context.Context, account_id: str, found: lookup.SearchPage) -> list[Event]:
    """The newest events of the messages of a page, oldest first."""
    newest = list(_newest(found.messages))
    ids = [one.id for one in newest]
    async with ctx.store.scanning(account_id) as tx:
        reached = await recipients.results_of_messages(tx, account_id, ids)
        ended = await attempts.latest_ends(tx, account_id, ids, limit=MAX_EVENTS, characters=REPLY_CHARACTERS)
    by_recipient: dict[str, list[attempts.AttemptEnd]] = {}
    # No event before these is shown.
    for one in sorted(ended, key=lambda one: one.at)[-MAX_EVENTS:]:
        by_recipient.setdefault(one.recipient_id, []).append(one)
    timed: list[tuple[int, Event]] = []
    for message in newest:
        timed.append((message.created_at, _accepted(message)))
        for recipient in reached.get(message.id, []):
            its_events = _of_recipient(recipient, by_recipient.get(recipient.id, []))
            timed.extend((event.at or message.created_at, event) for event in its_events)
    return [event for _, event in sorted(timed, key=lambda one: one[0])][-MAX_EVENTS:]


def _newest(found: Sequence[messages.Message]) -> Iterator[messages.Message]:
    """Messages with at most so many recipients together, and at least one message."""
    reached = 0
    for one in found:
        reached += one.recipient_count
        if reached > max(MAX_RECIPIENTS, one.recipient_count):
            return
        yield one


def _accepted(message: messages.Message) -> Event:
    counted = "1 recipient" if message.recipient_count == 1 else f"{message.recipient_count} recipients"
    text = f"{message.sender}, {counted}  {message.subject}"
    return Event(message.id, message.created_at, ACCEPTED, message.id, text)


def _of_recipient(one: recipients.RecipientResult, ended: Sequence[attempts.AttemptEnd]) -> Iterator[Event]:
    for attempt in ended:
        is_final = attempt.verdict != disposition.Verdict.RETRY
        kind = one.status if is_final and one.status in mail.FINAL else mail.RecipientStatus.DEFERRED.value
        yield _event(f"{one.id} {attempt.at}", attempt.at, kind, one, attempt.smtp_code, attempt.response)
    has_end = bool(ended) and ended[-1].verdict != disposition.Verdict.RETRY
    if one.status in mail.FINAL and not has_end:
        at = one.delivered_at or one.bounced_at
        yield _event(f"{one.id} end", at, one.status, one, one.last_smtp_code, one.last_smtp_response)


def _event(  # noqa: PLR0917 - a line, in reading order
    key: str, at: int | None, kind: str, one: recipients.RecipientResult, code: int | None, response: str | None
) -> Event:
    said = " ".join((response or "").split())
    shown = said if code is None or said.startswith(str(code)) else f"{code} {said}"
    return Event(key, at, kind, one.message_id, f"{one.email}  {shown}".rstrip())
