"""OpenID Connect providers of accounts with their email domains, and who people are there: a subject bound to a login."""

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Final

import msgspec

from postroad.storage.engine import store

_ROLES = msgspec.json.Decoder(dict[str, str])


@dataclass(frozen=True, slots=True)
class Connection:
    """A row of `sso_connections`. `client_secret` is encrypted; None for a public client."""

    account_id: str
    issuer: str
    client_id: str
    client_secret: bytes | None = field(repr=False)
    scopes: str
    role: str
    groups_claim: str
    group_roles: str
    creates_users: int
    allows_passwords: int
    created_at: int
    updated_at: int

    @property
    def roles(self) -> Mapping[str, str]:
        """The role by group, in the order in which they count."""
        return _ROLES.decode(self.group_roles)


async def of_account(tx: store.Transaction, account_id: str) -> Connection | None:
    """The connection of an account."""
    row = await tx.fetch_one("sso_connections.of_account", account_id)
    return Connection(*row) if row else None


async def by_domain(tx: store.Transaction, domain: str) -> Connection | None:
    """The connection for an email domain, as long as its account has verified the domain."""
    row = await tx.fetch_one("sso_connections.by_domain", domain)
    return Connection(*row) if row else None


async def domains(tx: store.Transaction, account_id: str) -> list[str]:
    """The email domains of a connection."""
    return [str(row[0]) for row in await tx.fetch("sso_connections.domains", account_id)]


async def put(tx: store.Transaction, connection: Connection, domains: Iterable[str]) -> None:
    """Create or replace the connection of an account, for these domains."""
    await tx.execute("sso_connections.put", *astuple(connection))
    await tx.execute("sso_connections.remove_domains", connection.account_id)
    for domain in domains:
        await tx.execute("sso_connections.put_domain", domain, connection.account_id)


async def remove(tx: store.Transaction, account_id: str) -> bool:
    """Delete the connection of an account; False when there is none. Whom it knows stays: it opened their logins."""
    await tx.execute("sso_connections.remove_domains", account_id)
    return await tx.execute("sso_connections.remove", account_id) == 1


async def end_sso_sessions(tx: store.Transaction, user_id: str, *, but: str) -> None:
    """End the sessions of a user that began by single sign-on, but for one and what was made in it."""
    await tx.execute("sso_connections.end_sso_sessions", user_id, but)


async def end_local_sessions(tx: store.Transaction, user_id: str, *, but: str) -> None:
    """End the sessions of a user that began without single sign-on, but for one and what was made in it."""
    await tx.execute("sso_connections.end_local_sessions", user_id, but)


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


async def find_identity(tx: store.Transaction, account_id: str, *, issuer: str, subject: str) -> Identity | None:
    """Who a subject is, for one connection."""
    row = await tx.fetch_one("sso_identities.find", account_id, issuer, subject)
    return Identity(*row) if row else None


async def identities_of_login(tx: store.Transaction, login_id: str) -> list[Identity]:
    """Who the person of a login is at providers."""
    return [Identity(*row) for row in await tx.fetch("sso_identities.of_login", login_id)]


async def is_of_account(tx: store.Transaction, login_id: str) -> bool:
    """Whether the provider of an account, and so its owners, can open a login."""
    return any(one.account_id != INSTALLATION for one in await identities_of_login(tx, login_id))


async def put_identity(tx: store.Transaction, identity: Identity) -> None:
    """Bind a subject to a login."""
    await tx.execute("sso_identities.put", *astuple(identity))
