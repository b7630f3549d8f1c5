"""The TXT record at `_smtp._tls` by which a domain asks for TLS reports (RFC 8460 section 3).

Anything but one valid record asks for none. The URIs come from strangers: their number and length are bounded, and
kinds other than `mailto:` and `https:` are left out. Whether a URL may be posted to, the SSRF guard decides.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib import parse

from postroad.protocol import address
from postroad.protocol.dns import tag_lists

# A domain needs one or two, of its own and of a service that reads them.
MAX_URIS: Final = 4
MAX_URI_CHARACTERS: Final = 1_000
MAILTO: Final = "mailto:"
HTTPS: Final = "https://"
_RECORD: Final = re.compile(r"v=TLSRPTv1[ \t]*;.*", re.DOTALL)


def name_of(domain: str) -> str:
    """The name of a domain's record."""
    return f"_smtp._tls.{domain}"


def report_uris(texts: Iterable[str]) -> tuple[str, ...]:
    """Where the TXT records ask for reports to be sent: `mailto:` with a plain address, or an `https:` URL."""
    records = [text for text in texts if _RECORD.fullmatch(text)]
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
