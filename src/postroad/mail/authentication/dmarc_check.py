"""DMARC: whether SPF or DKIM has proven the domain of the From field, and what its owner asks for otherwise.

By RFC 9989: the organization of a domain follows from the records above it. What the owner asks for is looked up before
anything else, and of the domains that a mail names only those below that organization count. So whoever forges a mail
with names of their own cannot turn `fail` into `temperror`.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from postroad.mail.authentication import lookups
from postroad.protocol.dns import dmarc_record

Result = Literal["pass", "fail", "none", "temperror", "permerror"]
Policy = Literal["none", "quarantine", "reject"]


class Dmarc(msgspec.Struct, frozen=True):
    """The result for the domain of the From field. `policy` is what its owner asks for, empty without a record.

    `aligned_by` are those of `spf` and `dkim` that have proven a domain of the same organization.
    """

    result: Result
    domain: str
    policy: str = ""
    aligned_by: tuple[str, ...] = ()
    reason: str = ""


class Owner(msgspec.Struct, frozen=True):
    """What is known of the domain of the From field: its organization, and the record that holds for it."""

    domain: str
    organization: str
    record: dmarc_record.Record
    policy: Policy


async def find_owner(dns: lookups.Lookups, domain: str) -> Owner | None:
    """The owner of a domain in A-labels; None without a record. Raises LookupFailed."""
    records = await _records(dns, domain)
    organization = dmarc_record.organization(domain, records)
    # Section 4.10.1: its own record, else that of its organization, else that of the public suffix.
    places = [domain, organization, *(place for place, record in records.items() if record.is_suffix)]
    place = next((place for place in places if place in records), None)
    if place is None:
        return None
    record = records[place]
    policy = record.policy
    if place != domain:
        policy = record.subdomain_policy if (await dns.txt(domain)).exists else record.absent_policy
    # A test asks for one step less (section 4.7).
    step = max(0, dmarc_record.POLICIES.index(policy) - record.is_test)
    return Owner(domain, organization, record, dmarc_record.POLICIES[step])


async def check(
    dns: lookups.Lookups, owner: Owner, *, spf: tuple[str, bool | None], dkim: Iterable[tuple[str, bool | None]]
) -> Dmarc:
    """The result by the domains of SPF and DKIM, each with whether it is proven; None: DNS failed."""
    by_spf = await _state(dns, owner, spf, is_strict=owner.record.has_strict_spf)
    by_dkim = [await _state(dns, owner, each, is_strict=owner.record.has_strict_dkim) for each in dkim]
    if by_spf or True in by_dkim:
        aligned = [method for method, states in (("spf", [by_spf]), ("dkim", by_dkim)) if True in states]
        return Dmarc("pass", owner.domain, owner.policy, tuple(aligned))
    if None in {by_spf, *by_dkim}:
        return Dmarc("temperror", owner.domain, owner.policy, reason="DNS failed for a domain that may be aligned")
    return Dmarc("fail", owner.domain, owner.policy)


async def _state(dns: lookups.Lookups, owner: Owner, proof: tuple[str, bool | None], *, is_strict: bool) -> bool | None:
    """Whether a domain is proven and of the organization (section 4.4); None if DNS failed for either."""
    domain, is_proven = proof
    if is_proven is False or (domain != owner.domain and is_strict):
        return False
    # An organization's domain ends the names of all its domains, so others are not looked up.
    if not f".{domain}".endswith(f".{owner.organization}"):
        return False
    try:
        is_aligned = domain == owner.domain or (
            dmarc_record.organization(domain, await _records(dns, domain)) == owner.organization
        )
    except lookups.LookupFailed:
        return None
    return is_aligned and is_proven


async def _records(dns: lookups.Lookups, domain: str) -> dict[str, dmarc_record.Record]:
    """The records of the tree of a domain, as far as they matter."""
    found: dict[str, dmarc_record.Record] = {}
    for place in dmarc_record.tree(domain):
        record = dmarc_record.read((await dns.txt(dmarc_record.name_of(place))).records)
        if record is not None:
            found[place] = record
            if record.is_suffix is not None:
                break
    return found
