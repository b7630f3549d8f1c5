"""Notices that a provider blocks a source address, by its replies, and pauses the address for that provider.

Only replies of providers with names count, whose mail servers nobody can imitate, and only a row of them that no
accepted message interrupts, for several messages: one recipient or one message proves nothing. The owner of a domain
whose mailboxes a provider hosts chooses whom it refuses, and in which words, so such a domain counts once.
"""

import asyncio
import collections
from typing import Final

from postroad import errors
from postroad.model import providers
from postroad.model.bounces import disposition, reasons
from postroad.services import context, source_blocks
from postroad.storage import attempts
from postroad.telemetry import logs

# Different messages that were refused in a row, or domains with mailboxes of their own.
MIN_MESSAGES: Final = 5


class SourceGuard:
    """Counts refusals of source addresses in this process."""

    def __init__(self, ctx: context.Context, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._refused: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
        self._tasks: set[asyncio.Task[None]] = set()

    def count(self, attempt: attempts.Attempt, email_key: str) -> None:
        """An attempt for a recipient, from a source address, has ended."""
        pair = (attempt.source, providers.label_of(attempt.provider_queue))
        if pair[1] not in providers.NAMES:
            return
        if attempt.verdict == disposition.Verdict.DELIVERED:
            self._refused.pop(pair, None)
        elif attempt.reason == reasons.IP_BLOCKED and attempt.smtp_code is not None:
            domain = email_key.rpartition("@")[2]
            self._refused[pair].add(attempt.message_id if domain in providers.MAILBOX_DOMAINS else domain)
            if len(self._refused[pair]) >= MIN_MESSAGES:
                del self._refused[pair]
                task = asyncio.get_running_loop().create_task(self._pause(*pair, attempt.response))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait for pauses that are being stored."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _pause(self, source: str, provider: str, reply: str) -> None:
        try:
            await source_blocks.pause_blocked(self._ctx, source, provider, reply)
        except errors.PostroadError as problem:
            # Refusals go on, and are counted again.
            self._log.warning("source_pause_failed", source=source, provider=provider, error=problem.message)
        else:
            self._log.warning("source_paused", source=source, provider=provider, error=reply)
