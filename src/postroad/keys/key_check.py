"""Whether the installation key matches the database, which knows its fingerprint.

A process with another key could open no DKIM key and no webhook secret, and would accept mail that it cannot sign. It
does not start. The first process with a key stores its fingerprint. A database from before this was stored proves its
key by a secret that the key opens, if it has one.
"""

import contextlib
import dataclasses
from enum import StrEnum

from postroad import context, errors
from postroad.keys import encryption, installation_keys
from postroad.storage.engine import store
from postroad.storage.operations import installation_key

# Who a replaced key belongs to, as the owner of its ciphertext.
PREVIOUS_OWNER = "previous installation key"


class KeyState(StrEnum):
    """What the database says about a key."""

    FITS = "fits"
    WRONG = "wrong"
    # There is neither a fingerprint nor a secret yet: any key fits.
    UNUSED = "unused"


class WrongKeyError(RuntimeError):
    """The installation key is not the one that the database was used with."""


async def state(tx: store.Transaction, keys: installation_keys.Keys) -> KeyState:
    """Compare a key with the database; nothing is changed."""
    known = await installation_key.fingerprint(tx)
    if known is not None:
        return KeyState.FITS if known == keys.fingerprint else KeyState.WRONG
    for table, start in installation_key.ENCRYPTED_TABLES.items():
        for row in await installation_key.encrypted_page(tx, table, after=start, limit=1):
            try:
                encryption.decrypt(keys.encryption, row[-1], owner=encryption.OWNERS[table](row))
            except encryption.DecryptionError:
                return KeyState.WRONG
            return KeyState.FITS
    return KeyState.UNUSED


async def admit(database: store.Store, keys: installation_keys.Keys) -> installation_keys.Keys:
    """The keys with those that they replaced. Raises WrongKeyError if the key does not fit; stores its fingerprint."""
    async with database.reading() as tx:
        found = await state(tx, keys)
        is_known = await installation_key.fingerprint(tx) is not None
        replaced = await installation_key.previous(tx) if found is KeyState.FITS else []
    if found is not KeyState.WRONG and not is_known:
        # While the database cannot be written, the next start stores it.
        with contextlib.suppress(*store.UNAVAILABLE):
            found = await _remember(database, keys)
    if found is KeyState.WRONG:
        raise WrongKeyError(
            "the installation key does not match this database: set security.secret_key or security.secret_key_file to "
            "the key that was used before; if 'postroad key rotate' was interrupted, run it again"
        )
    previous = tuple(
        installation_keys.Keys.derive(encryption.decrypt(keys.encryption, each.installation_key, owner=PREVIOUS_OWNER))
        for each in replaced
    )
    return dataclasses.replace(keys, previous=previous)


async def _remember(database: store.Store, keys: installation_keys.Keys) -> KeyState:
    """Store the fingerprint, unless another process did so a moment ago, with whichever key."""
    async with database.transaction() as tx:
        await installation_key.remember(tx, keys.fingerprint)
        return await state(tx, keys)


async def require_current(ctx: context.Context, tx: store.Transaction) -> None:
    """Refuse to encrypt with a key that was replaced while this process runs: nobody could open the secret later."""
    known = await installation_key.lock(tx)
    if known is not None and known != ctx.keys.fingerprint:
        raise errors.ServiceUnavailable(
            "the service must be restarted with its new installation key; retry later", retry_after=60
        )
