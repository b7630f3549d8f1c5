"""The OpenID Connect providers of accounts, and the email domains that each is for."""

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field

import msgspec

from postroad.storage import store

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
