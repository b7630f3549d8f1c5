"""The progress of each sender domain's warm-up, by name; read and written under the account's lock."""

from collections.abc import Collection, Mapping

from postroad.model import warmup
from postroad.storage import store

Key = tuple[str, str]


async def find(tx: store.Transaction, keys: Collection[Key]) -> Mapping[Key, warmup.State]:
    """The states of those among these (account, domain) pairs that have sent before."""
    rows = await tx.fetch_many("warmups.find", sorted(keys)) if keys else []
    return {(row[0], row[1]): warmup.State(day=row[2], step=row[3], used=row[4]) for row in rows}


async def put(tx: store.Transaction, states: Mapping[Key, warmup.State]) -> None:
    """Store states."""
    rows = [(*key, state.day, state.step, state.used) for key, state in sorted(states.items())]
    if rows:
        await tx.execute_later("warmups.put", rows)


async def forget(tx: store.Transaction, key: Key, *, before_day: int) -> None:
    """Delete a domain whose last day with mail is over."""
    await tx.execute("warmups.forget", *key, before_day)
