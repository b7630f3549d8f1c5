"""The policy of a simulator session: each recipient gets its simulated outcome, accepted messages go to the inbox.

A deferred recipient is recognized at the next attempt by envelope sender and recipient; Postroad uses another envelope
sender for each message. Accepting a message clears its deferrals, so a client that always uses the same sender is
deferred for each message.
"""

import asyncio
from typing import Final

from postroad.concurrency import lru
from postroad.model import simulated_outcomes
from postroad.network import smtp_policy
from postroad.protocol.smtp import server_commands, values
from postroad.services.messages import dev_inbox

# Far more than a developer has in progress; evicted entries are deferred again.
MAX_REMEMBERED: Final = 10_000


class Deferrals:
    """How often each recipient was deferred."""

    def __init__(self, max_entries: int = MAX_REMEMBERED) -> None:
        self._counts: lru.LruCache[tuple[str, str], int] = lru.LruCache(max_entries)

    def should_defer(self, sender: str, recipient: str) -> bool:
        """Whether to defer the recipient now; counts the deferral."""
        key = (sender, recipient.lower())
        count = self._counts.get(key) or 0
        should_defer = count < simulated_outcomes.DEFERRALS
        self._counts.put(key, count + should_defer)
        return should_defer

    def forget(self, sender: str, recipient: str) -> None:
        """Clear the count: the message was accepted."""
        self._counts.discard((sender, recipient.lower()))


class MailboxPolicy(smtp_policy.SessionPolicy):
    """One session."""

    def __init__(self, mail: dev_inbox.Inbox, deferrals: Deferrals, *, slow_seconds: float) -> None:
        self._inbox = mail
        self._deferrals = deferrals
        self._slow_seconds = slow_seconds
        self._sender = ""
        self._outcomes: set[simulated_outcomes.SimulatedOutcome] = set()

    def mail(self, sender: str, parameters: server_commands.Parameters) -> smtp_policy.PolicyDecision:
        """Accept any sender."""
        self._sender = sender
        self._outcomes.clear()
        return super().mail(sender, parameters)

    def recipient(self, address: str, parameters: server_commands.Parameters) -> smtp_policy.PolicyDecision:  # noqa: ARG002
        """Refuse, defer or accept by the recipient's outcome."""
        outcome = simulated_outcomes.outcome_of(address)
        refusal = simulated_outcomes.REFUSALS.get(outcome)
        if outcome is simulated_outcomes.SimulatedOutcome.DEFER and self._deferrals.should_defer(self._sender, address):
            refusal = simulated_outcomes.GREYLISTED
        if refusal is not None:
            return simulated_outcomes.refused(address, refusal)
        self._outcomes.add(outcome)
        return simulated_outcomes.ACCEPTED

    def data(self) -> smtp_policy.PolicyDecision:
        """Ask for the content, or close the connection."""
        return None if simulated_outcomes.SimulatedOutcome.DROP in self._outcomes else super().data()

    def message(self, transaction: values.MailTransaction) -> smtp_policy.PolicyDecision:
        """Add the message to the inbox, at once or after a delay."""
        if simulated_outcomes.SimulatedOutcome.DROP in self._outcomes:
            return None
        return (
            self._accept_late(transaction)
            if simulated_outcomes.SimulatedOutcome.SLOW in self._outcomes
            else self._accept(transaction)
        )

    async def _accept_late(self, transaction: values.MailTransaction) -> values.Reply:
        await asyncio.sleep(self._slow_seconds)
        return self._accept(transaction)

    def _accept(self, transaction: values.MailTransaction) -> values.Reply:
        received = self._inbox.add(transaction)
        for recipient in transaction.recipients:
            self._deferrals.forget(transaction.sender, recipient)
        return values.Reply(250, f"OK: queued as {received.id}", "2.0.0")
