"""Lists that are continued by an offset: everything before the page is read as well.

A page of our own lists has a hundred rows at most. Beyond ten times as many, an account has one request at a time.
"""

import contextlib
from typing import Final

from postroad import context
from postroad.services import usage_limits

LONG_ROWS: Final = 1_000
LONG_LISTS: Final = usage_limits.WorkLimit("long lists", per_account=1, per_process=4, retry_seconds=1)


def reading(ctx: context.Context, account_id: str, *, rows: int) -> contextlib.AbstractContextManager[None]:
    """Hold a slot while this many rows are read, if they are many. Raises RateLimited when there is none."""
    return usage_limits.acquire(ctx, LONG_LISTS, account_id) if rows > LONG_ROWS else contextlib.nullcontext()
