"""Where a process can be killed: kinds of transactions, by a query that only they run, and moments of each.

The table is the matrix that a run goes through. A kind says which roles run it, so that the order is given to a process
that can carry it out. Some transactions come only when a process starts, or once in a lease.
"""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec


class Moment(StrEnum):
    """When the process dies."""

    INSIDE = "inside"  # after the statement that names the kind, with others still to come
    BEFORE = "before the commit"
    DURING = "during the commit"
    AFTER = "after the commit"  # before whatever would have been the next step: the answer, the connection, the log


class Order(msgspec.Struct, frozen=True):
    """Die there; `after_seconds` is how far a commit gets that is hit."""

    kind: str
    moment: Moment
    after_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of transaction."""

    query: str
    role: str
    # How long to wait for it: most come many times a second while there is load.
    seconds: float = 2.0
    at_start: bool = False


KINDS: Final = {
    "accept": Kind("messages.insert", "api"),
    "claim": Kind("queue.claim", "delivery"),
    "promote": Kind("queue.promote", "delivery", seconds=3.0),
    "record": Kind("attempts.insert", "delivery"),
    "postpone": Kind("queue.postpone", "delivery", seconds=3.0),
    "settle": Kind("messages.finish", "delivery"),
    "event": Kind("webhook_deliveries.insert", "delivery"),
    # Comes three times in a lease of ten seconds, while something is held.
    "renew": Kind("queue.extend", "delivery", seconds=6.0),
    "webhook claim": Kind("webhook_deliveries.claim", "webhooks"),
    "webhook promote": Kind("webhook_deliveries.promote", "webhooks", seconds=3.0),
    "webhook record": Kind("webhook_deliveries.record", "webhooks"),
    "sweep": Kind("idempotency.sweep", "maintenance", at_start=True),
}

ANY_MOMENT: Final = "any"
A_FRONTEND: Final = "a frontend"
# How long a commit takes on a quick disk; a slow one is hit early.
COMMIT_SECONDS: Final = 0.003


def every_order(chance: random.Random) -> list[Order]:
    """One order for each kind and moment, shuffled."""
    orders = [
        Order(kind, moment, chance.uniform(0, COMMIT_SECONDS) if moment is Moment.DURING else 0.0)
        for kind in KINDS
        for moment in Moment
    ]
    chance.shuffle(orders)
    return orders
