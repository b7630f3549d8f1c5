"""OpenID Connect providers of accounts with their email domains, and the identities that people have there."""

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Final

import msgspec

from postroad.storage.engine import queries, store

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


@queries.row("sso_connections.of_account", Connection)
async def of_account(tx: store.Transaction, account_id: str) -> Connection | None: ...
@queries.row("sso_connections.by_domain", Connection)
async def by_domain(tx: store.Transaction, domain: str) -> Connection | None: ...
@queries.rows("sso_connections.domains", str)
async def domains(tx: store.Transaction, account_id: str) -> list[str]: ...


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


@queries.change("sso_connections.end_sso_sessions")
async def end_sso_sessions(tx: store.Transaction, user_id: str, *, but: str) -> None: ...
@queries.change("sso_connections.end_local_sessions")
async def end_local_sessions(tx: store.Transaction, user_id: str, *, but: str) -> None: ...


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


@queries.row("sso_identities.find", Identity)
async def find_identity(tx: store.Transaction, account_id: str, *, issuer: str, subject: str) -> Identity | None: ...
@queries.rows("sso_identities.of_login", Identity)
async def identities_of_login(tx: store.Transaction, login_id: str) -> list[Identity]: ...


async def is_of_account(tx: store.Transaction, login_id: str) -> bool:
    """Whether the provider of an account, and so its owners, can open a login."""
    return any(identity.account_id != INSTALLATION for identity in await identities_of_login(tx, login_id))


async def put_identity(tx: store.Transaction, identity: Identity) -> None:
    await tx.execute("sso_identities.put", *astuple(identity))
