"""The DMARC record: a domain's policy for mail that fails authentication (RFC 9989).

Receivers query `_dmarc.` of the domain of the From field, and then of its parent domains. Exactly one record counts;
two records count as none. Unknown tags are ignored, and so are those of the predecessor, RFC 7489, such as `pct`.
"""

import re
from collections.abc import Iterator
from typing import Final

from postroad.protocol.dns import tag_lists

TYPE: Final = "TXT"
POLICIES: Final = ("none", "quarantine", "reject")
# Bounds the queries for names with many labels, like those of receivers.
MAX_NAMES: Final = 8

_DMARC_VERSION: Final = re.compile(r"v[ \t]*=[ \t]*DMARC1[ \t]*(;|\Z)")


class DmarcError(ValueError):
    """A record that receivers ignore; the message says why."""


def first(domain: str) -> str:
    """The record to begin with: it changes nothing about the domain's mail, and requests reports about it.

    Every domain with mailboxes has this one (RFC 5321 section 4.5.1).
    """
    return f"v=DMARC1; p=none; rua=mailto:postmaster@{domain}"


def name(domain: str) -> str:
    """The name of a domain's record."""
    return f"_dmarc.{domain}"


def names(domain: str) -> Iterator[str]:
    """Where a record that holds for a domain may stand: its own, then those above it, down to two labels."""
    labels = domain.split(".")
    places = [".".join(labels[at:]) for at in range(max(1, len(labels) - 1))]
    # The domain itself, and the highest of the others: an organization's domain is near the top.
    for place in [places[0], *places[1:][-(MAX_NAMES - 1) :]]:
        yield name(place)


def is_dmarc(text: str) -> bool:
    """Whether a TXT record means to be one."""
    return _DMARC_VERSION.match(text) is not None


def policy(text: str) -> str:
    """What a record asks for, one of `POLICIES`. Raises DmarcError."""
    tags = tag_lists.parse(text)
    if tags is None:
        raise DmarcError("it is not a list of tags, such as v=DMARC1; p=none")
    if next(iter(tags)) != "v":
        raise DmarcError("v=DMARC1 must come first")
    if "p" not in tags:
        raise DmarcError("p= is missing")
    wanted = tags["p"].lower()
    if wanted not in POLICIES:
        raise DmarcError("p= must be none, quarantine or reject")
    return wanted
