"""What limits floods and guesses on all hosts: request rates, failed logins, and the networks that logins came from."""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from postroad.model.delivery import throttle
from postroad.storage.engine import queries, store


class Rate(msgspec.Struct, frozen=True):
    """A row of `rates`."""

    name: str
    account_id: str
    bucket: throttle.SharedBucket


async def find(tx: store.Transaction, names: Collection[str]) -> Mapping[str, throttle.SharedBucket]:
    """The stored buckets; a missing one is full."""
    rows = await tx.fetch_many("rates.find", [(name,) for name in sorted(names)])
    return {row[0]: throttle.SharedBucket(full_at=row[1], seen_at=row[2]) for row in rows}


async def put(tx: store.Transaction, rates: Collection[Rate]) -> None:
    rows = [(rate.name, rate.account_id, rate.bucket.full_at, rate.bucket.seen_at) for rate in rates]
    if rows:
        await tx.execute_later("rates.put", sorted(rows))


# Delete up to SWEEP_ROWS buckets that were full before a time; returns how many.
@queries.changes("rates.sweep")
async def sweep(tx: store.Transaction, *, before: int, limit: int = store.SWEEP_ROWS) -> int: ...


# Failed logins, counted for all processes and hosts: when the failures of each counter are forgotten.
#
# Read and written under one lock, so that parallel attempts on several hosts are counted one after the other.


async def lock_failures(tx: store.Transaction, counters: Collection[bytes]) -> Mapping[bytes, int]:
    """The stored counters, locked with all others until the transaction ends; a missing one has no failures."""
    await tx.fetch("login_failures.lock")
    rows = await tx.fetch_many("login_failures.find", [(counter,) for counter in sorted(counters)])
    return {bytes(row[0]): row[1] for row in rows}


async def put_failures(tx: store.Transaction, clear_at: Mapping[bytes, int]) -> None:
    if clear_at:
        await tx.execute_many("login_failures.put", sorted(clear_at.items()))


# Delete up to SWEEP_ROWS counters without failures; returns how many.
@queries.changes("login_failures.sweep")
async def sweep_failures(tx: store.Transaction, *, now: int, limit: int = store.SWEEP_ROWS) -> int: ...


# The networks from which users and SMTP credentials logged in, the latest few of each.
#
# Both kinds of ids have a prefix, so they share the table.

# Home, office, telephone and some journeys.
MAX_NETWORKS: Final = 16
# The hosts of an application that share a credential.
MAX_CREDENTIAL_NETWORKS: Final = 256


async def is_known_network(tx: store.Transaction, user_id: str, network: str) -> bool:
    return await last_login(tx, user_id, network) is not None


@queries.row("known_networks.find", int)
async def last_login(tx: store.Transaction, owner_id: str, network: str) -> int | None: ...
@queries.rows("known_networks.of_owner", str)
async def networks_of(tx: store.Transaction, owner_id: str) -> list[str]: ...


async def put_network(
    tx: store.Transaction, owner_id: str, network: str, *, now: int, max_networks: int = MAX_NETWORKS
) -> None:
    """Note a login; the oldest networks beyond the maximum are forgotten."""
    await tx.execute("known_networks.put", owner_id, network, now)
    await tx.execute("known_networks.remove_oldest", owner_id, max_networks)


@queries.change("known_networks.remove")
async def remove_networks(tx: store.Transaction, owner_id: str) -> None: ...
# Delete up to SWEEP_ROWS networks without a login since; returns how many.
@queries.changes("known_networks.sweep")
async def sweep_networks(tx: store.Transaction, *, before: int, limit: int = store.SWEEP_ROWS) -> int: ...
