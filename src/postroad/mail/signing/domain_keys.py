"""DKIM keys of sender domains (RFC 6376): created when first needed, stored encrypted, published by the owner.

Keys are needed when the domain's records are shown or its first message is signed. Every receiver supports 2048-bit RSA
(RFC 8301 section 3.2). Generating one takes a quarter of a second in a thread of its own, in which accounts take turns;
the transaction begins only afterwards, and the first of several creators wins. Beside each RSA key is an Ed25519 key
(RFC 8463), which signs once its record is published. Every key has its own selector, so that a record published for
another key never meets a signature of this one. `key_rotation.py` replaces keys.

With `domains.key_zone` the operator publishes the keys, and the domain has aliases of them. Its owner adds these once:
there are two for each algorithm, which successive keys use in turn, after the overlap and so long after a name was used
that no resolver remembers.
"""

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from postroad import context, errors
from postroad.keys import encryption, key_check
from postroad.model.domains import domain_records
from postroad.model.units import times
from postroad.protocol.dns import tag_lists
from postroad.storage.engine import store
from postroad.storage.mail import domains
from postroad.storage.people import credentials

KEY_BITS: Final = 2048
# How long the record of a replaced key must stay published: mail in flight is signed with it.
OVERLAP_DAYS: Final = 7
PUBLIC_EXPONENT: Final = 65_537
# 40 random bits in 8 letters and digits: a domain has few keys, which never collide.
SELECTOR_BYTES: Final = 5
SELECTOR_CHARACTERS: Final = 10
# The keys of one generation differ only in this.
SELECTOR_PREFIXES: Final = {domains.DkimAlgorithm.RSA: "pr", domains.DkimAlgorithm.ED25519: "pe"}
_CURRENT: Final = domains.DkimStatus.CURRENT
_PURPOSES: Final[Mapping[tuple[str, str], domain_records.RecordPurpose]] = {
    (domains.DkimAlgorithm.RSA, domains.DkimStatus.NEXT): domain_records.RecordPurpose.DKIM_NEXT,
    (domains.DkimAlgorithm.RSA, domains.DkimStatus.CURRENT): domain_records.RecordPurpose.DKIM,
    (domains.DkimAlgorithm.RSA, domains.DkimStatus.OLD): domain_records.RecordPurpose.DKIM_OLD,
    (domains.DkimAlgorithm.ED25519, domains.DkimStatus.NEXT): domain_records.RecordPurpose.DKIM_ED25519_NEXT,
    (domains.DkimAlgorithm.ED25519, domains.DkimStatus.CURRENT): domain_records.RecordPurpose.DKIM_ED25519,
    (domains.DkimAlgorithm.ED25519, domains.DkimStatus.OLD): domain_records.RecordPurpose.DKIM_ED25519_OLD,
}


@dataclass(frozen=True, slots=True)
class DkimRecord:
    """The DNS record that verifies a domain's signatures."""

    selector: str
    name: str
    type: Literal["TXT", "CNAME"]
    value: str


@dataclass(frozen=True, slots=True)
class Ed25519Key:
    """The key of a second signature, loaded."""

    selector: str
    private_key: ed25519.Ed25519PrivateKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key ready for use: PKCS #1 in DER; and beside it the Ed25519 key whose record is published."""

    selector: str
    private_key: bytes = field(repr=False)
    ed25519: Ed25519Key | None = None


async def record(ctx: context.Context, domain: domains.Domain) -> DkimRecord:
    """The record of the key that signs for a domain; creates the key if there is none."""
    return _record(ctx, domain, _signing(await keys(ctx, domain)))


async def records(ctx: context.Context, domain: domains.Domain) -> list[domain_records.Record]:
    """The records of all keys of a domain, whose purposes tell them apart; creates the keys if there are none."""
    return _dns_records(ctx, domain, await keys(ctx, domain))


async def stored_records(ctx: context.Context, domain: domains.Domain) -> list[domain_records.Record]:
    """The same of the keys that there are."""
    return _dns_records(ctx, domain, await _stored(ctx, domain))


def _dns_records(
    ctx: context.Context, domain: domains.Domain, found: Sequence[domains.DkimKey]
) -> list[domain_records.Record]:
    made = [_dns_record(ctx, domain, key) for key in found]
    if ctx.settings.domains.key_zone and not any(key.status == domains.DkimStatus.NEXT for key in found):
        made += [_reserved(ctx, domain, key) for key in found if key.status == _CURRENT]
    # The reserved alias may be that of the old key. It is the old key's while mail with its signatures is in flight;
    # afterwards it waits for the next key and is not to be removed.
    now = ctx.clock()
    needed = {record.name for record in made if (record.needed_until or 0) > now}
    return list({record.name: record for record in made if record.selector or record.name not in needed}.values())


async def existing_records(ctx: context.Context, listed: Sequence[domains.Domain]) -> dict[str, DkimRecord]:
    """The records of those domains of an account, given by id, that have a key, by domain id."""
    if not listed:
        return {}
    async with ctx.store.scanning(listed[0].account_id) as tx:
        found = await domains.dkim_keys_of_domains(tx, listed[0].account_id, first=listed[0].id, last=listed[-1].id)
    return {domain.id: _record(ctx, domain, found[domain.id]) for domain in listed if domain.id in found}


async def signing_key(ctx: context.Context, account_id: str, name: str) -> SigningKey | None:
    """The signing key of a domain, created if there is none; None when the account has no such domain."""
    async with ctx.store.reading() as tx:
        domain = await domains.by_name(tx, account_id, name)
        found = [] if domain is None else await domains.dkim_keys(tx, account_id, domain.id)
    if domain is None:
        return None
    try:
        found = found or await keys(ctx, domain)
    except errors.NotFound:
        return None
    signing = _signing(found)
    return SigningKey(signing.selector, _decrypted(ctx, domain, signing), _second(ctx, domain, found))


async def _stored(ctx: context.Context, domain: domains.Domain) -> list[domains.DkimKey]:
    async with ctx.store.reading() as tx:
        return await domains.dkim_keys(tx, domain.account_id, domain.id)


async def keys(ctx: context.Context, domain: domains.Domain) -> list[domains.DkimKey]:
    """All keys of a domain, which has at least those of one generation afterwards."""
    found = await _stored(ctx, domain)
    if found:
        return found
    generated = await generate_rsa(ctx, domain)
    async with ctx.store.transaction() as tx:
        if not await lock(tx, domain):
            await insert_generation(ctx, tx, domain, generated, selector=new_selector(ctx), status=_CURRENT)
        return await domains.dkim_keys(tx, domain.account_id, domain.id)


async def lock(tx: store.Transaction, domain: domains.Domain) -> list[domains.DkimKey]:
    """The keys of a domain, which no other process changes before the transaction ends. Raises NotFound."""
    await credentials.bump_access_version(
        tx
    )  # the holder of this row sees every key and every domain written by others
    if await domains.by_id(tx, domain.account_id, domain.id) is None:
        raise errors.NotFound("no such domain in this account")
    return await domains.dkim_keys(tx, domain.account_id, domain.id)


async def generate_rsa(ctx: context.Context, domain: domains.Domain) -> tuple[bytes, bytes]:
    return await ctx.key_threads.run(domain.account_id, _generate)


async def insert_generation(
    ctx: context.Context,
    tx: store.Transaction,
    domain: domains.Domain,
    generated: tuple[bytes, bytes],
    *,
    selector: str,
    status: domains.DkimStatus,
) -> None:
    """Store a generated RSA key with an Ed25519 key beside it."""
    await key_check.require_current(ctx.keys, tx)
    private_key, public_key = generated
    made = domains.DkimKey(
        account_id=domain.account_id,
        domain_id=domain.id,
        selector=selector,
        private_key=_encrypted(ctx, domain, private_key),
        public_key=public_key,
        created_at=ctx.clock(),
        status=status,
    )
    await domains.insert_dkim_keys(tx, made)
    await domains.insert_dkim_keys(tx, _ed25519_beside(ctx, domain, made))


def next_selector(ctx: context.Context, found: Sequence[domains.DkimKey]) -> str:
    return _alternate(_signing(found).selector) if ctx.settings.domains.key_zone else new_selector(ctx)


def zone_name(domain_id: str, selector: str, *, zone: str) -> str:
    """The name of a key in the operator's zone. Its length is bounded, whatever name the domain has."""
    return f"{selector}.{domain_id.partition('_')[2]}.{zone.lower()}"


def _alternate(selector: str) -> str:
    """The other one of the two selectors that the keys of a domain use in turn."""
    return selector[:SELECTOR_CHARACTERS] if len(selector) > SELECTOR_CHARACTERS else f"{selector}b"


def new_selector(ctx: context.Context) -> str:
    """A selector for an RSA key that no key has had."""
    name = base64.b32encode(ctx.entropy(SELECTOR_BYTES)).decode().lower()
    return SELECTOR_PREFIXES[domains.DkimAlgorithm.RSA] + name


def _ed25519_beside(ctx: context.Context, domain: domains.Domain, key: domains.DkimKey) -> domains.DkimKey:
    """An Ed25519 key of the generation of an RSA key. It has the same time: see `SELECTOR_PREFIXES`."""
    seed = ctx.entropy(32)
    public_key = ed25519.Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    name = key.selector.removeprefix(SELECTOR_PREFIXES[domains.DkimAlgorithm.RSA])
    return dataclasses.replace(
        key,
        selector=SELECTOR_PREFIXES[domains.DkimAlgorithm.ED25519] + name,
        private_key=_encrypted(ctx, domain, seed),
        public_key=public_key,
        algorithm=domains.DkimAlgorithm.ED25519,
    )


def _signing(found: Sequence[domains.DkimKey]) -> domains.DkimKey:
    """The RSA key that signs; the newest, should there be several."""
    return [key for key in found if key.algorithm == domains.DkimAlgorithm.RSA and key.status == _CURRENT][-1]


def _second(ctx: context.Context, domain: domains.Domain, found: Sequence[domains.DkimKey]) -> Ed25519Key | None:
    for key in found:
        if key.algorithm == domains.DkimAlgorithm.ED25519 and key.status == _CURRENT and key.published_at is not None:
            seed = _decrypted(ctx, domain, key)
            return Ed25519Key(key.selector, ed25519.Ed25519PrivateKey.from_private_bytes(seed))
    return None


def _generate() -> tuple[bytes, bytes]:
    key = rsa.generate_private_key(PUBLIC_EXPONENT, KEY_BITS)
    der = serialization.Encoding.DER
    private_key = key.private_bytes(der, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    return private_key, key.public_key().public_bytes(der, serialization.PublicFormat.SubjectPublicKeyInfo)


def _record(ctx: context.Context, domain: domains.Domain, key: domains.DkimKey) -> DkimRecord:
    name, zone = tag_lists.dkim_name(key.selector, domain.name), ctx.settings.domains.key_zone
    if zone:
        target = zone_name(domain.id, key.selector, zone=zone)
        return DkimRecord(key.selector, name, tag_lists.ALIAS_TYPE, target)
    return DkimRecord(key.selector, name, tag_lists.TYPE, text(key))


def text(key: domains.DkimKey) -> str:
    """What the TXT record of a key says."""
    return tag_lists.dkim_value(key.public_key, key_type=key.algorithm)


def _dns_record(ctx: context.Context, domain: domains.Domain, key: domains.DkimKey) -> domain_records.Record:
    made = _record(ctx, domain, key)
    return domain_records.Record(
        _PURPOSES[key.algorithm, key.status],
        made.name,
        made.type,
        made.value,
        selector=key.selector,
        needed_until=None if key.retired_at is None else key.retired_at + OVERLAP_DAYS * times.DAY,
        text=text(key),
    )


def _reserved(ctx: context.Context, domain: domains.Domain, key: domains.DkimKey) -> domain_records.Record:
    following = dataclasses.replace(key, selector=_alternate(key.selector), status=domains.DkimStatus.NEXT)
    return dataclasses.replace(_dns_record(ctx, domain, following), selector="", text="")


def _encrypted(ctx: context.Context, domain: domains.Domain, private_key: bytes) -> bytes:
    nonce = ctx.entropy(encryption.NONCE_BYTES)
    return encryption.encrypt(ctx.keys.encryption, private_key, owner=_owner(domain), nonce=nonce)


def _decrypted(ctx: context.Context, domain: domains.Domain, key: domains.DkimKey) -> bytes:
    return encryption.decrypt(ctx.keys.encryption, key.private_key, owner=_owner(domain))


def _owner(domain: domains.Domain) -> str:
    return encryption.dkim_owner(domain.account_id, domain.id)
