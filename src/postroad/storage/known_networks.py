"""The networks from which users and SMTP credentials logged in, the latest few of each.

Both kinds of ids have a prefix, so they share the table.
"""

from typing import Final

from postroad.storage import store

# Home, office, telephone and some journeys.
MAX_NETWORKS: Final = 16
# The hosts of an application that share a credential.
MAX_CREDENTIAL_NETWORKS: Final = 256
# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000


async def is_known(tx: store.Transaction, user_id: str, network: str) -> bool:
    """Whether the user logged in from this network."""
    return await last_login(tx, user_id, network) is not None


async def last_login(tx: store.Transaction, owner_id: str, network: str) -> int | None:
    """When the user's or credential's last recorded login from this network was."""
    row = await tx.fetch_one("known_networks.find", owner_id, network)
    return int(row[0]) if row else None


async def of_owner(tx: store.Transaction, owner_id: str) -> list[str]:
    """The networks of a user or a credential."""
    return [str(row[0]) for row in await tx.fetch("known_networks.of_owner", owner_id)]


async def put(
    tx: store.Transaction, owner_id: str, network: str, *, now: int, max_networks: int = MAX_NETWORKS
) -> None:
    """Note a login; the oldest networks beyond the maximum are forgotten."""
    await tx.execute("known_networks.put", owner_id, network, now)
    await tx.execute("known_networks.remove_oldest", owner_id, max_networks)


async def remove(tx: store.Transaction, owner_id: str) -> None:
    """Forget the networks of a user or a credential."""
    await tx.execute("known_networks.remove", owner_id)


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Delete up to SWEEP_ROWS networks without a login since; returns how many."""
    return await tx.execute("known_networks.sweep", before, SWEEP_ROWS)
