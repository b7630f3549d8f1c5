"""Users who log in, and their revoked tokens."""

from dataclasses import dataclass, field
from typing import Final

from postroad.storage import store

# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class User:
    """A row of `users`. A token belongs to one value of `tokens_valid_from`, and is invalid once that has changed.

    A user who was invited and has not set a password yet has no `joined_at`.
    """

    id: str
    account_id: str
    email: str
    password_hash: str = field(repr=False)
    role: str
    tokens_valid_from: int
    disabled_at: int | None
    created_at: int
    joined_at: int | None = None
    last_login_at: int | None = None
    time_zone: str | None = None
    operator_since: int | None = None


async def insert(tx: store.Transaction, user: User, *, email_key: str) -> bool:
    """Create a user; False when the email is in use."""
    row = (user.id, user.account_id, user.email, email_key, user.password_hash, user.role, user.created_at)
    return await tx.execute("users.insert", *row, user.joined_at) == 1


async def by_email(tx: store.Transaction, email_key: str) -> User | None:
    """The user with this email."""
    row = await tx.fetch_one("users.by_email", email_key)
    return User(*row) if row else None


async def by_id(tx: store.Transaction, user_id: str) -> User | None:
    """One user."""
    row = await tx.fetch_one("users.by_id", user_id)
    return User(*row) if row else None


async def of_account(tx: store.Transaction, account_id: str) -> list[User]:
    """The users of an account."""
    return [User(*row) for row in await tx.fetch("users.of_account", account_id)]


async def set_password(tx: store.Transaction, user_id: str, *, password_hash: str, now: int) -> bool:
    """Change the password and invalidate older tokens. The first password sets `joined_at`."""
    return await tx.execute("users.set_password", user_id, password_hash, now) == 1


async def replace_password(tx: store.Transaction, user_id: str, *, old_hash: str, new_hash: str, now: int) -> bool:
    """The same; False when the password has changed meanwhile."""
    return await tx.execute("users.replace_password", user_id, new_hash, now, old_hash) == 1


async def set_disabled(tx: store.Transaction, user_id: str, *, disabled_at: int | None, now: int) -> bool:
    """Disable or enable a user, and invalidate older tokens."""
    return await tx.execute("users.set_disabled", user_id, disabled_at, now) == 1


async def set_role(tx: store.Transaction, user_id: str, role: str) -> None:
    """Change the role of a user."""
    await tx.execute("users.set_role", user_id, role)


async def set_time_zone(tx: store.Transaction, user_id: str, time_zone: str) -> None:
    """Change the time zone of a user."""
    await tx.execute("users.set_time_zone", user_id, time_zone)


async def operators(tx: store.Transaction) -> list[User]:
    """The people who operate the installation."""
    return [User(*row) for row in await tx.fetch("users.operators")]


async def set_operator(tx: store.Transaction, user_id: str, *, since: int | None) -> None:
    """Make a person an operator, or end it with None."""
    await tx.execute("users.set_operator", user_id, since)


async def note_login(tx: store.Transaction, user_id: str, *, now: int) -> None:
    """Store the time of the last login."""
    await tx.execute("users.note_login", user_id, now)


async def remove(tx: store.Transaction, user_id: str) -> None:
    """Delete a user; their tokens become invalid."""
    await tx.execute("users.remove", user_id)


async def revoke_token(tx: store.Transaction, token_id: str, *, account_id: str, expires_at: int) -> None:
    """Revoke a token until it would have expired."""
    await tx.execute("users.revoke_token", token_id, account_id, expires_at)


async def is_token_revoked(tx: store.Transaction, token_id: str) -> bool:
    """Whether a token is revoked."""
    return await tx.fetch_one("users.revoked_token", token_id) is not None


async def sweep_tokens(tx: store.Transaction, *, now: int) -> int:
    """Delete up to SWEEP_ROWS revoked tokens that have expired; returns how many."""
    return await tx.execute("users.sweep_tokens", now, SWEEP_ROWS)
