"""Authentication of a mail that came in: who sent it, by SPF, DKIM, DMARC and ARC. Its results are values.

It never raises and never refuses: a failure of DNS is `temperror`, and what the sender did wrong is `permerror` or
`fail`. Work is bounded by `lookups.py`, by the few signatures that are read (`protocol/signatures/`), and by one pass
over the body for each of its two forms. `report_authentication.py` uses the same signatures for another question:
whether a report may count for the bounce guard.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from postroad import context
from postroad.mail.authentication import dmarc_check, lookups, spf_check
from postroad.model.units import times
from postroad.protocol.dns import tag_lists
from postroad.protocol.mime import address, address_lists
from postroad.protocol.signatures import arc_verification, dkim_verification

# Hashing more than this would block the event loop for more than a millisecond.
LARGE_BYTES: Final = 128 * 1024
# A name has one key; more are a mistake, and each would cost an operation.
MAX_RECORDS: Final = 3
# Parsing a field of the size of a header would block the event loop.
MAX_FROM_BYTES: Final = 2_000
# Whether a result proves its domain; anything else does not.
_PROVEN: Final[Mapping[str, bool | None]] = {"pass": True, "temperror": None}


class Dkim(msgspec.Struct, frozen=True):
    """The result of a signature. Domain and selector are empty where the signature has something else."""

    result: Literal["pass", "fail", "policy", "temperror", "permerror"]
    domain: str
    selector: str
    reason: str = ""


class Arc(msgspec.Struct, frozen=True):
    """The result of the chain. `sealers` are the domains that have sealed it, the newest first.

    `results` is what the newest of them says that it found. It counts only for who trusts them.
    """

    result: Literal["pass", "fail", "none", "temperror"]
    sealers: tuple[str, ...] = ()
    results: str = ""
    reason: str = ""


class Results(msgspec.Struct, frozen=True):
    """What is known about who sent a mail; `dkim` has a result for each signature that was read."""

    spf: spf_check.Spf
    dkim: tuple[Dkim, ...]
    dmarc: dmarc_check.Dmarc
    arc: Arc


async def authenticate(
    ctx: context.Context, content: bytes, *, client_address: str, helo: str, sender: str, party: str
) -> Results:
    """The results for a mail of this client, EHLO and envelope sender. `party` shares DNS and threads with others."""
    now = ctx.clock() // times.SECOND
    if len(content) > LARGE_BYTES:
        read = await ctx.threads.run(party, lambda: _read(content, now=now))
    else:
        read = _read(content, now=now)
    dns = lookups.Lookups(functools.partial(ctx.dns.turn, party=party))
    # In the order of what they are worth: what comes last has what is left of the lookups and the time.
    owner = await _owner(dns, read.authors)
    by_dkim = tuple([await _dkim(dns, each) for each in read.signatures])
    by_spf = await spf_check.check(dns, client_address=client_address, helo=helo, sender=sender)
    by_dmarc = await _dmarc(dns, owner, by_spf=by_spf, by_dkim=by_dkim)
    by_arc = await _arc(dns, read.chain)
    return Results(by_spf, by_dkim, by_dmarc, by_arc)


class _Read(msgspec.Struct, frozen=True):
    """What a mail says by itself: `authors` are the domains of the From field; empty if readers see different ones."""

    signatures: Sequence[dkim_verification.Signature | dkim_verification.Refused]
    chain: arc_verification.Chain | Arc
    authors: frozenset[str]


def _read(content: bytes, *, now: int) -> _Read:
    message = dkim_verification.Message(content)
    chain: arc_verification.Chain | Arc
    try:
        chain = arc_verification.read(message, now=now) or Arc("none")
    except arc_verification.ArcError as problem:
        chain = Arc("fail", reason=str(problem))
    return _Read(message.examined(now=now), chain, _authors(message))


def _authors(message: dkim_verification.Message) -> frozenset[str]:
    values = message.values(b"from")
    if len(values) != 1 or len(values[0]) > MAX_FROM_BYTES:
        return frozenset()
    try:
        return frozenset(mailbox.domain for mailbox in address_lists.parse_list(values[0].decode()))
    except (address.AddressError, UnicodeDecodeError):
        return frozenset()


async def _dkim(dns: lookups.Lookups, signature: dkim_verification.Signature | dkim_verification.Refused) -> Dkim:
    if isinstance(signature, dkim_verification.Refused):
        return Dkim(signature.result, signature.domain, signature.selector, signature.reason)
    domain, selector = signature.domain, signature.selector
    try:
        records = await _keys(dns, signature)
    except lookups.LookupFailed as problem:
        return Dkim("temperror", domain, selector, str(problem))
    if not records:
        return Dkim("permerror", domain, selector, "there is no key for the signature")
    if any(dkim_verification.is_proven(signature, record) for record in records):
        return Dkim("pass", domain, selector)
    return Dkim("fail", domain, selector, "the key does not prove the signature")


async def _arc(dns: lookups.Lookups, chain: arc_verification.Chain | Arc) -> Arc:
    if isinstance(chain, Arc):
        return chain
    sealers = tuple(seal.domain for seal in chain.seals)
    for number, signature in enumerate((chain.message, *chain.seals)):
        try:
            records = await _keys(dns, signature)
        except lookups.LookupFailed as problem:
            return Arc("temperror", sealers, reason=str(problem))
        if not any(dkim_verification.is_proven(signature, record) for record in records):
            what = "the newest message signature" if number == 0 else f"a seal of {signature.domain}"
            return Arc("fail", sealers, reason=f"the key does not prove {what}")
    return Arc("pass", sealers, chain.results)


async def _keys(dns: lookups.Lookups, signature: dkim_verification.Signature) -> Sequence[str]:
    found = await dns.txt(tag_lists.dkim_name(signature.selector, signature.domain))
    return found.records[:MAX_RECORDS]


async def _owner(dns: lookups.Lookups, authors: frozenset[str]) -> dmarc_check.Owner | dmarc_check.Dmarc:
    """The owner of the author's domain, or the result if there is none."""
    if len(authors) != 1:
        return dmarc_check.Dmarc("permerror", "", reason="the From field does not name one domain")
    (domain,) = authors
    try:
        return await dmarc_check.find_owner(dns, domain) or dmarc_check.Dmarc("none", domain)
    except lookups.LookupFailed as problem:
        return dmarc_check.Dmarc("temperror", domain, reason=str(problem))


async def _dmarc(
    dns: lookups.Lookups,
    owner: dmarc_check.Owner | dmarc_check.Dmarc,
    *,
    by_spf: spf_check.Spf,
    by_dkim: Sequence[Dkim],
) -> dmarc_check.Dmarc:
    if isinstance(owner, dmarc_check.Dmarc):
        return owner
    by_keys = [(each.domain, _PROVEN.get(each.result, False)) for each in by_dkim]
    return await dmarc_check.check(dns, owner, spf=(by_spf.domain, _PROVEN.get(by_spf.result, False)), dkim=by_keys)
