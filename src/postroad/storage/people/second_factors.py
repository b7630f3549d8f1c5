"""Second factors of logins: the authenticator app, recovery codes, passkeys and their challenges."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from postroad.storage.engine import queries, store


@dataclass(frozen=True, slots=True)
class Totp:
    """A row of `totp_secrets`. `secret` is encrypted."""

    secret: bytes = field(repr=False)
    created_at: int
    confirmed_at: int | None
    last_step: int


class Factors(msgspec.Struct, frozen=True):
    """The second factors of a login. Recovery codes alone are none: they replace a factor that is lost."""

    totp_since: int | None = None
    passkeys: int = 0
    recovery_codes: int = 0

    @property
    def exist(self) -> bool:
        return self.totp_since is not None or self.passkeys > 0


async def of_login(tx: store.Transaction, login_id: str) -> Factors:
    row = await tx.fetch_one("second_factors.of_login", login_id)
    return Factors(*row) if row else Factors()


async def users_with(tx: store.Transaction, account_id: str) -> set[str]:
    return {str(row[0]) for row in await tx.fetch("second_factors.users_with", account_id)}


@queries.count("second_factors.operators_without")
async def operators_without(tx: store.Transaction) -> int: ...
@queries.row("second_factors.totp", Totp)
async def totp(tx: store.Transaction, login_id: str) -> Totp | None: ...
# Store a secret that is to be confirmed; False if the login has an authenticator app.
@queries.changed("second_factors.put_totp")
async def put_totp(tx: store.Transaction, login_id: str, secret: bytes, *, now: int) -> bool: ...
# Make this secret a factor, with the step of its first code; False if it was replaced or is one already.
@queries.changed("second_factors.confirm_totp")
async def confirm_totp(tx: store.Transaction, login_id: str, *, now: int, step: int, secret: bytes) -> bool: ...
# Use up a code and all before it; False if it is used up.
@queries.changed("second_factors.use_step")
async def use_step(tx: store.Transaction, login_id: str, step: int) -> bool: ...
@queries.changed("second_factors.remove_totp")
async def remove_totp(tx: store.Transaction, login_id: str) -> bool: ...


async def replace_codes(tx: store.Transaction, login_id: str, hashes: Iterable[bytes]) -> None:
    await remove_codes(tx, login_id)
    await tx.execute_many("second_factors.insert_codes", [(login_id, code_hash) for code_hash in hashes])


@queries.changed("second_factors.use_code")
async def use_code(tx: store.Transaction, login_id: str, code_hash: bytes) -> bool: ...
@queries.change("second_factors.remove_codes")
async def remove_codes(tx: store.Transaction, login_id: str) -> None: ...


# Passkeys of logins, and the challenges that were answered with one.
#
# Each statement that uses something up says whether it did, so that of two requests with the same answer one succeeds.


@dataclass(frozen=True, slots=True)
class Passkey:
    """A row of `passkeys`. `transports` are words separated by spaces."""

    id: str
    login_id: str
    credential_id: bytes
    public_key: bytes = field(repr=False)
    sign_count: int
    user_handle: bytes
    rp_id: str
    transports: str
    name: str
    created_at: int
    last_used_at: int | None = None


def _passkey(*row: Any) -> Passkey:
    # PostgreSQL and SQLite return bytes of different types.
    return Passkey(row[0], row[1], bytes(row[2]), bytes(row[3]), row[4], bytes(row[5]), *row[6:])


@queries.rows("passkeys.of_login", _passkey)
async def passkeys(tx: store.Transaction, login_id: str) -> list[Passkey]: ...
@queries.row("passkeys.by_credential", _passkey)
async def passkey_by_credential(tx: store.Transaction, credential_id: bytes) -> Passkey | None: ...


async def insert_passkey(tx: store.Transaction, passkey: Passkey) -> bool:
    """Store a new passkey; False if its credential is known."""
    return await tx.execute("passkeys.insert", *dataclasses.astuple(passkey)) == 1


# Note a use; False if the count is not above that of the last one, or the passkey was removed.
@queries.changed("passkeys.use")
async def use_passkey(tx: store.Transaction, passkey_id: str, *, sign_count: int, now: int) -> bool: ...
@queries.changed("passkeys.remove")
async def remove_passkey(tx: store.Transaction, login_id: str, passkey_id: str) -> bool: ...
@queries.changes("passkeys.remove_all")
async def remove_passkeys(tx: store.Transaction, login_id: str) -> int: ...


async def use_challenge(tx: store.Transaction, challenge_hash: bytes, *, expires_at: int, now: int) -> bool:
    """Use a challenge up; False if it is. Those that have expired are forgotten: the table stays small."""
    await tx.execute("passkeys.sweep_challenges", now, store.SWEEP_ROWS)
    return await tx.execute("passkeys.use_challenge", challenge_hash, expires_at) == 1
