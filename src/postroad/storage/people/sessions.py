"""Browser sessions and API tokens, logins that wait for their second factor, and one-time links to set a password."""

from dataclasses import astuple, dataclass, field
from enum import StrEnum
from typing import Final

from postroad.storage.engine import queries, store

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
    await tx.execute("sessions.insert", *astuple(session))


@queries.row("sessions.by_id", Session)
async def by_id(tx: store.Transaction, session_id: str) -> Session | None: ...
@queries.rows("sessions.of_user", Session)
async def of_user(tx: store.Transaction, user_id: str, *, now: int, limit: int = MAX_ROWS) -> list[Session]: ...
@queries.rows("sessions.of_login", Session)
async def of_login(tx: store.Transaction, login_id: str, *, now: int, limit: int = MAX_ROWS) -> list[Session]: ...
@queries.change("sessions.touch")
async def touch(tx: store.Transaction, session_id: str, *, now: int) -> None: ...
# The person has proved again who they are; False when the session has ended.
@queries.changed("sessions.confirm")
async def confirm(tx: store.Transaction, session_id: str, *, now: int, methods: str) -> bool: ...


async def replace(tx: store.Transaction, session_id: str, session: Session) -> bool:
    """Continue a session under another id; False when it has ended. The tokens that were made in it continue, too."""
    await tx.execute("sessions.adopt", session_id, session.id)
    if not await remove(tx, session_id):
        return False
    await insert(tx, session)
    return True


# End a session and the tokens that were made in it; False when it had ended.
@queries.changed("sessions.remove")
async def remove(tx: store.Transaction, session_id: str) -> bool: ...
@queries.change("sessions.remove_of_user")
async def remove_of_user(tx: store.Transaction, user_id: str) -> None: ...
@queries.change("sessions.remove_of_login")
async def remove_of_login(tx: store.Transaction, login_id: str) -> None: ...
# End the sessions of a login in all its accounts, but one; returns how many.
@queries.changes("sessions.remove_others")
async def remove_others(tx: store.Transaction, login_id: str, *, but: str) -> int: ...
# Delete up to SWEEP_ROWS sessions that have expired; returns how many.
@queries.changes("sessions.sweep")
async def sweep(tx: store.Transaction, *, now: int, limit: int = store.SWEEP_ROWS) -> int: ...


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
    await tx.execute("pending_logins.insert", token_hash, *astuple(pending))


@queries.row("pending_logins.find", PendingLogin)
async def find_pending(tx: store.Transaction, token_hash: bytes) -> PendingLogin | None: ...


async def consume_pending(tx: store.Transaction, token_hash: bytes) -> PendingLogin | None:
    """The same, and delete it: only one of several concurrent callers gets it."""
    rows = await tx.fetch("pending_logins.consume", token_hash)
    return PendingLogin(*rows[0]) if rows else None


# Delete up to SWEEP_ROWS that have expired; returns how many.
@queries.changes("pending_logins.sweep")
async def sweep_pending(tx: store.Transaction, *, now: int, limit: int = store.SWEEP_ROWS) -> int: ...


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


@queries.row("password_links.by_hash", PasswordLink)
async def find_link(tx: store.Transaction, token_hash: bytes) -> PasswordLink | None: ...


async def consume_link(tx: store.Transaction, token_hash: bytes) -> PasswordLink | None:
    """The same, and delete it: only one of several concurrent callers gets it."""
    rows = await tx.fetch("password_links.consume", token_hash)
    return PasswordLink(*rows[0]) if rows else None


@queries.change("password_links.remove_of_user")
async def remove_link(tx: store.Transaction, user_id: str) -> None: ...
# Delete up to SWEEP_ROWS expired links; returns how many.
@queries.changes("password_links.sweep")
async def sweep_links(tx: store.Transaction, *, now: int, limit: int = store.SWEEP_ROWS) -> int: ...
