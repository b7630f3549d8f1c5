"""The networks from which users logged in, the latest few of each user."""

from typing import Final

from postroad.storage import store

# Home, office, telephone and some journeys.
MAX_NETWORKS: Final = 16
# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000


async def is_known(tx: store.Transaction, user_id: str, network: str) -> bool:
    """Whether the user logged in from this network."""
    return await tx.fetch_one("known_networks.find", user_id, network) is not None


async def put(tx: store.Transaction, user_id: str, network: str, *, now: int) -> None:
    """Note a login; the oldest networks beyond MAX_NETWORKS are forgotten."""
    await tx.execute("known_networks.put", user_id, network, now)
    await tx.execute("known_networks.remove_oldest", user_id, MAX_NETWORKS)


async def remove(tx: store.Transaction, user_id: str) -> None:
    """Forget the networks of a user."""
    await tx.execute("known_networks.remove", user_id)


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Delete up to SWEEP_ROWS networks without a login since; returns how many."""
    return await tx.execute("known_networks.sweep", before, SWEEP_ROWS)
