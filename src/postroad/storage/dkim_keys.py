"""DKIM keys of sender domains. The private key is stored encrypted; the newest key of a domain signs."""

from dataclasses import dataclass, field

from postroad.storage import store


@dataclass(frozen=True, slots=True)
class DkimKey:
    """A row of `dkim_keys`. The public key is a SubjectPublicKeyInfo in DER."""

    account_id: str
    domain_id: str
    selector: str
    private_key: bytes = field(repr=False)
    public_key: bytes
    created_at: int


async def insert(tx: store.Transaction, key: DkimKey) -> None:
    """Store a key."""
    row = (key.account_id, key.domain_id, key.selector, key.private_key, key.public_key, key.created_at)
    await tx.execute("dkim_keys.insert", *row)


async def newest(tx: store.Transaction, account_id: str, domain_id: str) -> DkimKey | None:
    """The key that signs for a domain."""
    row = await tx.fetch_one("dkim_keys.newest", account_id, domain_id)
    return DkimKey(*row) if row else None


async def of_domains(tx: store.Transaction, account_id: str, *, first: str, last: str) -> dict[str, DkimKey]:
    """The keys that sign for an account's domains with ids from `first` to `last`, by the domain's id."""
    rows = await tx.fetch("dkim_keys.of_domains", account_id, first, last)
    keys = [DkimKey(*row) for row in rows]
    return {key.domain_id: key for key in keys}  # the newest key of a domain comes last


async def remove(tx: store.Transaction, account_id: str, domain_id: str) -> int:
    """Delete the keys of a domain; returns how many there were."""
    return await tx.execute("dkim_keys.remove", account_id, domain_id)
