"""How much mail may wait, and how much space it may take: of an account, and of all accounts together.

What waits is read in the background, at most every ten seconds and less often when that is slow, so a send only
compares numbers. To what was read, a process adds what it has let in since. So the limits are not exact, but nobody
passes them by much: near a limit, what waits is read again sooner.

- An account has a storage quota for mail that is queued or scheduled, and another for test mail, which costs nothing.
- Accounts share the queue fairly (model/delivery/fair_shares.py): what one schedules for next month, or sends to
  hosts that never answer, leaves room for the others. Above its high-water mark nobody may add to it.
- They share the disk as fairly: the less is free, the less an account may have to add to it. Below a minimum nobody
  may, so that what was accepted can still be delivered and recorded. Near it, mail that waits no longer counts too,
  because its content is kept for some days: nobody can fill the disk with mail that is canceled or delivered at once.
"""

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from postroad import config, errors
from postroad.concurrency import poll_loop
from postroad.mail.accept import transaction
from postroad.model.delivery import fair_shares
from postroad.model.units import times
from postroad.storage.engine import open_store, store
from postroad.storage.mail import mail_counts, messages, queue
from postroad.storage.operations import space
from postroad.telemetry import logs

MEBIBYTE: Final = 1024 * 1024
# Test mail costs nothing, so it is small and short-lived: enough for the runs of a test suite over a long weekend.
TEST_MEGABYTES: Final = 256
# Longer than the lifetime of an idempotency key, because a replay needs the message.
TEST_MAIL_DAYS: Final = 3
# Near a quota: the processes of a host can store so much in a few seconds.
NEAR_BYTES: Final = 256 * MEBIBYTE
# Owners get a notice, and the metric counts the account, from this share of a quota on.
NEAR_SHARE: Final = 0.8
# The minimum free space is at most this part of a disk, so that a small one can be used too.
MAX_FLOOR_SHARE: Final = 0.1
REFRESH_SECONDS: Final = 10.0
# Near a limit. What was let in so long before a read is stored by then; what is more recent counts once more.
MIN_REFRESH_SECONDS: Final = 2.0
# A long queue takes long to count: at most a twentieth of the time is spent on it.
REST_FACTOR: Final = 20
RETRY_SECONDS: Final = 30
# Test mail is deleted days later.
TEST_RETRY_SECONDS: Final = 3600
# What is logged when the space on the disk changes what is accepted.
_RECOVERED: Final = "disk_recovered"
_SHORT: Final = "disk_short"
_FULL: Final = "disk_full"


# The space that mail takes, by account, and what is left on the disk.
#
# It is read from the store and from the file system of the SQLite file; the disk of a PostgreSQL server is not visible
# from here. Free pages of the SQLite file count as free: new mail fills them first.


class Disk(msgspec.Struct, frozen=True):
    """The bytes that mail can still take, and those of them that must stay free."""

    free: int
    floor: int

    @property
    def headroom(self) -> int:
        """What is left until all mail is refused; negative while it is."""
        return self.free - self.floor

    @property
    def is_short(self) -> bool:
        """Whether so little is left that everything counts that an account has stored."""
        return self.headroom <= self.floor


class Usage(msgspec.Struct, frozen=True):
    """What waits, and the bytes that it takes by account: queued mail, and test mail until it is deleted.

    `disk` is None where it is not visible, or `limits.min_free_megabytes` is 0.
    """

    queued: Sequence[queue.AccountTotals]
    live: Mapping[str, int]
    test: Mapping[str, int]
    disk: Disk | None


class AccountUsage(msgspec.Struct, frozen=True):
    live: int
    test: int


class NearQuota(msgspec.Struct, frozen=True):
    account_id: str
    used: int
    quota: int
    is_test: bool


async def read_usage(database: store.Store, settings: config.Settings) -> Usage:
    """The usage at present; reads the whole queue."""
    async with database.scanning() as tx:
        disk = await read_disk(tx, settings)
        queued = await queue.totals_by_account(tx, recipient_bytes=transaction.RECIPIENT_BYTES)
        live = {totals.account_id: totals.max_live_bytes for totals in queued}
        # Exactly only where that makes a difference.
        quota = settings.quotas.stored_megabytes * MEBIBYTE
        enough = min(quota - NEAR_BYTES, round(NEAR_SHARE * quota))
        if disk is not None and disk.headroom > 0:
            enough = min(enough, round(fair_shares.ALPHA * disk.headroom))
        for account_id in [account_id for account_id, size in live.items() if size >= enough]:
            live[account_id] = await queue.live_bytes(tx, account_id, recipient_bytes=transaction.RECIPIENT_BYTES)
        tests = await messages.test_bytes_by_account(tx, recipient_bytes=transaction.RECIPIENT_BYTES)
    return Usage(queued, live, tests, disk)


async def usage_of_account(database: store.Store, account_id: str) -> AccountUsage:
    """The usage of one account at present; reads its part of the queue, and an index of all test mail."""
    async with database.scanning(account_id) as tx:
        live = await queue.live_bytes(tx, account_id, recipient_bytes=transaction.RECIPIENT_BYTES)
        tests = await messages.test_bytes_by_account(tx, recipient_bytes=transaction.RECIPIENT_BYTES)
    return AccountUsage(live, tests.get(account_id, 0))


async def read_kept(database: store.Store, settings: config.Settings, *, now: int) -> dict[str, int]:
    """About what live mail takes by account, waiting or not: what was accepted in the days that contents are kept.

    The content of scheduled mail is kept longer; and hourly counts are kept for half a year at most.
    """
    from_hour = mail_counts.hour_of(now - settings.retention.body_days * times.DAY)
    async with database.scanning() as tx:
        return await mail_counts.bytes_by_account(tx, from_hour=from_hour, recipient_bytes=transaction.RECIPIENT_BYTES)


def near_quota(usage: Usage, settings: config.Settings) -> Sequence[NearQuota]:
    quotas = ((usage.live, settings.quotas.stored_megabytes, False), (usage.test, TEST_MEGABYTES, True))
    return [
        NearQuota(account_id, used, megabytes * MEBIBYTE, is_test)
        for sizes, megabytes, is_test in quotas
        for account_id, used in sizes.items()
        if used >= NEAR_SHARE * megabytes * MEBIBYTE
    ]


async def read_disk(tx: store.Transaction, settings: config.Settings) -> Disk | None:
    """The disk of the SQLite file; None for another engine, without a minimum, and if it cannot be read."""
    folder = open_store.sqlite_folder(settings.database.url)
    minimum = settings.limits.min_free_megabytes * MEBIBYTE
    if folder is None or not minimum:
        return None
    try:
        usage = await asyncio.to_thread(shutil.disk_usage, folder)
    except OSError:
        return None
    return Disk(usage.free + ((await space.read(tx)).free or 0), min(minimum, round(usage.total * MAX_FLOOR_SHARE)))


class QuotaExceeded(errors.RateLimited):
    smtp_reply = "452 4.3.1"


class DiskFull(errors.ServiceUnavailable):
    """So little of the disk is free that the rest is needed for mail that was accepted before."""

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
        self.stored = _sums(found, recent)


def _sums(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {**first, **{account_id: first.get(account_id, 0) + size for account_id, size in second.items()}}


class QueueLimit:
    """What waited at the last read, and what this process has let in since."""

    def __init__(
        self,
        database: store.Store,
        settings: config.Settings,
        clock: Callable[[], int],
        log: logs.Logger | None = None,
    ) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._log = log
        self._disk_event = _RECOVERED
        # Recipients in the queue, while it is crowded; and bytes on the disk, while they are short.
        self._queue: fair_shares.FairShares | None = None
        self._disk: fair_shares.FairShares | None = None
        self._live, self._test = StoredBytes(), StoredBytes()
        self._refresh_at = self._refresh_near_at = float("-inf")
        self._refreshing: asyncio.Task[None] | None = None

    def check(self, account_id: str, size: int, *, is_test: bool) -> None:
        """Let in a message of about this size.

        Raises QuotaExceeded if it is too much for its account, PayloadTooLarge if it always would be, and
        ServiceUnavailable while the queue or the disk, or the account's share of it, is full.
        """
        quota = TEST_MEGABYTES if is_test else self._settings.quotas.stored_megabytes
        known = self._test if is_test else self._live
        added = known.added.get(account_id, 0) + size
        left = quota * MEBIBYTE - known.stored.get(account_id, 0) - added
        is_near = left < min(NEAR_BYTES, quota * MEBIBYTE // 5) or self._disk is not None
        is_due = time.monotonic() >= (self._refresh_near_at if is_near else self._refresh_at)
        if is_due and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
        if left < 0:
            if size > quota * MEBIBYTE:
                raise errors.PayloadTooLarge(f"the message is larger than the storage quota of {quota} MiB")
            raise self._quota_exceeded(known.stored.get(account_id, 0) + added - size, quota, is_test=is_test)
        if self._queue is not None:
            self._check_queue(self._queue, fair_shares.Party(account_id))
        if self._disk is not None:
            _take_space(self._disk, fair_shares.Party(account_id), size)
        known.added[account_id] = added

    def _check_queue(self, shares: fair_shares.FairShares, party: fair_shares.Party) -> None:
        if shares.free < 0:
            msg = (
                f"the queue is full: more than {self._settings.limits.queued_recipients} recipients are waiting for "
                "delivery; nothing was accepted"
            )
            raise errors.ServiceUnavailable(msg, retry_after=RETRY_SECONDS)
        held = shares.held(party)
        if held and not shares.has_share(party):
            msg = (
                f"this account's share of the queue is full: {held} of its recipients are waiting for delivery; "
                "nothing was accepted"
            )
            raise errors.ServiceUnavailable(msg, retry_after=RETRY_SECONDS)

    def _quota_exceeded(self, used: int, quota: int, *, is_test: bool) -> QuotaExceeded:
        kind, advice, seconds = "queued and scheduled", "cancel scheduled messages, or wait for delivery", RETRY_SECONDS
        if is_test:
            advice = f"it is deleted {TEST_MAIL_DAYS} days after its final status"
            kind, seconds = "test", TEST_RETRY_SECONDS
        msg = f"{kind} mail of this account uses {used / MEBIBYTE:.1f} of {quota} MiB; {advice}"
        return QuotaExceeded(f"{msg}; nothing was accepted", retry_after=seconds)

    async def read_disk(self) -> None:
        """Read at the start whether all mail is refused; who has stored how much is read with the first message."""
        with contextlib.suppress(errors.PostroadError):
            async with self._database.reading() as tx:
                disk = await read_disk(tx, self._settings)
            self._set_disk(disk, _disk_shares(Usage([], {}, {}, disk), {}))

    async def close(self) -> None:
        if self._refreshing is not None:
            await poll_loop.cancel(self._refreshing)

    async def _refresh(self) -> None:
        began = time.monotonic()
        recent, recent_tests = self._live.begin_read(), self._test.begin_read()
        # An unreachable database is reported to senders anyway; it says nothing about the queue.
        with contextlib.suppress(errors.PostroadError):
            usage = await read_usage(self._database, self._settings)
            kept: Mapping[str, int] = {}
            if usage.disk is not None and usage.disk.is_short:
                kept = await read_kept(self._database, self._settings, now=self._clock())
            self._live.end_read(usage.live, recent)
            self._test.end_read(usage.test, recent_tests)
            self._queue = _queue_shares(usage, self._settings.limits.queued_recipients)
            self._set_disk(usage.disk, _disk_shares(usage, kept))
        now = time.monotonic()
        rest = REST_FACTOR * (now - began)
        self._refresh_at = now + max(REFRESH_SECONDS, rest)
        self._refresh_near_at = now + max(MIN_REFRESH_SECONDS, rest)

    def _set_disk(self, disk: Disk | None, shares: fair_shares.FairShares | None) -> None:
        """Replace what was known, and log what changes for senders."""
        self._disk = shares
        event = _RECOVERED if shares is None else _SHORT if shares.free > 0 else _FULL
        if event != self._disk_event and self._log is not None:
            log = self._log.info if event == _RECOVERED else self._log.warning
            log(event, **({} if disk is None else {"free_bytes": disk.free, "minimum_bytes": disk.floor}))
        self._disk_event = event


def _queue_shares(usage: Usage, limit: int) -> fair_shares.FairShares | None:
    """Who has how much of the queue; None while even an account that is alone has its share."""
    shares = fair_shares.FairShares(limit)
    for totals in usage.queued:
        shares.add([fair_shares.Party(totals.account_id)], totals.recipients)
    return shares if limit - shares.free > limit * fair_shares.ALPHA / (1 + fair_shares.ALPHA) else None


def _disk_shares(usage: Usage, kept: Mapping[str, int]) -> fair_shares.FairShares | None:
    """Who has how much of the disk; None while enough is free, and every account has its share."""
    live = {**usage.live, **{name: max(size, usage.live.get(name, 0)) for name, size in kept.items()}}
    disk, held = usage.disk, _sums(live, usage.test)
    if disk is None or not (disk.is_short or max(held.values(), default=0) >= fair_shares.ALPHA * disk.headroom):
        return None
    shares = fair_shares.FairShares(disk.headroom)
    for account_id, size in held.items():
        if size:
            shares.count(fair_shares.Party(account_id), size)
    return shares


def _take_space(shares: fair_shares.FairShares, party: fair_shares.Party, size: int) -> None:
    if shares.take([party], size):
        return
    held = shares.held(party)
    if held and shares.free > 0:
        msg = (
            "the disk of this service is filling up, and mail of this account takes "
            f"{held // MEBIBYTE} MiB of it; nothing was accepted"
        )
        raise DiskFull(msg, retry_after=RETRY_SECONDS)
    raise DiskFull("the disk of this service is almost full; nothing was accepted", retry_after=RETRY_SECONDS)
