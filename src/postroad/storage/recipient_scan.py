"""The newest recipients of an account's mail, one by one: for what no count has, such as a tag or the time of delivery.

A scan is bounded twice: by the messages that it examines (`floor` finds the oldest of them) and by the recipients that
it returns. Test mail is left out.
"""

from dataclasses import dataclass
from typing import NamedTuple

from postroad.storage import store


@dataclass(frozen=True, slots=True)
class Scope:
    """Messages with ids from `after` on and before `before`, with a tag, or from senders in a domain; empty for any."""

    after: str
    before: str
    tag: str = ""
    domain: str = ""


class ScannedRecipient(NamedTuple):
    """A recipient with the times of its message. `provider_queue` is that of the last attempt, None without one."""

    message_id: str
    created_at: int
    send_at: int | None
    status: str
    attempt_count: int
    delivered_at: int | None
    provider_queue: str | None


async def floor(tx: store.Transaction, account_id: str, scope: Scope, *, examined: int) -> str | None:
    """The oldest of so many messages; None when there are fewer."""
    if scope.tag:
        row = await tx.fetch_one(
            "recipient_scan.floor_by_tag", account_id, scope.after, scope.before, examined - 1, scope.tag
        )
    else:
        row = await tx.fetch_one("recipient_scan.floor_by_time", account_id, scope.after, scope.before, examined - 1)
    return None if row is None else str(row[0])


async def newest(tx: store.Transaction, account_id: str, scope: Scope, *, limit: int) -> list[ScannedRecipient]:
    """The recipients of the scope, newest messages first. The scope should begin at its floor."""
    suffix = f"@{scope.domain}" if scope.domain else ""
    bounds = account_id, scope.after, scope.before, limit, suffix
    if scope.tag:
        rows = await tx.fetch("recipient_scan.by_tag", *bounds, scope.tag)
    else:
        rows = await tx.fetch("recipient_scan.by_time", *bounds)
    return [ScannedRecipient(*row) for row in rows]
