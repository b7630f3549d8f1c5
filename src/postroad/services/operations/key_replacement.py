"""Replaces the installation key: everything that is encrypted with it is encrypted with a new one, in one transaction.

The transaction also changes the fingerprint, so that a process has either key and finds the database encrypted with
it, or does not start. The replaced key is kept, encrypted with the new one: tokens, sessions and return paths that it
signed are accepted until they end, on every host, without a setting.
"""

import dataclasses
from typing import Final

from postroad import context, errors
from postroad.keys import encryption, installation_keys, key_check
from postroad.model.units import times
from postroad.services import audit_log
from postroad.storage.engine import store
from postroad.storage.operations import installation_key
from postroad.storage.people import credentials

# How long what a replaced key signed is accepted. Sessions end earlier by default; reports about mail may come weeks
# after it.
PREVIOUS_KEY_DAYS: Final = 30
PAGE_ROWS: Final = 500


async def rotate(ctx: context.Context, *, old: bytes, new: bytes) -> int:
    """Replace the key of the context, `old`, by `new`; returns how many secrets were encrypted anew."""
    current, following = ctx.keys, installation_keys.Keys.derive(new)
    if following.fingerprint == current.fingerprint:
        raise errors.InvalidRequest("the new key is the current one")
    async with ctx.store.transaction() as tx:
        # DKIM keys are changed under this lock, so none is written back as it was before.
        await credentials.bump_access_version(tx)
        if await installation_key.fingerprint(tx) != current.fingerprint:
            raise errors.Conflict("the installation key was replaced a moment ago")
        count = sum([await _reencrypt(ctx, tx, table, following) for table in installation_key.ENCRYPTED_TABLES])
        await installation_key.replace(tx, following.fingerprint)
        await _keep_previous(ctx, tx, old, following)
        await audit_log.write(ctx, tx, audit_log.INSTALLATION, "installation.key_rotated", str(count))
    return count


async def _reencrypt(ctx: context.Context, tx: store.Transaction, table: str, following: installation_keys.Keys) -> int:
    place, count = installation_key.ENCRYPTED_TABLES[table], 0
    while rows := await installation_key.encrypted_page(tx, table, after=place, limit=PAGE_ROWS):
        changed = []
        for *key, ciphertext in rows:
            owner = encryption.OWNERS[table](key)
            secret = encryption.decrypt(ctx.keys.encryption, ciphertext, owner=owner)
            nonce = ctx.entropy(encryption.NONCE_BYTES)
            changed.append((*key, encryption.encrypt(following.encryption, secret, owner=owner, nonce=nonce)))
        await installation_key.replace_encrypted(tx, table, changed)
        place, count = tuple(rows[-1][:-1]), count + len(rows)
    return count


async def _keep_previous(
    ctx: context.Context, tx: store.Transaction, old: bytes, following: installation_keys.Keys
) -> None:
    """Encrypt the replaced keys with the new one. A key that is used again is no longer a replaced one."""
    kept = [
        dataclasses.replace(
            each,
            installation_key=encryption.decrypt(
                ctx.keys.encryption, each.installation_key, owner=key_check.PREVIOUS_OWNER
            ),
        )
        for each in await installation_key.previous(tx)
    ]
    kept.append(installation_key.PreviousKey(ctx.keys.fingerprint, old, ctx.clock()))
    for each in kept:
        nonce = ctx.entropy(encryption.NONCE_BYTES)
        ciphertext = encryption.encrypt(
            following.encryption, each.installation_key, owner=key_check.PREVIOUS_OWNER, nonce=nonce
        )
        await installation_key.add_previous(tx, dataclasses.replace(each, installation_key=ciphertext))
    await installation_key.remove_previous(tx, following.fingerprint)


async def forget_expired(tx: store.Transaction, *, now: int) -> int:
    """Delete keys that were replaced long ago; returns how many."""
    return await installation_key.sweep_previous(tx, before=now - PREVIOUS_KEY_DAYS * times.DAY)
