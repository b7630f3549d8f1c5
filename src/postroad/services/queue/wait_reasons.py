"""Why a recipient is not delivered yet, and when it is tried next: a code for programs and a sentence for people.

Pure: the facts come from `inspection`. Users of an account get nothing of workers, of hosts and of replies to other
accounts' mail; operators get the same sentence with those details. docs/api.md lists the codes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from postroad.model.bounces import reasons
from postroad.model.delivery import providers
from postroad.model.mail import statuses
from postroad.model.units import times
from postroad.storage.mail import delivery_controls, messages, queue, queue_views
from postroad.storage.operations import processes

# A reply may be long and have several lines; this much shows what it is about.
RESPONSE_CHARACTERS: Final = 200
# More are not counted: what matters is that there are many.
MAX_AHEAD: Final = 1_000
# The worst status that a worker reports is the one an operator looks for.
# Workers report the first three; that an operator has paused a provider queue is known from the store.
PAUSED_BY_OPERATOR: Final = "held"
NO_SOURCE: Final = "no_source"
_SEVERITY: Final = {**processes.QUEUE_SEVERITY, PAUSED_BY_OPERATOR: 3}


class Code(StrEnum):
    """What a recipient waits for."""

    READY = "ready"  # it is next
    QUEUED = "queued"  # others are before it
    SENDING = "sending"  # an attempt is under way
    INTERRUPTED = "interrupted"  # a worker stopped during an attempt
    SCHEDULED = "scheduled"  # the sender asked for a later time
    DEFERRED = "deferred"  # the receiving server's reply was temporary
    NO_REPLY = "no_reply"  # the last attempt got no reply
    CONFIGURATION = "configuration"  # the operator has to correct something
    HELD = "held"  # by the operator
    PROVIDER_SLOWED = "provider_slowed"  # adaptive rate
    PROVIDER_PAUSED = "provider_paused"  # the provider asked for less
    PROVIDER_UNREACHABLE = "provider_unreachable"  # circuit breaker
    UPSTREAM_UNAVAILABLE = "upstream_unavailable"
    NO_SOURCE = "no_source"  # no source address may send it now


_STATUS_CODES: Final = {
    "slowed": Code.PROVIDER_SLOWED,
    "paused": Code.PROVIDER_PAUSED,
    "blocked": Code.PROVIDER_UNREACHABLE,
    PAUSED_BY_OPERATOR: Code.HELD,
    NO_SOURCE: Code.NO_SOURCE,
}
# `{}` is the provider, or the recipient's domain where the provider has no name.
_TEXTS: Final = {
    Code.READY: "ready; waiting for a free worker",
    Code.QUEUED: "waiting for its turn",
    Code.SENDING: "being sent",
    Code.INTERRUPTED: "the worker stopped while sending; another one takes over",
    Code.SCHEDULED: "scheduled by the sender",
    Code.DEFERRED: "{} asked us to try later",
    Code.NO_REPLY: "the last attempt got no reply from {}",
    Code.CONFIGURATION: "a setting of this service is wrong; its operator has to correct it",
    Code.HELD: "held by the operator of this service",
    Code.PROVIDER_SLOWED: "mail to {} is slowed down to what it accepts",
    Code.PROVIDER_PAUSED: "{} asked us to slow down; mail to it is paused",
    Code.PROVIDER_UNREACHABLE: "the mail servers of {} do not answer",
    Code.UPSTREAM_UNAVAILABLE: "the upstream server of this service is not available",
    Code.NO_SOURCE: "no address of this service may send this mail now",
}


@dataclass(frozen=True, slots=True)
class WaitReason:
    """Why, the time of the next attempt, if it is known, and how many recipients are before this one, if counted.

    `text` names neither: pages show the time in the reader's time zone. `detail` is for operators.
    """

    code: Code
    text: str
    next_attempt_at: int | None = None
    ahead: int | None = None
    detail: str = ""

    @property
    def sentence(self) -> str:
        parts = [self.text]
        if self.next_attempt_at is not None:
            parts.append(f"next attempt at {_in_utc(self.next_attempt_at)}")
        if self.ahead:
            parts.append(ahead_in_words(self.ahead))
        return "; ".join([*parts, self.detail] if self.detail else parts)


def worst_statuses(reported: list[processes.QueueStatus]) -> Mapping[str, processes.QueueStatus]:
    return {status.name: status for status in sorted(reported, key=lambda status: _SEVERITY[status.state])}


def explain(
    row: queue_views.QueuedRecipient, status: processes.QueueStatus | None, *, now: int, ahead: int | None = None
) -> WaitReason:
    """For users of the account; `status` is set when the recipient's provider queue is not open."""
    code = _code(row, status, now=now, ahead=ahead)
    text = _TEXTS[code].format(_provider(row, status))
    if code is Code.DEFERRED:
        text = f"{text} ({row.enhanced_code or row.last_smtp_code})"
    is_running = row.state in {queue_views.SENDING, queue_views.HELD}
    return WaitReason(code, text, _next_attempt_at(row, status, now=now), None if is_running else ahead)


def detail(
    row: queue_views.QueuedRecipient,
    status: processes.QueueStatus | None,
    *,
    now: int,
    hold: delivery_controls.Hold | None,
) -> str:
    """What operators see besides."""
    if row.state == queue_views.HELD and hold is not None:
        return f"since {_in_utc(hold.held_at)}: {hold.reason}"
    if row.state == queue_views.SENDING:
        # The last part of a worker's name is random and of no use to people.
        worker = (row.worker or "").rpartition(":")[0]
        return f"by {worker}, whose lease {'ends' if row.due_at > now else 'ended'} at {_in_utc(row.due_at)}"
    if _is_due(row, now=now):
        return f"last error: {shortened(status.reason)}" if status is not None and status.reason else ""
    reply = last_response(row.last_smtp_code, row.last_smtp_response)
    return f"last result: {reply}" if reply else ""


def ahead_in_words(number: int) -> str:
    if number > MAX_AHEAD:
        return f"more than {MAX_AHEAD:,} recipients ahead"
    return "1 recipient ahead" if number == 1 else f"{number:,} recipients ahead"


def explain_final(recipient: messages.Recipient) -> str:
    response = last_response(recipient.last_smtp_code, recipient.last_smtp_response)
    ended = recipient.delivered_at or recipient.bounced_at
    when = f" at {times.to_wire(ended)}" if ended else ""
    if recipient.status not in statuses.FINAL:
        return "not final, but not in the queue; run 'postroad verify'"
    return f"{recipient.status}{when}: {response}" if response else f"{recipient.status}{when}"


def last_response(code: int | None, response: str | None) -> str:
    """The last reply, or the detail of the last failure, in one line."""
    text = shortened(response or "")
    return text if code is None or text.startswith(str(code)) else f"{code} {text}".rstrip()


def shortened(text: str) -> str:
    """A text of any length as one line, with control characters replaced."""
    words = " ".join(text[: 10 * RESPONSE_CHARACTERS].split())
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in words)
    return line if len(line) <= RESPONSE_CHARACTERS else f"{line[: RESPONSE_CHARACTERS - 1]}…"


def _code(
    row: queue_views.QueuedRecipient, status: processes.QueueStatus | None, *, now: int, ahead: int | None
) -> Code:
    if row.state == queue_views.SENDING:
        return Code.SENDING if row.due_at > now else Code.INTERRUPTED
    if row.state == queue_views.HELD:
        return Code.HELD
    if not _is_due(row, now=now):
        return _waiting_code(row)
    if status is None:
        return Code.QUEUED if ahead else Code.READY
    if status.name.startswith(providers.UPSTREAM_PREFIX) and status.state not in {"slowed", NO_SOURCE}:
        return Code.UPSTREAM_UNAVAILABLE
    return _STATUS_CODES[status.state]


def _waiting_code(row: queue_views.QueuedRecipient) -> Code:
    """Why it has a time: the sender's wish, or the result of the last attempt."""
    if not row.attempt_count:
        return Code.SCHEDULED
    if row.attempt_reason == reasons.CONFIGURATION:
        return Code.CONFIGURATION
    return Code.NO_REPLY if row.last_smtp_code is None else Code.DEFERRED


def _next_attempt_at(row: queue_views.QueuedRecipient, status: processes.QueueStatus | None, *, now: int) -> int | None:
    """None when an attempt is under way or nothing but others before it delays it, and while it is held."""
    if row.state in {queue_views.SENDING, queue_views.HELD}:
        return None
    if not _is_due(row, now=now):
        return row.due_at
    return status.until if status is not None and status.until > now and status.state != "slowed" else None


def _is_due(row: queue_views.QueuedRecipient, *, now: int) -> bool:
    is_later = row.state in {queue_views.WAITING, queue_views.SCHEDULED}
    return row.state == queue_views.READY or (is_later and row.due_at <= now)


def _provider(row: queue_views.QueuedRecipient, status: processes.QueueStatus | None) -> str:
    if queue.simulation_of(row.queue_key) is not None:
        return "the simulator"
    name = (status.name if status is not None else row.provider_queue) or ""
    if name.startswith(providers.UPSTREAM_PREFIX):
        return "the upstream server of this service"
    return providers.NAMES.get(name) or queue.domain_of(row.queue_key)


def _in_utc(microseconds: int) -> str:
    written = times.to_wire(microseconds)
    return f"{written[:10]} {written[11:19]} UTC"
