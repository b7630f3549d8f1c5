"""What the header of a message lacks: fields that mailbox providers require, and alignment (RFC 7489 section 3.1)."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model import webhook_urls

_ADDRESS: Final = re.compile(r"@([^\s@<>,;\"]+)>?\s*$")
_DKIM_DOMAIN: Final = re.compile(r"(?:^|;)\s*d\s*=\s*([^\s;]+)")
_ONE_CLICK: Final = "list-unsubscribe=one-click"


class Level(StrEnum):
    """How a finding is shown."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class Finding(msgspec.Struct, frozen=True):
    """One result of a check: a sentence or two."""

    level: Level
    text: str


class Origin(msgspec.Struct, frozen=True):
    """How a message is or was sent: the domain of its return path, and the one it is signed for when it is sent."""

    return_path_domain: str
    signing_domain: str = ""


def check(headers: Sequence[tuple[str, str]], origin: Origin) -> list[Finding]:
    """The findings, in the order of the page."""
    fields: dict[str, list[str]] = {}
    for name, value in headers:
        fields.setdefault(name.lower(), []).append(value)
    return [*_required(fields), *_alignment(fields, origin), _unsubscribe(fields)]


def _required(fields: dict[str, list[str]]) -> list[Finding]:
    """Fields that occur exactly once (RFC 5322 section 3.6); spam filters count a missing Message-ID too."""
    findings = []
    for name in ("From", "Date", "Message-ID", "Subject"):
        count = len(fields.get(name.lower(), ()))
        if count == 0:
            findings.append(Finding(Level.BAD, f"{name} is missing."))
        elif count > 1:
            findings.append(Finding(Level.BAD, f"{name} occurs {count} times; it must occur once."))
    return findings or [Finding(Level.GOOD, "From, Date, Message-ID and Subject are present.")]


def _alignment(fields: dict[str, list[str]], origin: Origin) -> list[Finding]:
    found = _ADDRESS.search(fields.get("from", [""])[0])
    if found is None:
        return [Finding(Level.BAD, "From has no address, so nothing can be aligned with it.")]
    sender = found[1].lower()
    signed = [match[1].lower() for value in fields.get("dkim-signature", ()) if (match := _DKIM_DOMAIN.search(value))]
    return [
        _dkim(sender, sorted(set(signed)), origin.signing_domain),
        _return_path(sender, origin.return_path_domain.lower()),
    ]


def _dkim(sender: str, signed: list[str], later: str) -> Finding:
    if not signed and not later:
        return Finding(Level.BAD, "The message has no DKIM signature. Gmail and Yahoo require one.")
    named = ", ".join(signed) or later
    if any(_is_aligned(sender, domain) for domain in signed or [later]):
        when = "" if signed else " It is signed when it is sent, if the domain is registered."
        return Finding(Level.GOOD, f"The DKIM signature is for {named}, which is aligned with From ({sender}).{when}")
    return Finding(Level.BAD, f"The DKIM signature is for {named}, which is not aligned with From ({sender}).")


def _return_path(sender: str, domain: str) -> Finding:
    if not domain:
        return Finding(Level.WARN, "The return path is empty, as in delivery reports.")
    if _is_aligned(sender, domain):
        return Finding(Level.GOOD, f"The return path is in {domain}, which is aligned with From ({sender}).")
    return Finding(
        Level.WARN,
        f"The return path is in {domain}, which is not aligned with From ({sender}). "
        "SPF then does not count for DMARC; an aligned DKIM signature is enough.",
    )


def _is_aligned(sender: str, domain: str) -> bool:
    """Relaxed alignment, without a list of public suffixes: one is the other or a subdomain of it."""
    return webhook_urls.is_below(sender, domain) or webhook_urls.is_below(domain, sender)


def _unsubscribe(fields: dict[str, list[str]]) -> Finding:
    listed = fields.get("list-unsubscribe", [""])[0].lower()
    if not listed:
        return Finding(
            Level.WARN,
            "List-Unsubscribe is missing. Gmail and Yahoo require it of newsletters and other bulk mail; "
            "receipts and login codes do not need it.",
        )
    if "<https://" not in listed:
        return Finding(
            Level.WARN, "List-Unsubscribe has no https:// URL, which one-click unsubscription needs (RFC 8058)."
        )
    if fields.get("list-unsubscribe-post", [""])[0].strip().lower() != _ONE_CLICK:
        return Finding(
            Level.WARN,
            "List-Unsubscribe-Post: List-Unsubscribe=One-Click is missing, so it is not one-click (RFC 8058).",
        )
    return Finding(Level.GOOD, "List-Unsubscribe is present, with one-click unsubscription.")
