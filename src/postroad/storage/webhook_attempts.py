"""Every webhook attempt with its response, kept for 7 days."""

from collections.abc import Sequence

import msgspec

from postroad.storage import store


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `webhook_attempts`. `error` says why there is no status, or what a status does not say."""

    account_id: str
    webhook_id: str
    delivery_id: str
    number: int
    started_at: int
    duration: int
    status_code: int | None
    response_body: str | None
    error: str | None


async def insert(tx: store.Transaction, attempts: Sequence[Attempt]) -> None:
    """Store attempts; a repeated one is ignored."""
    await tx.execute_many("webhook_attempts.insert", [msgspec.structs.astuple(attempt) for attempt in attempts])


async def of_deliveries(
    tx: store.Transaction, account_id: str, webhook_id: str, delivery_ids: Sequence[str]
) -> list[Attempt]:
    """The attempts of deliveries of one endpoint, in the order in which they were made."""
    wanted = [(account_id, webhook_id, delivery_id) for delivery_id in delivery_ids]
    rows = await tx.fetch_many("webhook_attempts.of_deliveries", wanted)
    found = [Attempt(**dict(zip(Attempt.__struct_fields__, row, strict=True))) for row in rows]
    return sorted(found, key=lambda attempt: (attempt.delivery_id, attempt.number))


async def remove(tx: store.Transaction, deliveries: Sequence[tuple[str, str, str]]) -> None:
    """Delete the attempts of deliveries."""
    await tx.execute_many("webhook_attempts.remove", deliveries)
