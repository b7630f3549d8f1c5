"""The proof that the books are right: each check is a query that must find nothing."""

from dataclasses import dataclass
from typing import Final

from postroad.storage import store

# A broken store can have millions of findings; a hundred of each kind are enough to start mending.
MAX_FINDINGS: Final = 100

CHECKS: Final = {
    "balances": "account {0}: balances are {1} available and {2} reserved, but the ledger sums to {3} and {4}",
    "reservations": "account {0}: {1} credits are reserved, but {2} recipients hold one",
    "recipient_counts": "message {0}: accepted with {1} recipients, but {2} are stored",
    "message_reservations": "message {0}: accepted for {1} credits, but the ledger reserved {2}",
    "message_credits": "message {0}: the ledger sums to {1} reserved and {2} available, its recipients to {3} and {4}",
    "missing_bodies": "message {0}: status is {1}, and its body should be there but is missing",
    "body_sizes": "message {0}: accepted with {1} bytes, but {2} are stored",
    "wrong_statuses": "message {0}: status is {1}, but {2} recipients are unfinished and {3} delivered",
    "message_ends": "message {0}: status is {1}, which its end does not agree with",
    "unqueued": "recipient {0}: status is {1}, but it is not in the queue and would never be tried",
    "queued_final": "recipient {0}: status is {1}, but it is still in the queue and would be tried again",
    "wrong_billing": "recipient {0}: status is {1}, but its credit is {2}",
    "wrong_message_billing": "message {0}: billing is {1}, but {2} credits are reserved and {3} were returned",
    "access_version": "the access version has {0} rows instead of one: revocations would not be noticed",
    "webhook_secrets": "webhook {0}: has {1} secrets without an end instead of one",
    "webhook_overtried": "webhook delivery {0}: {1} attempts are counted, and no delivery has more than 7",
    "webhook_attempts": "webhook delivery {0}: {1} attempts are counted, of which {2} are over, but {3} are in the log",
    "webhook_ends": "webhook delivery {0}: is {1}, which its end does not agree with",
    "orphan_rows": "{0} {1}: belongs to nothing",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is off."""

    check: str
    text: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is."""

    accounts: int
    messages: int
    recipients: int
    ledger_entries: int
    idempotency_keys: int


async def findings(tx: store.Transaction) -> list[Finding]:
    """Everything that is off; empty when the books are right."""
    found = []
    for check, sentence in CHECKS.items():
        for row in await tx.fetch(f"audit.{check}", MAX_FINDINGS):
            found.append(Finding(check, sentence.format(*row)))  # noqa: PERF401 - the nesting reads better
    return found


async def counts(tx: store.Transaction) -> Counts:
    """How much there is."""
    (row,) = await tx.fetch("audit.counts")
    return Counts(*row)
