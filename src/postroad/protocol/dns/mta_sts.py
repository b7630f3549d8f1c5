"""MTA-STS (RFC 8461): its record, its policy and the hosts that it allows; the record of TLS reports (RFC 8460)."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final
from urllib import parse

import msgspec

from postroad.protocol.dns import tag_lists
from postroad.protocol.mime import address

WELL_KNOWN_PATH: Final = "/.well-known/mta-sts.txt"
MEDIA_TYPE: Final = "text/plain"
# Section 3.2: about a year.
MAX_AGE_SECONDS: Final = 31_557_600
# Policies name fewer than 20 hosts, and a policy is kept in memory. One that names more is not cut, since mail to the
# hosts that it allows would then be refused: it is no policy.
MAX_PATTERNS: Final = 50
MAX_PATTERN_CHARACTERS: Final = 4_096

_VERSION: Final = "STSv1"
# Section 3.1. The version comes first; blanks may surround the semicolons.
_RECORD: Final = re.compile(r"v=STSv1[ \t]*;(?P<fields>.*)")
_ID: Final = re.compile(r"[A-Za-z0-9]{1,32}")
# Section 3.2: a domain name, or one whose leftmost label is a star.
_PATTERN: Final = re.compile(r"(\*\.)?[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_AGE: Final = re.compile(r"[0-9]{1,10}")
_MAX_NAME_CHARACTERS: Final = 253


class Mode(StrEnum):
    """What a sender does with a host that the policy does not allow."""

    ENFORCE = "enforce"
    TESTING = "testing"
    NONE = "none"


class Policy(msgspec.Struct, frozen=True):
    """A domain's policy. The patterns are in lower case."""

    mode: Mode
    patterns: tuple[str, ...]
    max_age: int

    def allows(self, host: str) -> bool:
        """Whether a mail host's name matches a pattern; a star stands for exactly one label (section 4.1)."""
        name = host.lower().rstrip(".")
        _, _, parent = name.partition(".")
        return name in self.patterns or (parent != "" and f"*.{parent}" in self.patterns)

    @property
    def lines(self) -> tuple[str, ...]:
        """The policy as `parse_policy` reads it, without fields that it ignores."""
        patterns = (f"mx: {pattern}" for pattern in self.patterns)
        return (f"version: {_VERSION}", f"mode: {self.mode}", *patterns, f"max_age: {self.max_age}")


def policy_id(texts: Iterable[str]) -> str | None:
    """The id of the policy that the TXT records announce. Anything but one record of this version announces none."""
    announced = [match["fields"] for match in map(_RECORD.fullmatch, texts) if match is not None]
    if len(announced) != 1:
        return None
    fields = (field.strip(" \t").partition("=") for field in announced[0].split(";"))
    ids = [value for name, _, value in fields if name == "id"]
    return ids[0] if ids and _ID.fullmatch(ids[0]) else None


def parse_policy(content: bytes) -> Policy | None:
    try:
        lines = content.decode("utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        return None
    pairs = [(name.strip(" \t"), value.strip(" \t")) for name, _, value in (line.partition(":") for line in lines)]
    fields = dict(reversed(pairs))
    patterns = tuple(value.lower() for name, value in pairs if name == "mx")
    if fields.get("version") != _VERSION or fields.get("mode") not in set(Mode):
        return None
    mode = Mode(fields["mode"])
    if not _AGE.fullmatch(fields.get("max_age", "")) or not _are_valid(patterns, mode=mode):
        return None
    return Policy(mode, patterns, min(int(fields["max_age"]), MAX_AGE_SECONDS))


def _are_valid(patterns: tuple[str, ...], *, mode: Mode) -> bool:
    """A policy that wants something of hosts has to name some."""
    if len(patterns) > MAX_PATTERNS or sum(map(len, patterns)) > MAX_PATTERN_CHARACTERS:
        return False
    if not patterns and mode is not Mode.NONE:
        return False
    return all(len(pattern) <= _MAX_NAME_CHARACTERS and _PATTERN.fullmatch(pattern) for pattern in patterns)


# The TXT record at `_smtp._tls` by which a domain asks for TLS reports (RFC 8460 section 3).
#
# Anything but one valid record asks for none. The URIs come from strangers: their number and length are bounded, and
# kinds other than `mailto:` and `https:` are left out. Whether a URL may be posted to, the SSRF guard decides.

# A domain needs one or two, of its own and of a service that reads them.
MAX_URIS: Final = 4
MAX_URI_CHARACTERS: Final = 1_000
MAILTO: Final = "mailto:"
HTTPS: Final = "https://"
# To which a URI is to be added.
FIRST_REPORT_RECORD: Final = "v=TLSRPTv1"
_REPORT_RECORD: Final = re.compile(r"v=TLSRPTv1[ \t]*;.*", re.DOTALL)


def report_record_name(domain: str) -> str:
    return f"_smtp._tls.{domain}"


def report_uris(texts: Iterable[str]) -> tuple[str, ...]:
    """Where the TXT records ask for reports to be sent: `mailto:` with a plain address, or an `https:` URL."""
    records = [text for text in texts if _REPORT_RECORD.fullmatch(text)]
    tags = tag_lists.parse(records[0]) if len(records) == 1 else None
    found = map(_uri, (tags or {}).get("rua", "").split(","))
    return tuple(dict.fromkeys(uri for uri in found if uri))[:MAX_URIS]


def _uri(text: str) -> str:
    """The normalized URI; empty for one that is not usable."""
    uri = text.strip(" \t")
    if len(uri) > MAX_URI_CHARACTERS or not uri.isascii():
        return ""
    if uri[: len(HTTPS)].lower() == HTTPS:
        return HTTPS + uri[len(HTTPS) :]
    if uri[: len(MAILTO)].lower() != MAILTO:
        return ""
    try:
        mailbox = address.parse(parse.unquote(uri[len(MAILTO) :].partition("?")[0], errors="strict"))
    except (address.AddressError, UnicodeDecodeError):
        return ""
    return "" if mailbox.needs_smtputf8 else MAILTO + mailbox.address
