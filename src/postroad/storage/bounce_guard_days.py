"""Counts of the bounce guard by account and UTC day, and the reports that counted. Written under the account's lock."""

from collections.abc import Mapping, Sequence

from postroad.model import bounce_guard
from postroad.storage import store

SWEEP_ROWS = 1_000


async def add(
    tx: store.Transaction, day: int, added: Mapping[str, bounce_guard.Counts]
) -> dict[str, bounce_guard.Counts]:
    """Add to the counts of a day, by account; returns the new counts of that day."""
    # The same order everywhere prevents deadlocks, even though the accounts are locked already.
    rows = [(account_id, day, *_columns(added[account_id])) for account_id in sorted(added)]
    return _by_account(await tx.fetch_many("bounce_guard_days.add", rows))


async def sums(tx: store.Transaction, account_ids: Sequence[str], *, after_day: int) -> dict[str, bounce_guard.Counts]:
    """The sums of these accounts for the days after this one; accounts without a row are missing."""
    rows = [(account_id, after_day) for account_id in account_ids]
    return _by_account(await tx.fetch_many("bounce_guard_days.sums", rows))


async def count_report(tx: store.Transaction, account_id: str, report_key: str, *, day: int, after_day: int) -> bool:
    """Note that a report with this key counts; False when one has counted since `after_day`, and this must not.

    A key is a mailbox or a signature.
    """
    return await tx.fetch_one("bounce_guard_days.count_report", account_id, report_key, day, after_day) is not None


async def forget(tx: store.Transaction, account_id: str) -> None:
    """Reset the counts of an account."""
    await tx.execute("bounce_guard_days.forget", account_id)


async def sweep(tx: store.Transaction, *, until_day: int, reports_until_day: int) -> int:
    """Delete up to SWEEP_ROWS counts and as many keys of reports up to their days; returns the larger number."""
    reports = await tx.execute("bounce_guard_days.sweep_reports", reports_until_day, SWEEP_ROWS)
    return max(reports, await tx.execute("bounce_guard_days.sweep", until_day, SWEEP_ROWS))


def _columns(counts: bounce_guard.Counts) -> tuple[int, int, int]:
    return counts.recipients, counts.bounces, counts.complaints


def _by_account(rows: Sequence[store.Row]) -> dict[str, bounce_guard.Counts]:
    return {row[0]: bounce_guard.Counts(*row[1:]) for row in rows}
