"""What becomes of a simulated recipient: the beginning of the local part decides, in whatever case.

`bounce@…`, `bounce-17@…` and `BouncedAgain@…` all bounce; what begins with none of the words is delivered.
"""

from enum import StrEnum
from typing import Final

from postroad.protocol.smtp import values


class SimulatedOutcome(StrEnum):
    """How a recipient ends, and the word that its local part begins with."""

    BOUNCE = "bounce"
    BLOCKED = "blocked"
    DEFER = "defer"
    FAIL = "fail"
    SLOW = "slow"
    DROP = "drop"
    DELIVER = ""


# How often a `defer…` recipient is put off before it is taken.
DEFERRALS: Final = 2

ACCEPTED: Final = values.Reply(250, "OK", "2.1.5")
GREYLISTED: Final = values.Reply(451, "Recipient address rejected: greylisted, please try again later", "4.7.1")
# The words that real servers use, because the reader of replies should meet them here first.
REFUSALS: Final = {
    SimulatedOutcome.BOUNCE: values.Reply(
        550, "Recipient address rejected: user unknown in virtual mailbox table", "5.1.1"
    ),
    SimulatedOutcome.BLOCKED: values.Reply(550, "Message rejected due to local policy: the sender is blocked", "5.7.1"),
    SimulatedOutcome.FAIL: values.Reply(451, "Temporary lookup failure, please try again later", "4.3.0"),
}


def outcome_of(address: str) -> SimulatedOutcome:
    """The fate of a recipient."""
    name = address.lower()
    # The empty word of DELIVER is the last, and begins every name.
    return next(outcome for outcome in SimulatedOutcome if name.startswith(outcome))
