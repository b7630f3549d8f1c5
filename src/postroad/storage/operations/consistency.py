"""Consistency checks of the database: each is a query that must return no rows."""

from dataclasses import dataclass
from typing import Final

from postroad.storage.engine import store

# A damaged database can have millions of findings; a hundred of each kind are enough to start with.
MAX_FINDINGS: Final = 100

CHECKS: Final = {
    "balances": "account {0}: balances are {1} available and {2} reserved, but the ledger sums to {3} and {4}",
    "reservations": "account {0}: {1} credits are reserved, but {2} recipients have a reserved credit",
    "recipient_counts": "message {0}: accepted with {1} recipients, but {2} are stored",
    "message_reservations": "message {0}: accepted for {1} credits, but the ledger reserved {2}",
    "message_credits": "message {0}: the ledger sums to {1} reserved and {2} available, its recipients to {3} and {4}",
    "missing_bodies": "message {0}: status is {1}, but its body is missing",
    "body_sizes": "message {0}: accepted with {1} bytes, but {2} are stored",
    "wrong_statuses": "message {0}: status is {1}, but {2} recipients are unfinished and {3} delivered",
    "message_ends": "message {0}: status is {1}, which does not match its end time",
    "unqueued": "recipient {0}: status is {1}, but it is not in the queue and would never be sent",
    "queued_final": "recipient {0}: status is {1}, but it is still in the queue and would be sent again",
    "wrong_billing": "recipient {0}: status is {1}, but its credit is {2}",
    "wrong_message_billing": "message {0}: billing is {1}, but {2} credits are reserved and {3} were returned",
    "access_version": "access_version has {0} rows instead of one: revocations would not take effect",
    "webhook_secrets": "webhook {0}: has {1} secrets that do not expire instead of one",
    "webhook_overtried": "webhook delivery {0}: {1} attempts are counted, but the maximum is 7",
    "webhook_attempts": "webhook delivery {0}: {1} attempts are counted and {2} have ended, but {3} are in the log",
    "webhook_ends": "webhook delivery {0}: state is {1}, which does not match its end time",
    "orphan_rows": "{0} {1}: the row that it belongs to is missing",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """An inconsistency."""

    check: str
    text: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows were checked."""

    accounts: int
    messages: int
    recipients: int
    ledger_entries: int
    idempotency_keys: int


async def findings(tx: store.Transaction) -> list[Finding]:
    """All inconsistencies, at most MAX_FINDINGS of each check."""
    return [finding for check in CHECKS for finding in await findings_of(tx, check)]


async def findings_of(tx: store.Transaction, check: str) -> list[Finding]:
    await tx.fetch("consistency.hold")
    rows = await tx.fetch(f"consistency.{check}", MAX_FINDINGS)
    return [Finding(check, CHECKS[check].format(*row)) for row in rows]


async def counts(tx: store.Transaction) -> Counts:
    await tx.fetch("consistency.hold")
    (row,) = await tx.fetch("consistency.counts")
    return Counts(*row)
