"""Certificates that the service obtains by itself, accounts at their authorities, and challenges.

Private keys are stored encrypted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from postroad.storage.engine import queries, store


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


@dataclass(frozen=True, slots=True)
class AcmeAccount:
    """A row of `acme_accounts`. The private key is stored encrypted."""

    directory: str
    private_key: bytes = field(repr=False)
    uri: str


class StoredChallenge(msgspec.Struct, frozen=True):
    """A row of `acme_challenges`."""

    token: str
    name: str
    kind: str
    key_authorization: str
    expires_at: int


async def put_account(tx: store.Transaction, account: AcmeAccount) -> None:
    """Store the account of a directory, unless there is one."""
    await tx.execute("acme.put_account", account.directory, account.private_key, account.uri)


@queries.row("acme.account", AcmeAccount)
async def acme_account(tx: store.Transaction, directory: str) -> AcmeAccount | None: ...


async def put_challenges(tx: store.Transaction, challenges: Iterable[StoredChallenge]) -> None:
    """Store the challenges of an order."""
    for stored_challenge in challenges:
        await tx.execute(
            "acme.put_challenge",
            stored_challenge.token,
            stored_challenge.name,
            stored_challenge.kind,
            stored_challenge.key_authorization,
            stored_challenge.expires_at,
        )


@queries.row("acme.challenge", StoredChallenge)
async def challenge(tx: store.Transaction, token: str, *, now: int) -> StoredChallenge | None: ...
@queries.rows("acme.challenges", StoredChallenge)
async def challenges(tx: store.Transaction, kind: str, *, now: int) -> list[StoredChallenge]: ...


async def remove_challenges(tx: store.Transaction, tokens: Iterable[str], *, now: int) -> None:
    """Delete the challenges of an order that has ended, and those that a process left behind."""
    for token in tokens:
        await tx.execute("acme.remove_challenge", token)
    await tx.execute("acme.sweep", now)
