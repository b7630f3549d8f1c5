"""The reconciliation: what each party knows is compared with what the others know, check by check.

Each check is a function of the snapshot that yields what is wrong. It covers one guarantee and no other, so a finding
names the guarantee that was broken.
"""

import collections
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tests.chaos.snapshot import Snapshot

FINAL_MESSAGES: Final = {"delivered", "partial", "failed"}
EVENT_OF: Final = {"delivered": "email.delivered", "bounced": "email.bounced", "failed": "email.failed"}
SUCCEEDED: Final = range(200, 300)


class Finding(NamedTuple):
    """Something that is wrong, and the message whose trace explains it."""

    text: str
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check examined and found."""

    name: str
    says: str
    examined: int
    findings: Sequence[Finding]


def answers(snapshot: Snapshot) -> Iterator[Finding]:
    """Every sender got an answer, and the same answer for the same key."""
    for problem in snapshot.problems:
        yield Finding(problem)


def stored(snapshot: Snapshot) -> Iterator[Finding]:
    """Every acknowledged submission is stored under its id, with its recipients."""
    messages = {message.id: message for message in snapshot.messages}
    emails: dict[str, set[str]] = collections.defaultdict(set)
    for recipient in snapshot.recipients:
        emails[recipient.message_id].add(recipient.email)
    for submission in snapshot.submissions:
        if submission.message_id is None:
            continue
        message = messages.get(submission.message_id)
        if message is None or message.key != submission.key:
            yield Finding(
                f"{submission.key} was accepted as {submission.message_id}, which is not there", submission.message_id
            )
        elif emails[message.id] != set(submission.recipients):
            yield Finding(
                f"{submission.key} was accepted for {submission.recipients}, not {emails[message.id]}", message.id
            )


def one_message(snapshot: Snapshot) -> Iterator[Finding]:
    """Each key has one message, and every message was submitted by a sender."""
    sent = {submission.key: submission for submission in snapshot.submissions}
    counts = collections.Counter(message.key for message in snapshot.messages)
    for message in snapshot.messages:
        if counts[message.key] > 1:
            yield Finding(f"{message.key} has {counts[message.key]} messages", message.id)
        if message.key not in sent:
            yield Finding(f"{message.id} is a message that nobody sent", message.id)


def one_charge(snapshot: Snapshot) -> Iterator[Finding]:
    """Each message is charged once, one credit per recipient; nothing else is charged; its key refers to it."""
    counts = {message.id: message.recipient_count for message in snapshot.messages}
    charges: dict[str | None, list[int]] = collections.defaultdict(list)
    for entry in snapshot.ledger:
        if entry.kind == "reserve":
            charges[entry.message_id].append(entry.reserved)
    for message_id in charges.keys() | counts.keys():
        expected = [counts[message_id]] if message_id in counts else []
        if charges[message_id] != expected:
            yield Finding(f"{message_id} was charged {charges[message_id]} credits, not {expected}", message_id)
    keys = collections.Counter((key.key, key.message_id) for key in snapshot.keys)
    for message in snapshot.messages:
        if keys[message.key, message.id] != 1:
            yield Finding(f"{message.key} does not refer to {message.id} exactly once", message.id)
    if sum(keys.values()) != len(snapshot.messages):
        yield Finding(f"{sum(keys.values())} keys are used, and there are {len(snapshot.messages)} messages")


def credits_agree(snapshot: Snapshot) -> Iterator[Finding]:
    """The final cost of a message is one credit for each recipient that did not bounce."""
    cost: collections.Counter[str | None] = collections.Counter()
    held: collections.Counter[str | None] = collections.Counter()
    for entry in snapshot.ledger:
        cost[entry.message_id] -= entry.available
        held[entry.message_id] += entry.reserved
    expected = collections.Counter(one.message_id for one in snapshot.recipients if one.status != "bounced")
    for message in snapshot.messages:
        if (cost[message.id], held[message.id]) != (expected[message.id], 0):
            text = f"{message.id} has cost {cost[message.id]} and holds {held[message.id]}, not {expected[message.id]}"
            yield Finding(text, message.id)


def charts_agree(snapshot: Snapshot) -> Iterator[Finding]:
    """The hourly counts agree with the messages and recipients."""
    statuses = collections.Counter(recipient.status for recipient in snapshot.recipients)
    expected = {"messages": len(snapshot.messages), "recipients": len(snapshot.recipients)}
    expected |= {status: statuses[status] for status in EVENT_OF}
    for name, count in expected.items():
        shown = sum(getattr(hour, name) for hour in snapshot.hours)
        if shown != count:
            yield Finding(f"the hourly counts have {shown} {name}, and there are {count}")


def final(snapshot: Snapshot) -> Iterator[Finding]:
    """Every message and every recipient has a final status."""
    for message in snapshot.messages:
        if message.status not in FINAL_MESSAGES:
            yield Finding(f"{message.id} is {message.status}", message.id)
    for recipient in snapshot.recipients:
        if recipient.status not in EVENT_OF:
            yield Finding(f"{recipient.email} is {recipient.status}", recipient.message_id)


def consistency(snapshot: Snapshot) -> Iterator[Finding]:
    """`postroad verify` finds nothing."""
    for text in snapshot.inconsistencies:
        yield Finding(text)


def delivered(snapshot: Snapshot) -> Iterator[Finding]:
    """A recipient is marked delivered exactly when the mail host accepted it, unless the log has a doubt."""
    doubts = snapshot.doubts()
    for recipient in snapshot.recipients:
        taken = snapshot.taken.get(recipient.email, 0)
        if recipient.status == "delivered" and not taken:
            yield Finding(
                f"{recipient.email} is marked delivered, and the mail host did not accept it", recipient.message_id
            )
        if recipient.status != "delivered" and taken and not doubts[recipient.id]:
            yield Finding(
                f"{recipient.email} was accepted by the mail host, and is {recipient.status}", recipient.message_id
            )
    unknown = snapshot.taken.keys() - {recipient.email for recipient in snapshot.recipients}
    for email in sorted(unknown):
        yield Finding(f"{email} was accepted by the mail host, and is not in the store")


def not_delivered(snapshot: Snapshot) -> Iterator[Finding]:
    """A bounced recipient was refused permanently, and a failed one was tried as often as scheduled."""
    tried = collections.Counter(attempt.recipient_id for attempt in snapshot.attempts)
    for recipient in snapshot.recipients:
        if recipient.status == "bounced" and not snapshot.refused.get(recipient.email, 0):
            yield Finding(f"{recipient.email} bounced, and nobody refused it", recipient.message_id)
        if recipient.status == "failed" and tried[recipient.id] < snapshot.mail_attempts:
            yield Finding(f"{recipient.email} failed after {tried[recipient.id]} attempts", recipient.message_id)


def copies(snapshot: Snapshot) -> Iterator[Finding]:
    """Every recipient got one copy, and at most one more for each doubt in the log."""
    doubts = snapshot.doubts()
    for recipient in snapshot.recipients:
        count = snapshot.taken.get(recipient.email, 0)
        if count > 1 + doubts[recipient.id]:
            text = f"{recipient.email} got {count} copies, with {doubts[recipient.id]} doubts in the log"
            yield Finding(text, recipient.message_id)


def events(snapshot: Snapshot) -> Iterator[Finding]:
    """Each final recipient has one event of the right type, which arrived unless its attempts ran out."""
    by_recipient: dict[str, list[str]] = collections.defaultdict(list)
    failures: collections.Counter[str] = collections.Counter()
    for attempt in snapshot.webhook_attempt_log:
        failures[attempt.delivery_id] += attempt.status_code not in SUCCEEDED
    for event in snapshot.events:
        by_recipient[event.recipient_id].append(event.type)
        ran_out = event.state == "failed" and failures[event.delivery_id] >= snapshot.webhook_attempts
        if not snapshot.received.get(event.id) and not ran_out:
            yield Finding(f"{event.id} is {event.state}, and its endpoint never received it", event.message_id)
    for recipient in snapshot.recipients:
        expected = [EVENT_OF[recipient.status]] if recipient.status in EVENT_OF else []
        if by_recipient[recipient.id] != expected:
            text = f"{recipient.email} is {recipient.status}, and its events are {by_recipient[recipient.id]}"
            yield Finding(text, recipient.message_id)


def genuine(snapshot: Snapshot) -> Iterator[Finding]:
    """Endpoints received only events that are in the store, with the same bytes each time, and signed."""
    bodies = {event.id: event.body for event in snapshot.events}
    for text in snapshot.not_genuine:
        yield Finding(text)
    for event_id, got in snapshot.received.items():
        if set(got) != {bodies.get(event_id)}:
            yield Finding(f"{event_id} was received with other bytes than the store has")


def webhook_retries(snapshot: Snapshot) -> Iterator[Finding]:
    """An event arrived at most as often as it was attempted, and again only after a failed attempt."""
    succeeded = {attempt.delivery_id for attempt in snapshot.webhook_attempt_log if attempt.status_code in SUCCEEDED}
    for event in snapshot.events:
        count = len(snapshot.received.get(event.id, ()))
        if count > event.attempt_count:
            yield Finding(f"{event.id} came {count} times in {event.attempt_count} attempts", event.message_id)
        if event.state == "succeeded" and event.delivery_id not in succeeded:
            yield Finding(f"{event.id} is marked succeeded, and no attempt in the log succeeded", event.message_id)


def processes(snapshot: Snapshot) -> Iterator[Finding]:
    """Processes ended only by a kill or on request, and none logged an internal error."""
    for text in (*snapshot.ended_badly, *snapshot.errors):
        yield Finding(text)


# Each with how much it looks at.
CHECKS: Final[Sequence[tuple[Callable[[Snapshot], Iterator[Finding]], Callable[[Snapshot], int]]]] = (
    (answers, lambda snapshot: len(snapshot.submissions)),
    (stored, lambda snapshot: sum(submission.is_acknowledged for submission in snapshot.submissions)),
    (one_message, lambda snapshot: len(snapshot.messages)),
    (one_charge, lambda snapshot: len(snapshot.ledger) + len(snapshot.keys)),
    (credits_agree, lambda snapshot: len(snapshot.messages)),
    (charts_agree, lambda snapshot: len(snapshot.messages) + len(snapshot.recipients)),
    (final, lambda snapshot: len(snapshot.messages) + len(snapshot.recipients)),
    (consistency, lambda snapshot: len(snapshot.messages)),
    (delivered, lambda snapshot: len(snapshot.recipients)),
    (not_delivered, lambda snapshot: sum(recipient.status != "delivered" for recipient in snapshot.recipients)),
    (copies, lambda snapshot: sum(snapshot.taken.values())),
    (events, lambda snapshot: len(snapshot.events)),
    (genuine, lambda snapshot: sum(map(len, snapshot.received.values()))),
    (webhook_retries, lambda snapshot: len(snapshot.webhook_attempt_log)),
    (processes, lambda snapshot: snapshot.starts),
)


def reconcile(snapshot: Snapshot) -> list[Checked]:
    """Run all checks."""
    return [
        Checked(check.__name__.replace("_", " "), check.__doc__ or "", examined(snapshot), list(check(snapshot)))
        for check, examined in CHECKS
    ]
