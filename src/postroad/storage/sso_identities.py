"""Who people are at OpenID Connect providers: a subject of an issuer, bound to a login for one connection."""

from dataclasses import astuple, dataclass
from typing import Final

from postroad.storage import store

# The connection of the installation belongs to no account.
INSTALLATION: Final = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """A row of `sso_identities`; `account_id` is that of the connection, or `INSTALLATION`."""

    account_id: str
    issuer: str
    subject: str
    login_id: str
    created_at: int


async def find(tx: store.Transaction, account_id: str, *, issuer: str, subject: str) -> Identity | None:
    """Who a subject is, for one connection."""
    row = await tx.fetch_one("sso_identities.find", account_id, issuer, subject)
    return Identity(*row) if row else None


async def of_login(tx: store.Transaction, login_id: str) -> list[Identity]:
    """Who the person of a login is at providers."""
    return [Identity(*row) for row in await tx.fetch("sso_identities.of_login", login_id)]


async def is_of_account(tx: store.Transaction, login_id: str) -> bool:
    """Whether the provider of an account, and so its owners, can open a login."""
    return any(one.account_id != INSTALLATION for one in await of_login(tx, login_id))


async def put(tx: store.Transaction, identity: Identity) -> None:
    """Bind a subject to a login."""
    await tx.execute("sso_identities.put", *astuple(identity))
