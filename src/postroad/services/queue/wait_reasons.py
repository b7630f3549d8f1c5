"""Why a recipient is where it is, in one sentence for people. Pure: the facts come from `queues`."""

from collections.abc import Mapping
from typing import Final

from postroad.model import durations, mail, times
from postroad.storage import provider_queues, queue_views, recipients

# What a destination says may be long, and of several lines; this much shows what it is about.
RESPONSE_CHARACTERS: Final = 200
# The worst of what the workers say about a pool is what an operator looks for.
_SEVERITY: Final = {"slowed": 0, "paused": 1, "blocked": 2}
_STATE_LABELS: Final = {"slowed": "slowed down", "paused": "paused", "blocked": "blocked"}


def worst_statuses(told: list[provider_queues.Pool]) -> Mapping[str, provider_queues.Pool]:
    """For each pool what its worst worker says of it."""
    return {pool.name: pool for pool in sorted(told, key=lambda pool: _SEVERITY[pool.state])}


def why(row: queue_views.QueuedRecipient, pool: provider_queues.Pool | None, *, now: int) -> str:
    """Why a recipient in the queue has not gone yet; `pool` is how its pool stands, when it is not simply open."""
    if row.state == queue_views.SENDING:
        return _sending(row, now=now)
    if row.state == queue_views.WAITING:
        after = last_response(row.last_smtp_code, row.last_smtp_response)
        text = f"next attempt at {times.to_wire(row.due_at)}, the {durations.ordinal(row.attempt_count + 1)}"
        return f"{text}, after: {after}" if after else text
    if pool is None:
        return _ready(pool)
    until = "" if pool.state == "slowed" else f" until {times.to_wire(pool.until)}"
    reason = f": {shortened(pool.reason)}" if pool.reason else ""
    return f"{_ready(pool)}{until}{reason}"


def explain_to_account(row: queue_views.QueuedRecipient, pool: provider_queues.Pool | None, *, now: int) -> str:
    """The same for people of the account: no worker's name, and no words that a destination said of others' mail.

    It names no time: `due_at` is the next attempt's, and pages show it in the time of whoever reads.
    """
    if row.state == queue_views.SENDING:
        return "was being sent when its worker stopped; others take it over" if row.due_at <= now else "being sent now"
    if row.state == queue_views.WAITING:
        after = last_response(row.last_smtp_code, row.last_smtp_response)
        return f"put off after: {after}" if after else "waits for its next attempt"
    return _ready(pool)


def explain_final(recipient: recipients.Recipient) -> str:
    """What became of a recipient that is final."""
    words = last_response(recipient.last_smtp_code, recipient.last_smtp_response)
    ended = recipient.delivered_at or recipient.bounced_at
    when = f" at {times.to_wire(ended)}" if ended else ""
    if recipient.status not in mail.FINAL:
        return "not final, and yet not in the queue; run 'postroad audit'"
    return f"{recipient.status}{when}: {words}" if words else f"{recipient.status}{when}"


def last_response(code: int | None, response: str | None) -> str:
    """The last reply or trouble in one line."""
    words = shortened(response or "")
    return words if code is None or words.startswith(str(code)) else f"{code} {words}".rstrip()


def shortened(text: str) -> str:
    """A text of any length as one line; what a terminal would obey is made visible."""
    words = " ".join(text[: 10 * RESPONSE_CHARACTERS].split())
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in words)
    return line if len(line) <= RESPONSE_CHARACTERS else f"{line[: RESPONSE_CHARACTERS - 1]}…"


def _ready(pool: provider_queues.Pool | None) -> str:
    if pool is None:
        return "ready; a worker takes it as soon as its destination has room"
    return f"ready, but the pool {pool.name} is {_STATE_LABELS[pool.state]}"


def _sending(row: queue_views.QueuedRecipient, *, now: int) -> str:
    # The last part of a worker's name is chance, and tells apart what people need not tell apart.
    worker = (row.worker or "").rpartition(":")[0]
    if row.due_at <= now:
        return f"held by {worker}, which was last heard of before {times.to_wire(row.due_at)}; others take it over"
    return f"being sent by {worker}, which holds it until {times.to_wire(row.due_at)} at least"
