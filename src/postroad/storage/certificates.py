"""Certificates that the service obtains by itself, one for each set of names. Private keys are stored encrypted.

A process that orders one claims it first, so hosts do not order the same certificate at the same time; the claim of a
process that dies expires.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from postroad.storage import store


class Key(NamedTuple):
    """Whose certificate it is, and for which names: a change of either is another certificate."""

    directory: str
    names: str


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """A row of `certificates`. The chain, in PEM, and the key are empty until the first certificate is there."""

    directory: str
    names: str
    chain: str
    private_key: bytes = field(repr=False)
    issued_at: int
    expires_at: int
    # When it is ordered next.
    due_at: int
    claimed_until: int
    # Failed or unfinished orders since the last certificate.
    attempt_count: int
    error: str


def key_of(directory: str, names: Iterable[str]) -> Key:
    """The key of a set of names, whatever their order and case."""
    return Key(directory, ",".join(sorted({name.lower() for name in names})))


async def find(tx: store.Transaction, key: Key) -> StoredCertificate | None:
    """The certificate of a set of names."""
    row = await tx.fetch_one("certificates.find", *key)
    return None if row is None else StoredCertificate(*row)


async def claim(tx: store.Transaction, key: Key, *, due_by: int, now: int, until: int) -> StoredCertificate | None:
    """Claim a certificate for an order, if it is due by then and nobody else has claimed it."""
    await tx.execute("certificates.open", *key, b"")
    row = await tx.fetch_one("certificates.claim", *key, due_by, now, until)
    return None if row is None else StoredCertificate(*row)


async def put(
    tx: store.Transaction, key: Key, *, chain: str, private_key: bytes, issued_at: int, expires_at: int, due_at: int
) -> None:
    """Store a new certificate, and end the claim."""
    await tx.execute("certificates.put", *key, chain, private_key, issued_at, expires_at, due_at)


async def postpone(tx: store.Transaction, key: Key, *, due_at: int, error: str) -> None:
    """Store why an order failed and when the next is due, and end the claim."""
    await tx.execute("certificates.postpone", *key, due_at, error)
