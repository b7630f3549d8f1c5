"""DKIM signatures of outgoing mail: each message is signed once, however many destinations it has.

A domain that has published its Ed25519 record gets a second signature beside RSA (RFC 8463), over the same hash.

The key is cached like every fact that decides access (`access_cache.py`): within a second of the domain's removal
nothing is signed with it. Signatures are kept for the following recipients and attempts; a message whose signature was
evicted gets a new one, which is equally valid.
"""

import asyncio
import functools
from typing import Final

from postroad.concurrency import lru, single_flight
from postroad.model import times
from postroad.protocol import dkim
from postroad.services import context
from postroad.services.dkim import domain_keys, signer_pool

# About 20 MB, 35 with second signatures: the mail of the last minute or so at full speed.
MAX_SIGNATURES: Final = 20_000
# The slowest signers process this within the time that a request may take.
MAX_WAITING: Final = 10_000
# Hashing more than this would block the event loop for more than a millisecond.
LARGE_BYTES: Final = 128 * 1024


class DkimSigner:
    """The signer of this process; absent where `delivery.sign` is false."""

    def __init__(self, ctx: context.Context) -> None:
        delivery = ctx.settings.delivery
        self._ctx = ctx
        self._lifetime_seconds = delivery.signature_days * times.DAY // times.SECOND
        self._signers = signer_pool.SignerPool(delivery.signer_workers)
        self._signatures: lru.LruCache[tuple[str, str], bytes] = lru.LruCache(MAX_SIGNATURES)
        self._flights = single_flight.SingleFlight(MAX_WAITING, what="signatures")

    async def signature(self, account_id: str, domain: str, content_name: str, content: bytes) -> bytes:
        """The DKIM-Signature fields to prepend to a message; empty when the account no longer has the domain.

        `content_name` is the message's id, or another name for another form of the message.
        Raises DecryptionError when the key cannot be decrypted, SigningFailed when the signers fail, and database
        errors.
        """
        key = await self._key(account_id, domain)
        if key is None:
            return b""
        # With the key's selector: a domain that was removed and added again signs anew.
        name = (key.selector, content_name)
        known = self._signatures.get(name)
        if known is not None:
            return known
        return await self._flights.join(("message", *name), functools.partial(self._sign, name, key, domain, content))

    async def close(self) -> None:
        """Finish work in progress, and stop the signers."""
        await self._flights.close()
        await self._signers.close()

    async def _key(self, account_id: str, domain: str) -> domain_keys.SigningKey | None:
        facts = await self._ctx.access_cache.refresh(self._ctx.clock())
        fact = ("dkim", account_id, domain)
        known: domain_keys.SigningKey | None = facts.get(fact)
        if known is not None:
            return known

        async def look_up() -> domain_keys.SigningKey | None:
            key = await domain_keys.signing_key(self._ctx, account_id, domain)
            if key is not None:
                facts[fact] = key
            return key

        # Shared only by those who trust the same cache: a lookup from before a change must not be used after it.
        return await self._flights.join((id(facts), *fact), look_up)

    async def _sign(self, name: tuple[str, str], key: domain_keys.SigningKey, domain: str, content: bytes) -> bytes:
        is_large = len(content) > LARGE_BYTES
        coverage = await asyncio.to_thread(dkim.cover, content) if is_large else dkim.cover(content)
        now = self._ctx.clock() // times.SECOND
        prepare = functools.partial(
            dkim.prepare,
            coverage,
            domain=domain,
            signed_at=now,
            expires_at=now + self._lifetime_seconds if self._lifetime_seconds else None,
        )
        unsigned = prepare(selector=key.selector)
        # RSA first: a receiver that reads only one signature supports it.
        fields = dkim.finish(unsigned, await self._signers.sign(key, unsigned.digest))
        if key.ed25519 is not None:
            second = prepare(selector=key.ed25519.selector, algorithm="ed25519-sha256")
            # Computed here: sending the digest to a signer process would take as long.
            fields += dkim.finish(second, key.ed25519.private_key.sign(second.digest))
        self._signatures.put(name, fields)
        self._ctx.metrics.signatures.add()
        return fields
