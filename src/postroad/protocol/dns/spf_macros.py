"""The macros of SPF records (RFC 7208 section 7): what a record says in terms of the mail that is checked.

Explanations are not read, because they are text from strangers; so their own macros (`c`, `r` and `t`) have no value.
"""

import ipaddress
import re
import urllib.parse
from typing import Final

import msgspec

MAX_NAME_CHARACTERS: Final = 253
NAME: Final = re.compile(r"%\{[pP]")

_MACRO: Final = re.compile(r"%(?:\{([slodiphcrtvSLODIPHCRTV])(\d{0,3})(r?)([.\-+,/_=]*)\}|([%_\-]))", re.IGNORECASE)
_TEXT: Final = re.compile(rf"(?:{_MACRO.pattern}|[!-$&-~])*+", re.IGNORECASE)
_ONLY_IN_EXPLANATIONS: Final = re.compile(r"%\{[crt]", re.IGNORECASE)
_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.IGNORECASE)
_ESCAPES: Final = {"%": "%", "_": " ", "-": "%20"}


class Mail(msgspec.Struct, frozen=True):
    """What is checked. `sender` and `local` and `domain` are those of the envelope, or of `postmaster` at the EHLO."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    helo: str
    local: str
    domain: str


def is_text(text: str) -> bool:
    """Whether the macros in a text can be read; a digit of nought is not one (section 7.1)."""
    if _TEXT.fullmatch(text) is None:
        return False
    return all(int(found[2] or 1) > 0 for found in _MACRO.finditer(text))


def is_domain(text: str) -> bool:
    """Whether a text can stand for a domain: it ends in a macro, or in the label of a top-level domain."""
    if not is_text(text) or _ONLY_IN_EXPLANATIONS.search(text):
        return False
    if any(found.end() == len(text) for found in _MACRO.finditer(text)):
        return True
    above, _, label = text.removesuffix(".").rpartition(".")
    return bool(above) and _LABEL.fullmatch(label) is not None and not label.isdigit()


def expand(text: str, mail: Mail, *, domain: str, name: str) -> str:
    """The domain that a text stands for at this domain's record. `name` is that of the client, or `unknown`."""
    written = _MACRO.sub(lambda found: _value(found, mail, domain=domain, name=name), text).removesuffix(".")
    if len(written) > MAX_NAME_CHARACTERS:
        # Section 7.3: labels are dropped from the left until it fits.
        _, _, written = written[-MAX_NAME_CHARACTERS - 1 :].partition(".")
    return written.lower()


def _value(found: re.Match[str], mail: Mail, *, domain: str, name: str) -> str:
    letter, digits, is_reversed, delimiters, escape = found.groups()
    if escape:
        return _ESCAPES[escape]
    values = {
        "s": f"{mail.local}@{mail.domain}",
        "l": mail.local,
        "o": mail.domain,
        "d": domain,
        "i": _dotted(mail.address),
        "p": name,
        "h": mail.helo,
        "v": "in-addr" if mail.address.version == 4 else "ip6",  # noqa: PLR2004 - IPv4
    }
    parts = re.split(f"[{re.escape(delimiters or '.')}]", values.get(letter.lower(), ""))
    if is_reversed:
        parts.reverse()
    if digits:
        parts = parts[-int(digits) :]
    value = ".".join(parts)
    return urllib.parse.quote(value, safe="") if letter.isupper() else value


def _dotted(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return ".".join(address.exploded.replace(":", ""))
