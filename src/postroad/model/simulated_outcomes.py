"""The outcome of a simulated recipient, chosen by the start of its local part, ignoring case.

`bounce@…`, `bounce-17@…` and `BouncedAgain@…` all bounce; a local part with none of these prefixes is delivered.
"""

from enum import StrEnum
from typing import Final

import msgspec

from postroad.protocol.smtp import values


class SimulatedOutcome(StrEnum):
    """An outcome; the value is the prefix of the local part."""

    BOUNCE = "bounce"
    BLOCKED = "blocked"
    DEFER = "defer"
    FAIL = "fail"
    SLOW = "slow"
    DROP = "drop"
    DELIVER = ""


# How often a `defer…` recipient is deferred before it is accepted.
DEFERRALS: Final = 2
# Long enough to notice, shorter than any client timeout.
SLOW_SECONDS: Final = 3.0
# The host of a simulated attempt; no real one has a name like this (RFC 6761 section 6.4).
HOST: Final = "simulator.invalid"

ACCEPTED: Final = values.Reply(250, "OK", "2.1.5")
QUEUED: Final = values.Reply(250, "OK: queued by the simulator", "2.0.0")
DROPPED: Final = values.RecipientResult(
    values.Stage.DATA, cause=values.Cause.CONNECTION_LOST, detail="the destination closed the connection"
)
GREYLISTED: Final = values.Reply(451, "Recipient address rejected: greylisted, please try again later", "4.7.1")
# Worded as real servers do, so that bounce classification sees realistic replies.
REFUSALS: Final = {
    SimulatedOutcome.BOUNCE: values.Reply(
        550, "Recipient address rejected: user unknown in virtual mailbox table", "5.1.1"
    ),
    SimulatedOutcome.BLOCKED: values.Reply(550, "Message rejected due to local policy: the sender is blocked", "5.7.1"),
    SimulatedOutcome.FAIL: values.Reply(451, "Temporary lookup failure, please try again later", "4.3.0"),
}


def outcome_of(address: str) -> SimulatedOutcome:
    """The outcome of a recipient."""
    name = address.lower()
    # The empty prefix of DELIVER is last and matches every name.
    return next(outcome for outcome in SimulatedOutcome if name.startswith(outcome))


class SimulatedAttempt(msgspec.Struct, frozen=True):
    """The result of an attempt that was not made: how long it takes, and what the host replied."""

    result: values.RecipientResult
    host: str = HOST
    seconds: float = 0.0


def attempt(address: str, *, attempts: int) -> SimulatedAttempt:
    """The attempt after this many earlier ones."""
    outcome = outcome_of(address)
    refusal = REFUSALS.get(outcome)
    if outcome is SimulatedOutcome.DEFER and attempts < DEFERRALS:
        refusal = GREYLISTED
    if refusal is not None:
        return SimulatedAttempt(values.RecipientResult(values.Stage.RECIPIENT, refused(address, refusal)))
    if outcome is SimulatedOutcome.DROP:
        return SimulatedAttempt(DROPPED)
    seconds = SLOW_SECONDS if outcome is SimulatedOutcome.SLOW else 0.0
    return SimulatedAttempt(values.RecipientResult(values.Stage.CONTENT, QUEUED), seconds=seconds)


def refused(address: str, refusal: values.Reply) -> values.Reply:
    """A refusal that names the recipient, as most servers do."""
    return msgspec.structs.replace(refusal, text=f"<{address}>: {refusal.text}")
