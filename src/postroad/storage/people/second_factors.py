"""Second factors of logins: the authenticator app, recovery codes, passkeys and their challenges."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from postroad.storage.engine import store


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
        """Whether there is one."""
        return self.totp_since is not None or self.passkeys > 0


async def of_login(tx: store.Transaction, login_id: str) -> Factors:
    """The second factors of a login."""
    row = await tx.fetch_one("second_factors.of_login", login_id)
    return Factors(*row) if row else Factors()


async def users_with(tx: store.Transaction, account_id: str) -> set[str]:
    """The users of an account who have a second factor."""
    return {str(row[0]) for row in await tx.fetch("second_factors.users_with", account_id)}


async def operators_without(tx: store.Transaction) -> int:
    """How many operators can log in with a password alone."""
    row = await tx.fetch_one("second_factors.operators_without")
    return int(row[0]) if row else 0


async def totp(tx: store.Transaction, login_id: str) -> Totp | None:
    """The authenticator app of a login, also one that is not confirmed yet."""
    row = await tx.fetch_one("second_factors.totp", login_id)
    return Totp(*row) if row else None


async def put_totp(tx: store.Transaction, login_id: str, secret: bytes, *, now: int) -> bool:
    """Store a secret that is to be confirmed; False if the login has an authenticator app."""
    return await tx.execute("second_factors.put_totp", login_id, secret, now) == 1


async def confirm_totp(tx: store.Transaction, login_id: str, *, secret: bytes, step: int, now: int) -> bool:
    """Make this secret a factor, with the step of its first code; False if it was replaced or is one already."""
    return await tx.execute("second_factors.confirm_totp", login_id, now, step, secret) == 1


async def use_step(tx: store.Transaction, login_id: str, step: int) -> bool:
    """Use up a code and all before it; False if it is used up."""
    return await tx.execute("second_factors.use_step", login_id, step) == 1


async def remove_totp(tx: store.Transaction, login_id: str) -> bool:
    """Delete the authenticator app of a login; False if there is none."""
    return await tx.execute("second_factors.remove_totp", login_id) == 1


async def replace_codes(tx: store.Transaction, login_id: str, hashes: Iterable[bytes]) -> None:
    """Store the recovery codes of a login, in place of earlier ones."""
    await remove_codes(tx, login_id)
    await tx.execute_many("second_factors.insert_codes", [(login_id, one) for one in hashes])


async def use_code(tx: store.Transaction, login_id: str, code_hash: bytes) -> bool:
    """Use up a recovery code; False if there is no such code."""
    return await tx.execute("second_factors.use_code", login_id, code_hash) == 1


async def remove_codes(tx: store.Transaction, login_id: str) -> None:
    """Delete the recovery codes of a login."""
    await tx.execute("second_factors.remove_codes", login_id)


# Passkeys of logins, and the challenges that were answered with one.
#
# Each statement that uses something up says whether it did, so that of two requests with the same answer one succeeds.

# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000


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


async def passkeys(tx: store.Transaction, login_id: str) -> list[Passkey]:
    """The passkeys of a login, oldest first."""
    return [_passkey(row) for row in await tx.fetch("passkeys.of_login", login_id)]


async def passkey_by_credential(tx: store.Transaction, credential_id: bytes) -> Passkey | None:
    """The passkey that an authenticator names."""
    row = await tx.fetch_one("passkeys.by_credential", credential_id)
    return _passkey(row) if row else None


async def insert_passkey(tx: store.Transaction, passkey: Passkey) -> bool:
    """Store a new passkey; False if its credential is known."""
    return await tx.execute("passkeys.insert", *dataclasses.astuple(passkey)) == 1


async def use_passkey(tx: store.Transaction, passkey_id: str, *, sign_count: int, now: int) -> bool:
    """Note a use; False if the count is not above that of the last one, or the passkey was removed."""
    return await tx.execute("passkeys.use", passkey_id, sign_count, now) == 1


async def remove_passkey(tx: store.Transaction, login_id: str, passkey_id: str) -> bool:
    """Delete a passkey of a login; False if there is none."""
    return await tx.execute("passkeys.remove", login_id, passkey_id) == 1


async def remove_passkeys(tx: store.Transaction, login_id: str) -> int:
    """Delete the passkeys of a login; returns how many."""
    return await tx.execute("passkeys.remove_all", login_id)


async def use_challenge(tx: store.Transaction, challenge_hash: bytes, *, expires_at: int, now: int) -> bool:
    """Use a challenge up; False if it is. Those that have expired are forgotten: the table stays small."""
    await tx.execute("passkeys.sweep_challenges", now, SWEEP_ROWS)
    return await tx.execute("passkeys.use_challenge", challenge_hash, expires_at) == 1


def _passkey(row: store.Row) -> Passkey:
    # PostgreSQL and SQLite return bytes of different types.
    return Passkey(row[0], row[1], bytes(row[2]), bytes(row[3]), row[4], bytes(row[5]), *row[6:])
