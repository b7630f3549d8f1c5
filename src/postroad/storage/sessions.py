"""Browser sessions and API tokens. One without a row has ended."""

from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Final

from postroad.storage import store

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
