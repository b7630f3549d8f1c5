"""What is known at the end by the senders, the store, the mail host, the endpoints and the logs.

A `Snapshot` is plain data, so that the reconciliation can be tested with a forged one.
"""

import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from postroad import context
from tests.chaos import flaky_host, hosts, load
from tests.storage import samples

# A worker took over what another one may have sent, and says so.
TAKEN_OVER: Final = "previous_attempt_unrecorded"
# What a writer prints at its end when it has lost a frontend.
FRONTENDS_FAILED: Final = "Error: the role frontends failed"


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    key: str
    status: str
    recipient_count: int


@dataclass(frozen=True, slots=True)
class Recipient:
    id: str
    message_id: str
    email: str
    status: str


@dataclass(frozen=True, slots=True)
class Attempt:
    message_id: str
    recipient_id: str
    started_at: int
    verdict: str
    stage: str
    smtp_code: int | None
    response: str
    in_doubt: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the ledger."""

    kind: str
    available: int
    reserved: int
    message_id: str | None


@dataclass(frozen=True, slots=True)
class Key:
    key: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Event:
    """An event for an endpoint."""

    id: str
    delivery_id: str
    type: str
    message_id: str
    recipient_id: str
    state: str
    attempt_count: int
    body: bytes


@dataclass(frozen=True, slots=True)
class WebhookAttempt:
    """A line of the delivery log."""

    delivery_id: str
    number: int
    status_code: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Hour:
    """What charts show of an hour."""

    messages: int = 0
    recipients: int = 0
    delivered: int = 0
    bounced: int = 0
    failed: int = 0


# What is asked of the store: each question gives the fields of its class, in order.
QUESTIONS: Final[Mapping[type, str]] = {
    Message: "SELECT id, subject, status, recipient_count FROM messages",
    Recipient: "SELECT id, message_id, email, status FROM recipients",
    Attempt: "SELECT message_id, recipient_id, started_at, verdict, stage, smtp_code, response, in_doubt FROM attempts",
    Entry: "SELECT kind, available, reserved, message_id FROM ledger WHERE kind <> 'grant'",
    Key: "SELECT key, message_id FROM idempotency_keys",
    Event: (
        "SELECT event_id, id, event_type, message_id, recipient_id, state, attempt_count, body FROM webhook_deliveries"
    ),
    WebhookAttempt: "SELECT delivery_id, number, status_code, error FROM webhook_attempts",
    Hour: "SELECT messages, recipients, delivered, bounced, failed FROM hourly_counts",
}
# The field of `Snapshot` for each.
FIELDS: Final[Mapping[type, str]] = {
    Message: "messages",
    Recipient: "recipients",
    Attempt: "attempts",
    Entry: "ledger",
    Key: "keys",
    Event: "events",
    WebhookAttempt: "webhook_attempt_log",
    Hour: "hours",
}
UNFINISHED: Final = (
    "SELECT (SELECT COUNT(*) FROM queue) + (SELECT COUNT(*) FROM webhook_deliveries WHERE ended_at IS NULL)"
)


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """All that is known."""

    submissions: Sequence[load.Submission] = ()
    # What senders found wrong, and requests to endpoints that were not genuine.
    problems: Sequence[str] = ()
    not_genuine: Sequence[str] = ()
    # By address; each is used for one message only.
    taken: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    # The bodies that endpoints received for each event.
    received: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    messages: Sequence[Message] = ()
    recipients: Sequence[Recipient] = ()
    attempts: Sequence[Attempt] = ()
    ledger: Sequence[Entry] = ()
    keys: Sequence[Key] = ()
    events: Sequence[Event] = ()
    webhook_attempt_log: Sequence[WebhookAttempt] = ()
    hours: Sequence[Hour] = ()
    inconsistencies: Sequence[str] = ()
    # By recipient: how often a worker said that another one might have sent this before.
    taken_over: Mapping[str, int] = field(default_factory=dict)
    starts: int = 0
    ended_badly: Sequence[str] = ()
    errors: Sequence[str] = ()
    # How many attempts the schedules have.
    mail_attempts: int = 0
    webhook_attempts: int = 0

    def doubts(self) -> collections.Counter[str]:
        """How often it was not known whether a recipient had got its mail, and the log says so; by recipient."""
        found = collections.Counter(dict(self.taken_over))
        found.update(attempt.recipient_id for attempt in self.attempts if attempt.in_doubt)
        return found


async def ask(ctx: context.Context) -> dict[type, list[Any]]:
    """What the store knows, in one view."""
    samples.teach(ctx.store, **{kind.__name__: question for kind, question in QUESTIONS.items()})
    async with ctx.store.scanning() as tx:
        return {kind: [kind(*row) for row in await tx.fetch(f"test.{kind.__name__}")] for kind in QUESTIONS}


async def unfinished(ctx: context.Context) -> int:
    """How many recipients are queued, and how many events are not delivered."""
    samples.teach(ctx.store, unfinished=UNFINISHED)
    async with ctx.store.scanning() as tx:
        ((count,),) = await tx.fetch("test.unfinished")
        return int(count)


def taken_over(all_hosts: Iterable[hosts.Host]) -> collections.Counter[str]:
    """What logs say about workers that vanished, by recipient."""
    return collections.Counter(line["recipient_id"] for line in logged(all_hosts) if line["event"] == TAKEN_OVER)


def errors(all_hosts: Iterable[hosts.Host]) -> list[str]:
    """What processes logged as a fault of their own, and what they printed that is no line of a log."""
    return [text for log in logs(all_hosts) for text in errors_of(log)]


def errors_of(log: Path) -> list[str]:
    """The same for one process start. A writer that has lost a frontend logs an error and ends, as it must."""
    until = itertools.takewhile(lambda line: line["event"] != hosts.FRONTEND_LOST_EVENT, hosts.lines_of(log))
    faults = [str(line)[:1000] for line in until if line.get("level") == "error"]
    strays = [
        text for text in hosts.stray_lines(log) if FRONTENDS_FAILED not in text or not hosts.has_lost_a_frontend(log)
    ]
    return faults + strays[:1]


def logged(all_hosts: Iterable[hosts.Host]) -> Iterable[dict[str, Any]]:
    """Every line of every life."""
    for log in logs(all_hosts):
        yield from hosts.lines_of(log)


def logs(all_hosts: Iterable[hosts.Host]) -> list[Path]:
    """The logs of all lives."""
    return [log for host in all_hosts for log in sorted(host.folder.glob("*.log"))]


def trace(snapshot: Snapshot, message_id: str, lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """All that is known of one message."""
    submissions = [submission for submission in snapshot.submissions if submission.message_id == message_id]
    rows: list[object] = [
        *(f"{one.key} by {one.listener}, {one.tries} tries, to {', '.join(one.recipients)}" for one in submissions),
        *(one for one in snapshot.messages if one.id == message_id),
        *(one for one in snapshot.recipients if one.message_id == message_id),
        *(one for one in snapshot.attempts if one.message_id == message_id),
        *(one for one in snapshot.ledger if one.message_id == message_id),
        *(one for one in snapshot.events if one.message_id == message_id),
    ]
    emails = [one.email for one in snapshot.recipients if one.message_id == message_id]
    rows += [
        f"{email}: taken {snapshot.taken.get(email, 0)}, refused {snapshot.refused.get(email, 0)}" for email in emails
    ]
    rows += [f"log: {line}" for line in lines if line.get("message_id") == message_id]
    return [str(row)[:500] for row in rows]


def seen(
    sent: load.Load, host: flaky_host.Host, *, schedule: Sequence[int], webhook_schedule: Sequence[int]
) -> Snapshot:
    """What everybody outside the service knows."""
    received: dict[str, Sequence[bytes]] = {}
    for customer in sent.customers:
        received.update(customer.received)
    return Snapshot(
        submissions=sent.submissions,
        problems=sent.problems,
        not_genuine=[text for customer in sent.customers for text in customer.not_genuine],
        taken=host.taken,
        refused=host.refused,
        received=received,
        mail_attempts=len(schedule) + 1,
        webhook_attempts=len(webhook_schedule) + 1,
    )
