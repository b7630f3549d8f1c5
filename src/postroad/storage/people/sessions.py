"""Browser sessions and API tokens, logins that wait for their second factor, and one-time links to set a password."""

from dataclasses import astuple, dataclass, field
from enum import StrEnum
from typing import Final

from postroad.storage.engine import store

# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000
# Of a user, on a page.
MAX_ROWS: Final = 200


class Kind(StrEnum):
    """What a session is."""

    BROWSER = "browser"
    TOKEN = "token"  # noqa: S105 - the name of a kind


@dataclass(frozen=True, slots=True)
class Session:
    """A row of `sessions`. `methods` are words, such as `password totp`.

    `confirmed_at` is when the person last proved who they are. A token with `parent_id` ends with that session.
    """

    id: str
    login_id: str
    user_id: str
    account_id: str
    kind: str
    name: str
    device: str
    network: str
    methods: str
    created_at: int
    last_used_at: int
    expires_at: int
    confirmed_at: int
    parent_id: str | None = None


async def insert(tx: store.Transaction, session: Session) -> None:
    """Begin a session."""
    await tx.execute("sessions.insert", *astuple(session))


async def by_id(tx: store.Transaction, session_id: str) -> Session | None:
    """One session."""
    row = await tx.fetch_one("sessions.by_id", session_id)
    return Session(*row) if row else None


async def of_user(tx: store.Transaction, user_id: str, *, now: int) -> list[Session]:
    """The sessions of a user in one account, the latest used first."""
    return [Session(*row) for row in await tx.fetch("sessions.of_user", user_id, now, MAX_ROWS)]


async def of_login(tx: store.Transaction, login_id: str, *, now: int) -> list[Session]:
    """The sessions of a login in all its accounts, the latest used first."""
    return [Session(*row) for row in await tx.fetch("sessions.of_login", login_id, now, MAX_ROWS)]


async def touch(tx: store.Transaction, session_id: str, *, now: int) -> None:
    """Store the time of the last use."""
    await tx.execute("sessions.touch", session_id, now)


async def confirm(tx: store.Transaction, session_id: str, *, methods: str, now: int) -> bool:
    """The person has proved again who they are; False when the session has ended."""
    return await tx.execute("sessions.confirm", session_id, now, methods) == 1


async def replace(tx: store.Transaction, session_id: str, session: Session) -> bool:
    """Continue a session under another id; False when it has ended. The tokens that were made in it continue, too."""
    await tx.execute("sessions.adopt", session_id, session.id)
    if not await remove(tx, session_id):
        return False
    await insert(tx, session)
    return True


async def remove(tx: store.Transaction, session_id: str) -> bool:
    """End a session and the tokens that were made in it; False when it had ended."""
    return await tx.execute("sessions.remove", session_id) > 0


async def remove_of_user(tx: store.Transaction, user_id: str) -> None:
    """End the sessions of a user in one account."""
    await tx.execute("sessions.remove_of_user", user_id)


async def remove_of_login(tx: store.Transaction, login_id: str) -> None:
    """End the sessions of a login in all its accounts."""
    await tx.execute("sessions.remove_of_login", login_id)


async def remove_others(tx: store.Transaction, login_id: str, *, but: str) -> int:
    """End the sessions of a login in all its accounts, but one; returns how many."""
    return await tx.execute("sessions.remove_others", login_id, but)


async def sweep(tx: store.Transaction, *, now: int) -> int:
    """Delete up to SWEEP_ROWS sessions that have expired; returns how many."""
    return await tx.execute("sessions.sweep", now, SWEEP_ROWS)


# Small enough that a sweep delays a send no longer than another send does.
PENDING_SWEEP_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """A row of `pending_logins` without its token. `methods` are those that succeeded, separated by spaces.

    `invitation` is the hash of the link that the login then joins an account with.
    """

    login_id: str
    epoch: int
    methods: str
    expires_at: int
    invitation: bytes | None = None


async def insert_pending(tx: store.Transaction, token_hash: bytes, pending: PendingLogin) -> None:
    """Store a login whose password was right."""
    await tx.execute("pending_logins.insert", token_hash, *astuple(pending))


async def find_pending(tx: store.Transaction, token_hash: bytes) -> PendingLogin | None:
    """The pending login of a token, expired or not."""
    row = await tx.fetch_one("pending_logins.find", token_hash)
    return PendingLogin(*row) if row else None


async def consume_pending(tx: store.Transaction, token_hash: bytes) -> PendingLogin | None:
    """The same, and delete it: only one of several concurrent callers gets it."""
    rows = await tx.fetch("pending_logins.consume", token_hash)
    return PendingLogin(*rows[0]) if rows else None


async def sweep_pending(tx: store.Transaction, *, now: int) -> int:
    """Delete up to SWEEP_ROWS that have expired; returns how many."""
    return await tx.execute("pending_logins.sweep", now, PENDING_SWEEP_ROWS)


# Small enough that a sweep delays a send no longer than another send does.
LINK_SWEEP_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class PasswordLink:
    """A row of `password_links`. One that an operator made acts on the login, in all its accounts.

    A recovery link also removes second factors.
    """

    token_hash: bytes = field(repr=False)
    account_id: str
    user_id: str
    expires_at: int
    by_operator: int
    is_recovery: int = 0


async def replace_link(tx: store.Transaction, link: PasswordLink) -> None:
    """Create a link; earlier links of the user stop working."""
    await remove_link(tx, link.user_id)
    row = (link.token_hash, link.account_id, link.user_id, link.expires_at, link.by_operator, link.is_recovery)
    await tx.execute("password_links.insert", *row)


async def find_link(tx: store.Transaction, token_hash: bytes) -> PasswordLink | None:
    """The link of a token, expired or not."""
    row = await tx.fetch_one("password_links.by_hash", token_hash)
    return PasswordLink(*row) if row else None


async def consume_link(tx: store.Transaction, token_hash: bytes) -> PasswordLink | None:
    """The same, and delete it: only one of several concurrent callers gets it."""
    rows = await tx.fetch("password_links.consume", token_hash)
    return PasswordLink(*rows[0]) if rows else None


async def remove_link(tx: store.Transaction, user_id: str) -> None:
    """Delete the links of a user."""
    await tx.execute("password_links.remove_of_user", user_id)


async def sweep_links(tx: store.Transaction, *, now: int) -> int:
    """Delete up to SWEEP_ROWS expired links; returns how many."""
    return await tx.execute("password_links.sweep", now, LINK_SWEEP_ROWS)
