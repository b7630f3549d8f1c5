"""Adds many addresses to the suppression list of an account, in small transactions.

After a failure, the same addresses can be added again: those on the list are not changed.
"""

import functools
from collections.abc import Sequence
from typing import Final

from postroad.services import audit_log, context
from postroad.services.maintenance import throttled_batches
from postroad.storage import store, suppressions

# For one transaction, which all writers wait for.
BATCH_ROWS: Final = 500


async def add(ctx: context.Context, rows: Sequence[suppressions.Suppression], *, audit_subject: str | None) -> int:
    """How many are new. The audit log entry, if there is one, is written with the first: the import has begun."""
    added = 0
    for first in range(0, len(rows), BATCH_ROWS):
        batch = rows[first : first + BATCH_ROWS]
        subject = audit_subject if first == 0 else None
        work = functools.partial(_store, ctx, batch=batch, audit_subject=subject)
        added += len(await throttled_batches.run_batch(ctx, work))
    return added


async def _store(
    ctx: context.Context,
    tx: store.Transaction,
    *,
    batch: Sequence[suppressions.Suppression],
    audit_subject: str | None,
) -> Sequence[suppressions.SuppressionKey]:
    if audit_subject is not None:
        await audit_log.write(ctx, tx, batch[0].account_id, "suppression.imported", audit_subject)
    return await suppressions.add(tx, batch)
