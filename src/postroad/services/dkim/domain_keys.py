"""DKIM keys of sender domains (RFC 6376): created when first needed, stored encrypted, published by the owner.

A key is needed when the domain's record is shown or its first message is signed. Every receiver supports 2048-bit RSA
(RFC 8301 section 3.2). Generating one takes a quarter of a second in a thread; the transaction begins only afterwards,
and the first of several creators wins. Every key has its own selector, so that a record published for another key never
meets a signature of this one.
"""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from postroad import errors
from postroad.protocol.dns import dkim_record
from postroad.services import context
from postroad.services.auth import encryption
from postroad.storage import access_version, dkim_keys, domains

KEY_BITS: Final = 2048
PUBLIC_EXPONENT: Final = 65_537
# 40 random bits in 8 letters and digits: a domain has few keys, which never collide.
SELECTOR_BYTES: Final = 5
SELECTOR_PREFIX: Final = "pr"


@dataclass(frozen=True, slots=True)
class DkimRecord:
    """The DNS record that verifies a domain's signatures."""

    selector: str
    name: str
    type: Literal["TXT"]
    value: str


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key ready for use: PKCS #1 in DER."""

    selector: str
    private_key: bytes = field(repr=False)


async def record(ctx: context.Context, domain: domains.Domain) -> DkimRecord:
    """The record to publish for a domain; creates its key if there is none."""
    return _record(domain, await _key(ctx, domain))


async def existing_records(ctx: context.Context, listed: Sequence[domains.Domain]) -> dict[str, DkimRecord]:
    """The records of those domains of an account, given by id, that have a key, by domain id."""
    if not listed:
        return {}
    async with ctx.store.scanning() as tx:
        keys = await dkim_keys.of_domains(tx, listed[0].account_id, first=listed[0].id, last=listed[-1].id)
    return {domain.id: _record(domain, keys[domain.id]) for domain in listed if domain.id in keys}


async def signing_key(ctx: context.Context, account_id: str, name: str) -> SigningKey | None:
    """The signing key of a domain, created if there is none; None when the account has no such domain."""
    async with ctx.store.reading() as tx:
        domain = await domains.by_name(tx, account_id, name)
    if domain is None:
        return None
    try:
        key = await _key(ctx, domain)
    except errors.NotFound:
        return None
    return SigningKey(key.selector, encryption.decrypt(ctx.keys.encryption, key.private_key, owner=_owner(domain)))


async def _key(ctx: context.Context, domain: domains.Domain) -> dkim_keys.DkimKey:
    async with ctx.store.reading() as tx:
        key = await dkim_keys.newest(tx, domain.account_id, domain.id)
    return key or await _make(ctx, domain)


async def _make(ctx: context.Context, domain: domains.Domain) -> dkim_keys.DkimKey:
    private_key, public_key = await asyncio.to_thread(_generate)
    made = dkim_keys.DkimKey(
        account_id=domain.account_id,
        domain_id=domain.id,
        selector=SELECTOR_PREFIX + base64.b32encode(ctx.entropy(SELECTOR_BYTES)).decode().lower(),
        private_key=encryption.encrypt(
            ctx.keys.encryption, private_key, owner=_owner(domain), nonce=ctx.entropy(encryption.NONCE_BYTES)
        ),
        public_key=public_key,
        created_at=ctx.clock(),
    )
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)  # the holder of this row sees every key and every domain written by others
        if await domains.by_id(tx, domain.account_id, domain.id) is None:
            raise errors.NotFound("no such domain in this account")
        found = await dkim_keys.newest(tx, domain.account_id, domain.id)
        if found is None:
            await dkim_keys.insert(tx, made)
    return found or made


def _generate() -> tuple[bytes, bytes]:
    key = rsa.generate_private_key(PUBLIC_EXPONENT, KEY_BITS)
    der = serialization.Encoding.DER
    private_key = key.private_bytes(der, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    return private_key, key.public_key().public_bytes(der, serialization.PublicFormat.SubjectPublicKeyInfo)


def _record(domain: domains.Domain, key: dkim_keys.DkimKey) -> DkimRecord:
    return DkimRecord(
        selector=key.selector,
        name=dkim_record.name(key.selector, domain.name),
        type=dkim_record.TYPE,
        value=dkim_record.value(key.public_key),
    )


def _owner(domain: domains.Domain) -> str:
    return f"dkim {domain.account_id} {domain.id}"
