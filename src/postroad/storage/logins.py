"""Logins: what a person logs in with, whichever accounts they belong to.

Several logins may have the same email, so the email alone identifies nobody. What authenticates belongs to a login: the
password here, other factors in tables of their own, which are deleted with it (`OF_A_LOGIN`).
"""

from dataclasses import dataclass, field
from typing import Final

from postroad.storage import store

# A login with this email beyond them cannot log in: each one has counters of failures.
MAX_OF_EMAIL: Final = 100
# Queries that delete what belongs to a login.
OF_A_LOGIN: Final = (
    "sessions.remove_of_login",
    "known_networks.remove",
    "passkeys.remove_all",
    "second_factors.remove_totp",
    "second_factors.remove_codes",
    "sso_identities.remove_of_login",
)


@dataclass(frozen=True, slots=True)
class Login:
    """A row of `logins`. Without a password the person comes another way, such as single sign-on."""

    id: str
    email: str
    email_key: str
    password_hash: str | None = field(repr=False)
    tokens_valid_from: int
    created_at: int


async def insert(tx: store.Transaction, login: Login) -> None:
    """Create a login."""
    row = (login.id, login.email, login.email_key, login.password_hash, login.tokens_valid_from, login.created_at)
    await tx.execute("logins.insert", *row)


async def by_id(tx: store.Transaction, login_id: str) -> Login | None:
    """One login."""
    row = await tx.fetch_one("logins.by_id", login_id)
    return Login(*row) if row else None


async def by_email(tx: store.Transaction, email_key: str) -> list[Login]:
    """The logins with this email that somebody can use, oldest first."""
    return [Login(*row) for row in await tx.fetch("logins.by_email", email_key, MAX_OF_EMAIL)]


async def used_from(tx: store.Transaction, email_key: str, network: str) -> set[str]:
    """The logins with this email that were used from a network; one query, however many there are."""
    return {str(row[0]) for row in await tx.fetch("logins.used_from", email_key, network)}


async def a_hash(tx: store.Transaction, email_key: str) -> str | None:
    """The hash of the password of the first login with this email."""
    row = await tx.fetch_one("logins.a_hash", email_key)
    return row[0] if row else None


async def hold(tx: store.Transaction, login: Login) -> bool:
    """Lock a login; False when its password or its factors have changed since it was read."""
    return await tx.execute("logins.hold", login.id, login.tokens_valid_from) == 1


async def set_password(tx: store.Transaction, login_id: str, *, password_hash: str | None, now: int) -> None:
    """Change the password. Whoever is about to log in with the old one is refused."""
    await tx.execute("logins.set_password", login_id, password_hash, now)
    await tx.execute("users.follow_login", login_id, now)


async def replace_password(tx: store.Transaction, login_id: str, *, old_hash: str, new_hash: str, now: int) -> bool:
    """The same; False when the password has changed meanwhile."""
    is_replaced = await tx.execute("logins.replace_password", login_id, new_hash, now, old_hash) == 1
    await tx.execute("users.follow_login", login_id, now)
    return is_replaced


async def remove_unused(tx: store.Transaction, login_id: str) -> None:
    """Delete a login that has no user any more, and what belongs to it."""
    if await tx.fetch_one("logins.is_used", login_id) is not None:
        return
    for query in OF_A_LOGIN:
        await tx.execute(query, login_id)
    await tx.execute("logins.remove", login_id)
