"""The queue's high-water mark: submissions are refused while far more is queued than can be delivered soon.

The queue length is checked in the background, at most every ten seconds and less often when the check is slow, so a
send only reads its result. The limit is therefore not exact: what arrives between two checks is accepted.

Accounts share the queue fairly (model/fair_shares.py): what one schedules for next month, or sends to hosts that
never answer, leaves room for the others.
"""

import asyncio
import contextlib
import time
from typing import Final

from postroad import errors
from postroad.concurrency import poll_loop
from postroad.model import fair_shares
from postroad.storage import queue, store

REFRESH_SECONDS: Final = 10.0
# A long queue takes long to count: at most a twentieth of the time is spent on it.
REST_FACTOR: Final = 20
RETRY_SECONDS: Final = 30


class QueueLimit:
    """Whether the queue, or an account's share of it, was full at the last check."""

    def __init__(self, database: store.Store, *, max_recipients: int) -> None:
        self._database = database
        self.max_recipients = max_recipients
        self._shares = fair_shares.FairShares(max_recipients)
        self._refresh_at = float("-inf")
        self._refreshing: asyncio.Task[None] | None = None

    def check(self, account_id: str) -> None:
        """Raise ServiceUnavailable while the queue, or the account's share of it, is full."""
        if time.monotonic() >= self._refresh_at and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
        if self._shares.free == self.max_recipients:  # nobody was counted
            return
        if self._shares.free < 0:
            msg = (
                f"the queue is full: more than {self.max_recipients} recipients are waiting for delivery; "
                "nothing was accepted"
            )
            raise errors.ServiceUnavailable(msg, retry_after=RETRY_SECONDS)
        party = fair_shares.Party(account_id)
        held = self._shares.held(party)
        if held and not self._shares.has_share(party):
            msg = (
                f"this account's share of the queue is full: {held} of its recipients are waiting for delivery; "
                "nothing was accepted"
            )
            raise errors.ServiceUnavailable(msg, retry_after=RETRY_SECONDS)

    async def close(self) -> None:
        """Cancel a running check."""
        if self._refreshing is not None:
            await poll_loop.cancel(self._refreshing)

    async def _refresh(self) -> None:
        began = time.monotonic()
        # An unreachable database is reported to senders anyway; it says nothing about the queue.
        with contextlib.suppress(errors.PostroadError):
            async with self._database.scanning() as tx:
                self._shares = await self._read(tx)
        now = time.monotonic()
        self._refresh_at = now + max(REFRESH_SECONDS, REST_FACTOR * (now - began))

    async def _read(self, tx: store.Transaction) -> fair_shares.FairShares:
        """Who has how much of the queue. Nobody is counted while even an account that is alone has its share."""
        shares = fair_shares.FairShares(self.max_recipients)
        alone = int(self.max_recipients * fair_shares.ALPHA / (1 + fair_shares.ALPHA))
        if await queue.is_longer_than(tx, self.max_recipients):
            shares.add([], self.max_recipients + 1)  # full for everyone, whoever has it
        elif await queue.is_longer_than(tx, alone):
            for account_id, recipients in await queue.counts_by_account(tx):
                shares.add([fair_shares.Party(account_id)], recipients)
        return shares
