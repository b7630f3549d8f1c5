"""Users, the members of accounts, and the logins that they sign in with, whichever accounts they belong to."""

from dataclasses import dataclass, field
from typing import Final

from postroad.storage.engine import queries, store
from postroad.storage.people import accounts

# Accounts that somebody with an email belongs to; more are not read.
MAX_OF_EMAIL: Final = 100


@dataclass(frozen=True, slots=True)
class User:
    """A row of `users`.

    A user who was invited and has not accepted the invitation has no `joined_at` and no login.
    """

    id: str
    account_id: str
    email: str
    role: str
    tokens_valid_from: int
    disabled_at: int | None
    created_at: int
    joined_at: int | None = None
    last_login_at: int | None = None
    time_zone: str | None = None
    operator_since: int | None = None
    login_id: str | None = None


@dataclass(frozen=True, slots=True)
class Creator:
    """The user who answers for an API key or an SMTP credential, as the user is now: decides what it may do.

    Of a removed user, only the id is known.
    """

    id: str
    email: str | None = None
    role: str | None = None
    operator_since: int | None = None
    disabled_at: int | None = None


class CreatedByUser:
    """A record with a creator; `creator` is None for those of the command line."""

    __slots__ = ()

    creator: Creator | None

    @property
    def created_by(self) -> str | None:
        return None if self.creator is None else self.creator.id

    @property
    def created_by_email(self) -> str | None:
        """The email of the user, unless removed."""
        return None if self.creator is None else self.creator.email

    @property
    def disabled_at(self) -> int | None:
        """When the user was disabled: the record does not work until the user is enabled."""
        return None if self.creator is None else self.creator.disabled_at


def creator_of(columns: store.Row) -> Creator | None:
    """The creator in the last columns of a row; None if nobody is known."""
    return None if columns[0] is None else Creator(*columns)


async def insert(tx: store.Transaction, user: User, *, email_key: str) -> bool:
    """Create a user; False when the account has one with this email."""
    row = (user.id, user.account_id, user.email, email_key, user.role, user.created_at, user.joined_at, user.login_id)
    return await tx.execute("users.insert", *row) == 1


@queries.rows("users.by_email", User)
async def by_email(tx: store.Transaction, email_key: str, *, limit: int = MAX_OF_EMAIL) -> list[User]: ...
@queries.rows("users.of_login", User)
async def of_login(tx: store.Transaction, login_id: str) -> list[User]: ...


async def accounts_of_login(tx: store.Transaction, login_id: str) -> dict[str, str]:
    """The accounts that the person of a login can enter, with their names."""
    return {str(row[0]): str(row[1]) for row in await tx.fetch("users.accounts_of_login", login_id)}


@queries.row("users.by_id", User)
async def by_id(tx: store.Transaction, user_id: str) -> User | None: ...
@queries.rows("users.of_account", User)
async def of_account(tx: store.Transaction, account_id: str) -> list[User]: ...
# Give a user a login. The first one sets `joined_at`.
@queries.change("users.set_login")
async def set_login(tx: store.Transaction, user_id: str, *, login_id: str, now: int) -> None: ...
@queries.changed("users.set_disabled")
async def set_disabled(tx: store.Transaction, user_id: str, *, disabled_at: int | None, now: int) -> bool: ...
@queries.change("users.set_role")
async def set_role(tx: store.Transaction, user_id: str, role: str) -> None: ...
@queries.change("users.set_time_zone")
async def set_time_zone(tx: store.Transaction, user_id: str, time_zone: str) -> None: ...
@queries.rows("users.operators", User)
async def operators(tx: store.Transaction) -> list[User]: ...


async def operators_who_can_log_in(tx: store.Transaction) -> list[User]:
    """Those who have joined, are not disabled, and whose account is open."""
    found = [
        operator for operator in await operators(tx) if operator.disabled_at is None and operator.joined_at is not None
    ]
    homes = {
        account_id: await accounts.by_id(tx, account_id) for account_id in {operator.account_id for operator in found}
    }
    is_open = {account_id for account_id, home in homes.items() if home is not None and home.closed_at is None}
    return [operator for operator in found if operator.account_id in is_open]


# Make a person an operator, or end it with None.
@queries.change("users.set_operator")
async def set_operator(tx: store.Transaction, user_id: str, *, since: int | None) -> None: ...


async def note_login(tx: store.Transaction, user: User, *, now: int) -> bool:
    """Store the time of the last login; False when the user may no longer log in with this login."""
    return await tx.execute("users.note_login", user.id, user.login_id, now) == 1


@queries.change("users.remove")
async def remove(tx: store.Transaction, user_id: str) -> None: ...


# Logins: what a person logs in with, whichever accounts they belong to.
#
# Several logins may have the same email, so the email alone identifies nobody. What authenticates belongs to a login:
# the password here, other factors in tables of their own, which are deleted with it (`OF_A_LOGIN`).

# A login with this email beyond them cannot log in: each one has counters of failures.
MAX_LOGINS_OF_EMAIL: Final = 100
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


async def insert_login(tx: store.Transaction, login: Login) -> None:
    row = (login.id, login.email, login.email_key, login.password_hash, login.tokens_valid_from, login.created_at)
    await tx.execute("logins.insert", *row)


@queries.row("logins.by_id", Login)
async def login_by_id(tx: store.Transaction, login_id: str) -> Login | None: ...
@queries.rows("logins.by_email", Login)
async def logins_by_email(
    tx: store.Transaction, email_key: str, *, limit: int = MAX_LOGINS_OF_EMAIL
) -> list[Login]: ...


async def logins_used_from(tx: store.Transaction, email_key: str, network: str) -> set[str]:
    """The logins with this email that were used from a network; one query, however many there are."""
    return {str(row[0]) for row in await tx.fetch("logins.used_from", email_key, network)}


async def any_password_hash(tx: store.Transaction, email_key: str) -> str | None:
    """The hash of the password of the first login with this email."""
    row = await tx.fetch_one("logins.a_hash", email_key)
    return row[0] if row else None


async def lock_login(tx: store.Transaction, login: Login) -> bool:
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


async def remove_unused_logins(tx: store.Transaction, login_id: str) -> None:
    """Delete a login that has no user any more, and what belongs to it."""
    if await tx.fetch_one("logins.is_used", login_id) is not None:
        return
    for query in OF_A_LOGIN:
        await tx.execute(query, login_id)
    await tx.execute("logins.remove", login_id)
