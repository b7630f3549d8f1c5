"""The mailbox simulator as an async context manager."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from postroad.model import simulated_outcomes
from postroad.network import smtp_listener, smtp_session
from postroad.protocol.smtp import server_events
from postroad.services.messages import dev_inbox
from postroad.simulator import mailbox

NAME: Final = "mailbox-simulator.localhost"
# Three times what the service accepts, so none of its messages is too large.
MAX_MESSAGE_BYTES: Final = 32 * 1024 * 1024
# Refusing many recipients is its purpose; one delivery connection sends 10,000 messages at most.
MAX_IDLE_COMMANDS: Final = 100_000
# All clients connect from this machine.
LIMITS: Final = smtp_session.ListenerLimits(connections=1000, connections_per_address=1000)
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
    deferrals = mailbox.Deferrals()
    listener = smtp_listener.SmtpListener(
        lambda _session: mailbox.MailboxPolicy(mail, deferrals, slow_seconds=slow_seconds),
        features=server_events.Features(NAME, MAX_MESSAGE_BYTES, idle_commands=MAX_IDLE_COMMANDS),
        failed=failed,
        limits=LIMITS,
    )
    await listener.start(host, port)
    try:
        yield listener.address
    finally:
        await listener.stop(grace_seconds=GRACE_SECONDS)
