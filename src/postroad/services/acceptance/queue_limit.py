"""How much mail may wait, and how much space it may take: of an account, and of all accounts together.

The queue and the stored bytes are read in the background, at most every ten seconds and less often when that is slow,
so a send only compares numbers. To what was read, a process adds what it has let in since. So the limits are not
exact, but nobody passes them by much: near a limit they are read again sooner.

- An account has a quota of bytes for mail that is queued or scheduled, and another for test mail, which costs nothing.
- Accounts share the queue fairly (model/fair_shares.py): what one schedules for next month, or sends to hosts that
  never answer, leaves room for the others. Above its high-water mark nobody may add to it.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Final

from postroad import config, errors
from postroad.concurrency import poll_loop
from postroad.model import fair_shares
from postroad.services.acceptance import batch
from postroad.storage import messages, queue, store

REFRESH_SECONDS: Final = 10.0
# Near a limit. What was let in so long before a read is stored by then; what is more recent counts once more.
MIN_REFRESH_SECONDS: Final = 2.0
# A long queue takes long to count: at most a twentieth of the time is spent on it.
REST_FACTOR: Final = 20
RETRY_SECONDS: Final = 30
MEBIBYTE: Final = 1024 * 1024
# The processes of a host can store so much in a few seconds.
NEAR_BYTES: Final = 256 * MEBIBYTE


class QuotaExceeded(errors.RateLimited):
    """The mail of the account takes as much space as it may have."""

    smtp_reply = "452 4.3.1"


class StoredBytes:
    """Bytes by account: what was stored at the last read, and what this process has let in since it began."""

    __slots__ = ("added", "stored")

    def __init__(self) -> None:
        self.stored: dict[str, int] = {}
        self.added: dict[str, int] = {}

    def begin_read(self) -> Mapping[str, int]:
        """Count from now on; returns what was let in lately, which the read may miss."""
        recent, self.added = self.added, {}
        self.stored = _sums(self.stored, recent)
        return recent

    def end_read(self, found: Mapping[str, int], recent: Mapping[str, int]) -> None:
        """Replace what was known."""
        self.stored = _sums(found, recent)


def _sums(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {**first, **{account_id: first.get(account_id, 0) + size for account_id, size in second.items()}}


class QueueLimit:
    """What waited at the last read, and what this process has let in since."""

    def __init__(self, database: store.Store, settings: config.Settings) -> None:
        self._database = database
        self._settings = settings
        self._shares = fair_shares.FairShares(0)
        self._is_crowded = False
        self._live, self._test = StoredBytes(), StoredBytes()
        self._refresh_at = self._refresh_near_at = float("-inf")
        self._refreshing: asyncio.Task[None] | None = None

    def check(self, account_id: str, size: int, *, is_test: bool) -> None:
        """Let in a message of about this size.

        Raises QuotaExceeded if it is too much for its account, and ServiceUnavailable while the queue, or the
        account's share of it, is full.
        """
        quotas = self._settings.quotas
        known, quota = (self._test, quotas.test_megabytes) if is_test else (self._live, quotas.stored_megabytes)
        added = known.added.get(account_id, 0) + size
        left = quota * MEBIBYTE - known.stored.get(account_id, 0) - added
        is_due = time.monotonic() >= (self._refresh_at if left > NEAR_BYTES else self._refresh_near_at)
        if is_due and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
        if left < 0:
            raise _quota_exceeded(quota * MEBIBYTE - left - size, quota, is_test=is_test)
        if self._is_crowded:
            self._check_queue(account_id)
        known.added[account_id] = added

    def _check_queue(self, account_id: str) -> None:
        if self._shares.free < 0:
            msg = (
                f"the queue is full: more than {self._settings.limits.queued_recipients} recipients are waiting for "
                "delivery; nothing was accepted"
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
        """Cancel a running read."""
        if self._refreshing is not None:
            await poll_loop.cancel(self._refreshing)

    async def _refresh(self) -> None:
        began = time.monotonic()
        recent, recent_tests = self._live.begin_read(), self._test.begin_read()
        # An unreachable database is reported to senders anyway; it says nothing about the queue.
        with contextlib.suppress(errors.PostroadError):
            async with self._database.scanning() as tx:
                queued = await queue.totals_by_account(tx, recipient_bytes=batch.RECIPIENT_BYTES)
                live = await self._live_bytes(tx, queued)
                tests = await messages.test_bytes_by_account(tx, recipient_bytes=batch.RECIPIENT_BYTES)
            self._live.end_read(live, recent)
            self._test.end_read(tests, recent_tests)
            self._share_queue(queued)
        now = time.monotonic()
        rest = REST_FACTOR * (now - began)
        self._refresh_at = now + max(REFRESH_SECONDS, rest)
        self._refresh_near_at = now + max(MIN_REFRESH_SECONDS, rest)

    async def _live_bytes(self, tx: store.Transaction, queued: Sequence[queue.AccountTotals]) -> dict[str, int]:
        """What the queued mail of each account takes, exactly only where that makes a difference."""
        enough = self._settings.quotas.stored_megabytes * MEBIBYTE - NEAR_BYTES
        return {
            one.account_id: one.max_live_bytes
            if one.max_live_bytes < enough
            else await queue.live_bytes(tx, one.account_id, recipient_bytes=batch.RECIPIENT_BYTES)
            for one in queued
        }

    def _share_queue(self, queued: Sequence[queue.AccountTotals]) -> None:
        """Who has how much of the queue. It is not crowded while even an account that is alone has its share."""
        limit = self._settings.limits.queued_recipients
        self._shares = fair_shares.FairShares(limit)
        for one in queued:
            self._shares.add([fair_shares.Party(one.account_id)], one.recipients)
        self._is_crowded = limit - self._shares.free > limit * fair_shares.ALPHA / (1 + fair_shares.ALPHA)


def _quota_exceeded(used: int, quota: int, *, is_test: bool) -> QuotaExceeded:
    what = (
        "test mail of this account takes {} of its {} MiB; it is deleted some days after its final status"
        if is_test
        else "queued and scheduled mail of this account takes {} of its {} MiB; cancel messages, or wait for delivery"
    )
    return QuotaExceeded(f"{what.format(used // MEBIBYTE, quota)}; nothing was accepted", retry_after=RETRY_SECONDS)
