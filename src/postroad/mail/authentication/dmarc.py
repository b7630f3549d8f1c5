"""DMARC: whether SPF or DKIM has proven the domain of the From field, and what its owner asks for otherwise.

By RFC 9989: the organization of a domain follows from the records above it. Only domains of one top-level domain can be
of one organization, so others are not looked up.
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

    `aligned_by` are the mechanisms that have proven a domain of the same organization.
    """

    result: Result
    domain: str
    policy: str = ""
    aligned_by: tuple[Literal["spf", "dkim"], ...] = ()
    reason: str = ""


async def check(dns: lookups.Lookups, *, domain: str, by_spf: str, by_dkim: Iterable[str]) -> Dmarc:
    """The result for a domain in A-labels, with those that SPF (empty: none) and DKIM have proven."""
    try:
        return await _check(dns, domain, by_spf=by_spf, by_dkim=tuple(dict.fromkeys(by_dkim)))
    except lookups.LookupFailed as problem:
        return Dmarc("temperror", domain, reason=str(problem))


async def _check(dns: lookups.Lookups, domain: str, *, by_spf: str, by_dkim: tuple[str, ...]) -> Dmarc:
    records = await _records(dns, domain)
    organization = dmarc_record.organization(domain, records)
    # Section 4.10.1: its own record, else that of its organization, else that of the public suffix.
    places = [domain, organization, *(place for place, record in records.items() if record.is_suffix)]
    place = next((place for place in places if place in records), None)
    if place is None:
        return Dmarc("none", domain)
    record = records[place]
    policy = record.policy
    if place != domain:
        policy = record.subdomain_policy if (await dns.txt(domain)).exists else record.absent_policy
    if record.is_test:
        # Section 4.7: one step weaker.
        policy = dmarc_record.POLICIES[max(0, dmarc_record.POLICIES.index(policy) - 1)]
    aligned: list[Literal["spf", "dkim"]] = []
    if by_spf and await _is_aligned(dns, by_spf, domain, organization, is_strict=record.has_strict_spf):
        aligned.append("spf")
    for proven in by_dkim:
        if await _is_aligned(dns, proven, domain, organization, is_strict=record.has_strict_dkim):
            aligned.append("dkim")
            break
    return Dmarc("pass" if aligned else "fail", domain, policy, tuple(aligned))


async def _is_aligned(dns: lookups.Lookups, proven: str, domain: str, organization: str, *, is_strict: bool) -> bool:
    if proven == domain or is_strict:
        return proven == domain
    if proven.rpartition(".")[2] != domain.rpartition(".")[2]:
        return False
    return dmarc_record.organization(proven, await _records(dns, proven)) == organization


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
