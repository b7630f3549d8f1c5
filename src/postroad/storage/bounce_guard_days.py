"""What the bounce guard counts of an account, by UTC day. Written under the account's lock."""

from collections.abc import Mapping, Sequence

from postroad.model import bounce_guard
from postroad.storage import store

SWEEP_ROWS = 1_000


async def add(
    tx: store.Transaction, day: int, added: Mapping[str, bounce_guard.Counts]
) -> dict[str, bounce_guard.Counts]:
    """Count more on a day, by account; returns what that day has come to."""
    # In one order everywhere, though the accounts are locked already: nobody has to think about it.
    rows = [(account_id, day, *_columns(added[account_id])) for account_id in sorted(added)]
    return _by_account(await tx.fetch_many("sending_days.add", rows))


async def sums(tx: store.Transaction, account_ids: Sequence[str], *, after_day: int) -> dict[str, bounce_guard.Counts]:
    """What these accounts have come to since a day, itself not included; those without a row are missing."""
    rows = [(account_id, after_day) for account_id in account_ids]
    return _by_account(await tx.fetch_many("sending_days.sums", rows))


async def forget(tx: store.Transaction, account_id: str) -> None:
    """A clean slate for an account."""
    await tx.execute("sending_days.forget", account_id)


async def sweep(tx: store.Transaction, *, until_day: int) -> int:
    """Forget days up to this one that nobody looks at any more, some at a time; returns how many rows went."""
    return await tx.execute("sending_days.sweep", until_day, SWEEP_ROWS)


def _columns(counts: bounce_guard.Counts) -> tuple[int, int, int]:
    return counts.recipients, counts.bounces, counts.complaints


def _by_account(rows: Sequence[store.Row]) -> dict[str, bounce_guard.Counts]:
    return {row[0]: bounce_guard.Counts(*row[1:]) for row in rows}
