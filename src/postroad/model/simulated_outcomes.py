"""The outcome of a simulated recipient, chosen by the start of its local part, ignoring case.

`bounce@…`, `bounce-17@…` and `BouncedAgain@…` all bounce; a local part with none of these prefixes is delivered.
"""

from enum import StrEnum
from typing import Final

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

ACCEPTED: Final = values.Reply(250, "OK", "2.1.5")
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
