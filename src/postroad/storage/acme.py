"""Accounts at certificate authorities, and the challenges of orders in progress, which every host can answer."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from postroad.storage import store


@dataclass(frozen=True, slots=True)
class Account:
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


async def put_account(tx: store.Transaction, account: Account) -> None:
    """Store the account of a directory, unless there is one."""
    await tx.execute("acme.put_account", account.directory, account.private_key, account.uri)


async def account(tx: store.Transaction, directory: str) -> Account | None:
    """The account of a directory."""
    row = await tx.fetch_one("acme.account", directory)
    return None if row is None else Account(*row)


async def put_challenges(tx: store.Transaction, challenges: Iterable[StoredChallenge]) -> None:
    """Store the challenges of an order."""
    for one in challenges:
        await tx.execute("acme.put_challenge", one.token, one.name, one.kind, one.key_authorization, one.expires_at)


async def challenge(tx: store.Transaction, token: str, *, now: int) -> StoredChallenge | None:
    """A challenge by its token."""
    row = await tx.fetch_one("acme.challenge", token, now)
    return None if row is None else StoredChallenge(*row)


async def challenges(tx: store.Transaction, kind: str, *, now: int) -> list[StoredChallenge]:
    """The challenges of a kind."""
    return [StoredChallenge(*row) for row in await tx.fetch("acme.challenges", kind, now)]


async def remove_challenges(tx: store.Transaction, tokens: Iterable[str], *, now: int) -> None:
    """Delete the challenges of an order that has ended, and those that a process left behind."""
    for token in tokens:
        await tx.execute("acme.remove_challenge", token)
    await tx.execute("acme.sweep", now)
