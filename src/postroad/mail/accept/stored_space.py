"""The space that mail takes, by account, and what is left on the disk.

It is read from the store and from the file system of the SQLite file; the disk of a PostgreSQL server is not visible
from here. Free pages of the SQLite file count as free: new mail fills them first.
"""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import config
from postroad.mail.accept import batch
from postroad.model.delivery import fair_shares
from postroad.model.units import times
from postroad.storage.engine import open_store, store
from postroad.storage.mail import mail_counts, messages, queue
from postroad.storage.operations import space

MEBIBYTE: Final = 1024 * 1024
# Near a quota: the processes of a host can store so much in a few seconds.
NEAR_BYTES: Final = 256 * MEBIBYTE
# Owners get a notice, and the metric counts the account, from this share of a quota on.
NEAR_SHARE: Final = 0.8
# The minimum free space is at most this part of a disk, so that a small one can be used too.
MAX_FLOOR_SHARE: Final = 0.1


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
    """The bytes that the mail of an account takes: queued mail, and test mail until it is deleted."""

    live: int
    test: int


class NearQuota(msgspec.Struct, frozen=True):
    """An account that has used most of a quota, in bytes."""

    account_id: str
    used: int
    quota: int
    is_test: bool


async def read(database: store.Store, settings: config.Settings) -> Usage:
    """The usage at present; reads the whole queue."""
    async with database.scanning() as tx:
        disk = await read_disk(tx, settings)
        queued = await queue.totals_by_account(tx, recipient_bytes=batch.RECIPIENT_BYTES)
        live = {one.account_id: one.max_live_bytes for one in queued}
        # Exactly only where that makes a difference.
        quota = settings.quotas.stored_megabytes * MEBIBYTE
        enough = min(quota - NEAR_BYTES, round(NEAR_SHARE * quota))
        if disk is not None and disk.headroom > 0:
            enough = min(enough, round(fair_shares.ALPHA * disk.headroom))
        for account_id in [account_id for account_id, size in live.items() if size >= enough]:
            live[account_id] = await queue.live_bytes(tx, account_id, recipient_bytes=batch.RECIPIENT_BYTES)
        tests = await messages.test_bytes_by_account(tx, recipient_bytes=batch.RECIPIENT_BYTES)
    return Usage(queued, live, tests, disk)


async def of_account(database: store.Store, account_id: str) -> AccountUsage:
    """The usage of one account at present; reads its part of the queue, and an index of all test mail."""
    async with database.scanning(account_id) as tx:
        live = await queue.live_bytes(tx, account_id, recipient_bytes=batch.RECIPIENT_BYTES)
        tests = await messages.test_bytes_by_account(tx, recipient_bytes=batch.RECIPIENT_BYTES)
    return AccountUsage(live, tests.get(account_id, 0))


async def read_kept(database: store.Store, settings: config.Settings, *, now: int) -> dict[str, int]:
    """About what live mail takes by account, waiting or not: what was accepted in the days that contents are kept.

    The content of scheduled mail is kept longer; and hourly counts are kept for half a year at most.
    """
    from_hour = mail_counts.hour_of(now - settings.retention.body_days * times.DAY)
    async with database.scanning() as tx:
        return await mail_counts.bytes_by_account(tx, from_hour=from_hour, recipient_bytes=batch.RECIPIENT_BYTES)


def near_quota(usage: Usage, settings: config.Settings) -> Sequence[NearQuota]:
    """The accounts that have used most of a quota."""
    quotas = ((usage.live, settings.quotas.stored_megabytes, False), (usage.test, settings.quotas.test_megabytes, True))
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
