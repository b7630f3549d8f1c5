"""A mailbox provider on loopback whose local parts decide the outcome."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from postroad.concurrency import caches
from postroad.model.mail import simulated_outcomes
from postroad.network.smtp import smtp_server
from postroad.protocol.smtp import server_commands, server_events, values
from postroad.services.messages import dev_inbox

# Far more than a developer has in progress; evicted entries are deferred again.
MAX_REMEMBERED: Final = 10_000


class Deferrals:
    """How often each recipient was deferred."""

    def __init__(self, max_entries: int = MAX_REMEMBERED) -> None:
        self._counts: caches.LruCache[tuple[str, str], int] = caches.LruCache(max_entries)

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


class MailboxPolicy(smtp_server.SessionPolicy):
    """One session."""

    def __init__(self, mail: dev_inbox.Inbox, deferrals: Deferrals, *, slow_seconds: float) -> None:
        self._inbox = mail
        self._deferrals = deferrals
        self._slow_seconds = slow_seconds
        self._sender = ""
        self._outcomes: set[simulated_outcomes.SimulatedOutcome] = set()

    def mail(self, sender: str, parameters: server_commands.Parameters) -> smtp_server.PolicyDecision:
        self._sender = sender
        self._outcomes.clear()
        return super().mail(sender, parameters)

    def recipient(self, address: str, parameters: server_commands.Parameters) -> smtp_server.PolicyDecision:  # noqa: ARG002
        """Refuse, defer or accept by the recipient's outcome."""
        outcome = simulated_outcomes.outcome_of(address)
        refusal = simulated_outcomes.REFUSALS.get(outcome)
        if outcome is simulated_outcomes.SimulatedOutcome.DEFER and self._deferrals.should_defer(self._sender, address):
            refusal = simulated_outcomes.GREYLISTED
        if refusal is not None:
            return simulated_outcomes.refused(address, refusal)
        self._outcomes.add(outcome)
        return simulated_outcomes.ACCEPTED

    def data(self) -> smtp_server.PolicyDecision:
        """Ask for the content, or close the connection."""
        return None if simulated_outcomes.SimulatedOutcome.DROP in self._outcomes else super().data()

    def message(self, transaction: values.MailTransaction) -> smtp_server.PolicyDecision:
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


NAME: Final = "mailbox-simulator.localhost"
# Three times what the service accepts, so none of its messages is too large.
MAX_MESSAGE_BYTES: Final = 32 * 1024 * 1024
# Refusing many recipients is its purpose; one delivery connection sends 10,000 messages at most.
MAX_IDLE_COMMANDS: Final = 100_000
# All clients connect from this machine.
LIMITS: Final = smtp_server.ListenerLimits(connections=1000, connections_per_address=1000)
# The senders have stopped before.
GRACE_SECONDS: Final = 1


@contextlib.asynccontextmanager
async def serve(
    mail: dev_inbox.Inbox,
    *,
    host: str,
    port: int,
    failed: Callable[[Exception], None],
    slow_seconds: float = simulated_outcomes.SLOW_SECONDS,
) -> AsyncIterator[tuple[str, int]]:
    """A listening simulator; yields the bound host and port. Raises OSError."""
    deferrals = Deferrals()
    listener = smtp_server.SmtpListener(
        lambda _session: MailboxPolicy(mail, deferrals, slow_seconds=slow_seconds),
        features=server_events.Features(NAME, MAX_MESSAGE_BYTES, idle_commands=MAX_IDLE_COMMANDS),
        failed=failed,
        limits=LIMITS,
    )
    await listener.start(host, port)
    try:
        yield listener.address
    finally:
        await listener.stop(grace_seconds=GRACE_SECONDS)
