"""DKIM keys of sender domains. Private keys are stored encrypted.

A generation is an RSA key and an Ed25519 key. A domain has one that signs, and while its keys are rotated a next or an
old one. Who changes keys first locks the access version's row, so that changes do not overlap.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from postroad.storage import store


class Algorithm(StrEnum):
    """The type of a key, as its record names it (RFC 8463 section 4)."""

    RSA = "rsa"
    ED25519 = "ed25519"


class Status(StrEnum):
    """The stage of a generation: its record is awaited, it signs, or it has signed."""

    NEXT = "next"
    CURRENT = "current"
    OLD = "old"


@dataclass(frozen=True, slots=True)
class DkimKey:
    """A row of `dkim_keys`. The private key is empty when it was deleted at the end of the overlap.

    The public key is a SubjectPublicKeyInfo in DER for RSA, and the 32 octets of the key for Ed25519.
    """

    account_id: str
    domain_id: str
    selector: str
    private_key: bytes = field(repr=False)
    public_key: bytes
    created_at: int
    algorithm: str = Algorithm.RSA
    status: str = Status.CURRENT
    # Since when DNS has the record; only for Ed25519 keys, which do not sign before.
    published_at: int | None = None
    # Since when an old key does not sign any more.
    retired_at: int | None = None


async def insert(tx: store.Transaction, key: DkimKey) -> None:
    """Store a key."""
    row = (key.account_id, key.domain_id, key.selector, key.private_key, key.public_key, key.created_at)
    await tx.execute("dkim_keys.insert", *row, key.algorithm, key.status, key.published_at, key.retired_at)


async def of_domain(tx: store.Transaction, account_id: str, domain_id: str) -> list[DkimKey]:
    """All keys of a domain, oldest first."""
    return [DkimKey(*row) for row in await tx.fetch("dkim_keys.of_domain", account_id, domain_id)]


async def of_domains(tx: store.Transaction, account_id: str, *, first: str, last: str) -> dict[str, DkimKey]:
    """The RSA keys that sign for an account's domains with ids from `first` to `last`, by the domain's id."""
    rows = await tx.fetch("dkim_keys.of_domains", account_id, first, last)
    keys = [DkimKey(*row) for row in rows]
    return {key.domain_id: key for key in keys}  # the newest key of a domain comes last


async def page(tx: store.Transaction, *, after: tuple[str, str, str], limit: int) -> list[DkimKey]:
    """The keys of all domains that have a private key, after account, domain and selector."""
    return [DkimKey(*row) for row in await tx.fetch("dkim_keys.page", *after, limit)]


async def update(tx: store.Transaction, key: DkimKey) -> None:
    """Store the status, the times and the private key of a key."""
    place = (key.account_id, key.domain_id, key.selector)
    await tx.execute("dkim_keys.update", *place, key.private_key, key.status, key.published_at, key.retired_at)


async def remove_one(tx: store.Transaction, key: DkimKey) -> None:
    """Delete a key."""
    await tx.execute("dkim_keys.remove_one", key.account_id, key.domain_id, key.selector)


async def remove(tx: store.Transaction, account_id: str, domain_id: str) -> int:
    """Delete the keys of a domain; returns how many there were."""
    return await tx.execute("dkim_keys.remove", account_id, domain_id)
