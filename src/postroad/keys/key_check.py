"""Whether the installation key matches the database, which knows its fingerprint.

A process with another key could open no DKIM key and no webhook secret, and would accept mail that it cannot sign. It
does not start. The first process with a key stores its fingerprint.
"""

import contextlib
import dataclasses
from enum import StrEnum
from typing import Final

from postroad import errors
from postroad.keys import encryption, installation_keys
from postroad.storage.engine import store
from postroad.storage.operations import installation_key

# Who a replaced key belongs to, as the owner of its ciphertext.
PREVIOUS_OWNER = "previous installation key"


WRONG_KEY: Final = (
    "the installation key does not match this database: set security.installation_key or "
    "security.installation_key_file to the key that was used before; if 'postroad key rotate' was interrupted, "
    "run it again"
)


class KeyState(StrEnum):
    FITS = "fits"
    WRONG = "wrong"
    # There is no fingerprint yet: any key fits.
    UNUSED = "unused"


class WrongKeyError(RuntimeError):
    """The installation key is not the one that the database was used with."""


async def state(tx: store.Transaction, keys: installation_keys.Keys) -> KeyState:
    """Compare a key with the database; nothing is changed."""
    known = await installation_key.fingerprint(tx)
    if known is None:
        return KeyState.UNUSED
    return KeyState.FITS if known == keys.fingerprint else KeyState.WRONG


async def admit(database: store.Store, keys: installation_keys.Keys) -> installation_keys.Keys:
    """The keys with those that they replaced. Raises WrongKeyError if the key does not fit; stores its fingerprint."""
    async with database.reading() as tx:
        known = await state(tx, keys)
        replaced = await installation_key.previous(tx) if known is KeyState.FITS else []
    if known is KeyState.UNUSED:
        # While the database cannot be written, the next start stores it. Another process may have done so just now,
        # with whichever key.
        with contextlib.suppress(*store.UNAVAILABLE):
            async with database.transaction() as tx:
                await installation_key.remember(tx, keys.fingerprint)
                known = await state(tx, keys)
    if known is KeyState.WRONG:
        raise WrongKeyError(WRONG_KEY)
    previous = tuple(
        installation_keys.Keys.derive(encryption.decrypt(keys.encryption, each.installation_key, owner=PREVIOUS_OWNER))
        for each in replaced
    )
    return dataclasses.replace(keys, previous=previous)


async def require_current(keys: installation_keys.Keys, tx: store.Transaction) -> None:
    """Refuse to encrypt with a key that was replaced while this process runs: nobody could open the secret later."""
    known = await installation_key.lock(tx)
    if known is not None and known != keys.fingerprint:
        raise errors.ServiceUnavailable(
            "the service must be restarted with its new installation key; retry later", retry_after=60
        )
