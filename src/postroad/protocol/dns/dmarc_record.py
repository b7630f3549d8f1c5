"""The DMARC record: a domain's policy for mail that fails authentication (RFC 9989), and the search for it.

Receivers query `_dmarc.` of the domain of the From field, and then of its parent domains (the tree walk of section
4.10). Exactly one record counts; two records count as none. Unknown tags are ignored, and so are those of the
predecessor, RFC 7489, such as `pct`. No list of public suffixes is needed: which domains belong to one organization
follows from their records.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from postroad.protocol.dns import tag_lists

# From the weakest to the strictest.
POLICIES: Final = ("none", "quarantine", "reject")
# Bounds the queries for names with many labels (section 4.10): the domain itself, and the highest of the others.
MAX_NAMES: Final = 8

_VERSION: Final = re.compile(r"v[ \t]*=[ \t]*DMARC1[ \t]*(;|\Z)")


class DmarcError(ValueError):
    """A record that receivers ignore; the message says why."""


class Record(msgspec.Struct, frozen=True):
    """A record as receivers read it.

    `subdomain_policy` holds for names below it, and `absent_policy` for those of them that do not exist. `is_suffix` is
    its `psd=`: None if the record does not say, else nothing above it matters.
    """

    policy: str
    subdomain_policy: str
    absent_policy: str
    has_strict_dkim: bool
    has_strict_spf: bool
    is_suffix: bool | None
    is_test: bool


# The record to begin with: it changes nothing about the domain's mail.
FIRST: Final = "v=DMARC1; p=none"


def name_of(domain: str) -> str:
    return f"_dmarc.{domain}"


def tree(domain: str) -> Iterator[str]:
    """The domains whose records a receiver queries for one: itself, then those above it, down to one label."""
    labels = domain.split(".")
    yield domain
    for at in range(max(1, len(labels) - MAX_NAMES + 1), len(labels)):
        yield ".".join(labels[at:])


def names(domain: str) -> Iterator[str]:
    """Where an organization may have put a record that holds for its domain: one label is no organization's."""
    return (name_of(each) for each in tree(domain) if each == domain or "." in each)


def is_dmarc(text: str) -> bool:
    """Whether a TXT record means to be one."""
    return _VERSION.match(text) is not None


def policy_of(text: str) -> str:
    """What a record asks for, one of `POLICIES`. Raises DmarcError. It is stricter than receivers are."""
    tags = _tags(text)
    if "p" not in tags:
        raise DmarcError("p= is missing")
    wanted = tags["p"].lower()
    if wanted not in POLICIES:
        raise DmarcError("p= must be none, quarantine or reject")
    return wanted


def read(texts: Sequence[str]) -> Record | None:
    """The record among the texts of a name; None without exactly one that receivers use.

    A policy that is missing or unknown is `none` if the record has an address for reports (section 4.7); else the
    record does not count.
    """
    found = [text for text in texts if is_dmarc(text)]
    try:
        tags = _tags(found[0]) if len(found) == 1 else {}
    except DmarcError:
        return None
    policy = _known(tags, "p", "none" if tags.get("rua") else "")
    if not policy:
        return None
    below = _known(tags, "sp", policy)
    return Record(
        policy=policy,
        subdomain_policy=below,
        absent_policy=_known(tags, "np", below),
        has_strict_dkim=tags.get("adkim", "").lower() == "s",
        has_strict_spf=tags.get("aspf", "").lower() == "s",
        is_suffix={"y": True, "n": False}.get(tags.get("psd", "").lower()),
        is_test=tags.get("t", "").lower() == "y",
    )


def organization(domain: str, records: Mapping[str, Record]) -> str:
    """The organizational domain of one, from the records of its tree (section 4.10.2)."""
    found = [(place, records[place]) for place in tree(domain) if place in records]
    for place, record in found:
        if record.is_suffix is False:
            return place
        if record.is_suffix and place != domain:
            return ".".join(domain.split(".")[-place.count(".") - 2 :])
    return found[-1][0] if found else domain


def _tags(text: str) -> dict[str, str]:
    tags = tag_lists.parse(text)
    if tags is None:
        raise DmarcError("it is not a list of tags, such as v=DMARC1; p=none")
    if next(iter(tags)) != "v":
        raise DmarcError("v=DMARC1 must come first")
    return tags


def _known(tags: Mapping[str, str], name: str, default: str) -> str:
    wanted = tags.get(name, "").lower()
    return wanted if wanted in POLICIES else default
