"""The state of a recipient in one sentence for people. Pure: the facts come from `inspection`."""

from collections.abc import Mapping
from typing import Final

from postroad.model import durations, mail, times
from postroad.storage import holds, provider_queues, queue_views, recipients

# A reply may be long and have several lines; this much shows what it is about.
RESPONSE_CHARACTERS: Final = 200
# The worst status that a worker reports is the one an operator looks for.
_SEVERITY: Final = {"slowed": 0, "paused": 1, "blocked": 2}
_STATE_LABELS: Final = {"slowed": "slowed down", "paused": "paused", "blocked": "blocked"}


def worst_statuses(reported: list[provider_queues.Status]) -> Mapping[str, provider_queues.Status]:
    """The worst reported status of each provider queue."""
    return {status.name: status for status in sorted(reported, key=lambda status: _SEVERITY[status.state])}


def why(
    row: queue_views.QueuedRecipient, status: provider_queues.Status | None, *, now: int, hold: holds.Hold | None = None
) -> str:
    """Why a queued recipient is not delivered yet; `status` is set when its provider queue is not open."""
    if row.state == queue_views.HELD and hold is not None:
        return f"held since {times.to_wire(hold.held_at)}: {hold.reason}"
    if row.state == queue_views.SENDING:
        return _sending(row, now=now)
    if row.state == queue_views.WAITING:
        after = last_response(row.last_smtp_code, row.last_smtp_response)
        text = f"{durations.ordinal(row.attempt_count + 1)} attempt at {times.to_wire(row.due_at)}"
        return f"{text}; deferred: {after}" if after else text
    if status is None:
        return _ready(status)
    until = "" if status.state == "slowed" else f" until {times.to_wire(status.until)}"
    reason = f": {shortened(status.reason)}" if status.reason else ""
    return f"{_ready(status)}{until}{reason}"


def explain_to_account(row: queue_views.QueuedRecipient, status: provider_queues.Status | None, *, now: int) -> str:
    """The same for the account's users: without worker names and without replies to other accounts' mail.

    It names no time: `due_at` is the next attempt, and pages show it in the reader's time zone.
    """
    if row.state == queue_views.SENDING:
        return "worker stopped while sending; another one takes over" if row.due_at <= now else "being sent"
    if row.state == queue_views.WAITING:
        after = last_response(row.last_smtp_code, row.last_smtp_response)
        return f"deferred: {after}" if after else "waiting for the next attempt"
    if row.state == queue_views.HELD:
        return "held by the operator of this service"
    return _ready(status)


def explain_final(recipient: recipients.Recipient) -> str:
    """The result of a final recipient."""
    response = last_response(recipient.last_smtp_code, recipient.last_smtp_response)
    ended = recipient.delivered_at or recipient.bounced_at
    when = f" at {times.to_wire(ended)}" if ended else ""
    if recipient.status not in mail.FINAL:
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


def _ready(status: provider_queues.Status | None) -> str:
    if status is None:
        return "ready; waiting for a free worker"
    return f"ready; the provider queue {status.name} is {_STATE_LABELS[status.state]}"


def _sending(row: queue_views.QueuedRecipient, *, now: int) -> str:
    # The last part of a worker's name is random and of no use to people.
    worker = (row.worker or "").rpartition(":")[0]
    if row.due_at <= now:
        return f"the lease of {worker} expired at {times.to_wire(row.due_at)}; another worker takes over"
    return f"being sent by {worker} (lease until {times.to_wire(row.due_at)})"
