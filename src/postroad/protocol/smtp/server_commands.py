"""Parser of SMTP command lines on the server side: verbs, paths, parameters (RFC 5321 sections 4.1.1 to 4.1.3).

A path follows the full grammar of RFC 5321, with quoted local parts and address literals, because other servers use
them as senders. A source route is dropped (RFC 5321 appendix C). Whether mail can be sent to an address is decided by
the session's policy. Parameters are those of the offered extensions, by the tables below; all others are refused.
"""

import functools
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from postroad.protocol.smtp import values

Parameters = Mapping[str, str]

MAX_LOCAL_OCTETS: Final = 64  # RFC 5321 section 4.5.3.1.1
MAX_PATH_OCTETS: Final = 254  # RFC 5321 section 4.5.3.1.3: 256 with the angle brackets

# Written as negated classes: a class that lists all non-ASCII characters is slow to compile at every start.
_ATOM: Final = r'[^\x00- "(),.:;<>@\[\\\]\x7f]+'
_QUOTED: Final = r'"(?:[^"\\\x00-\x1f\x7f]|\\[\x20-\x7e])*"'
_LETTER: Final = r"[^\x00-/:-@\[-`{-\x7f]"
_LABEL: Final = rf"{_LETTER}(?:[^\x00-,./:-@\[-`{{-\x7f]*{_LETTER})?"
_DOMAIN: Final = rf"{_LABEL}(?:\.{_LABEL})*"
_LITERAL: Final = r"\[[!-Z^-~]+\]"
_MAILBOX = re.compile(
    rf"(?:@{_DOMAIN}(?:,@{_DOMAIN})*:)?((?P<local>{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@(?:{_DOMAIN}|{_LITERAL}))"
)
# A quoted local part may hold an angle bracket, so brackets alone do not end a path.
_PATH = re.compile(rf" *<((?:[^<>\"]++|{_QUOTED})*+)>(?: +(.*))?", re.DOTALL)
_PARAMETER = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)(?:=([^\x00- =\x7f]+))?")
_HELLO_NAME = re.compile(r"[!-~]{1,255}")
_CHUNK = re.compile(r"([0-9]{1,20})( +LAST)?", re.IGNORECASE | re.ASCII)

_XTEXT: Final = r"(?:[!-*,-<>-~]|\+[0-9A-F]{2})*"  # RFC 3461 section 4
MAIL_PARAMETERS: Final = {
    "SIZE": re.compile(r"[0-9]{1,20}"),  # RFC 1870
    "BODY": re.compile(r"7BIT|8BITMIME", re.IGNORECASE),  # RFC 6152
    "SMTPUTF8": re.compile(""),  # RFC 6531
    "RET": re.compile(r"FULL|HDRS", re.IGNORECASE),  # RFC 3461
    "ENVID": re.compile(_XTEXT),  # RFC 3461
    "AUTH": re.compile(rf"<>|{_XTEXT}"),  # RFC 4954 section 5: accepted and ignored
    "BY": re.compile(r"[+-]?[0-9]{1,9};[NR]T?", re.IGNORECASE),  # RFC 2852
    "HOLDFOR": re.compile(r"[0-9]{1,9}"),  # RFC 4865
    "HOLDUNTIL": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,30}(?:Z|[+-][0-9:]{5})", re.IGNORECASE),
}
# Of these, those of extensions that only some listeners offer.
TIME_PARAMETERS: Final = frozenset({"BY", "HOLDFOR", "HOLDUNTIL"})
RECIPIENT_PARAMETERS: Final = {
    "NOTIFY": re.compile(r"NEVER|(?:SUCCESS|FAILURE|DELAY)(?:,(?:SUCCESS|FAILURE|DELAY)){0,2}", re.IGNORECASE),
    "ORCPT": re.compile(r"[A-Za-z0-9-]+;[^\x00- =\x7f]+"),  # RFC 3461, and RFC 6533 for other scripts
}


class CommandError(Exception):
    """A command is refused; `reply` is the reply to send."""

    def __init__(self, code: int, enhanced: str, text: str) -> None:
        super().__init__(text)
        self.reply = values.Reply(code, text, enhanced)


class Path(msgspec.Struct, frozen=True):
    """The address of MAIL or RCPT with its parameters; the keys are upper case. An empty address is the null path."""

    address: str
    parameters: Parameters

    def refuse_unoffered(self, *, is_extended: bool, is_utf8: bool) -> None:
        """Refuse parameters without EHLO, and non-ASCII addresses without SMTPUTF8."""
        if self.parameters and not is_extended:
            raise CommandError(555, "5.5.4", "Parameters require EHLO")
        if not is_utf8 and not self.address.isascii():
            raise CommandError(553, "5.6.7", "A non-ASCII address requires SMTPUTF8 in MAIL")


def split(line: bytes) -> tuple[str, str]:
    """The verb in upper case, and the rest of the line."""
    try:
        verb, _, argument = line.decode("utf-8").partition(" ")
    except UnicodeDecodeError:
        raise CommandError(500, "5.5.2", "Syntax error: the command is not valid UTF-8") from None
    if not verb.isascii() or "\0" in argument:
        raise CommandError(500, "5.5.2", "Syntax error: invalid character in the command")
    return verb.upper(), argument.strip(" ")


def hello_name(argument: str) -> str:
    """The client's name: any printable word, because many clients do not know their host name."""
    if not _HELLO_NAME.fullmatch(argument):
        raise CommandError(501, "5.5.4", "Syntax error: a host name is required, as in EHLO mail.example.com")
    return argument


def chunk(argument: str) -> tuple[int, bool] | None:
    """The size of a chunk, and whether it is the last; None when malformed."""
    found = _CHUNK.fullmatch(argument)
    return (int(found[1]), found[2] is not None) if found else None


# Few senders send most of the mail. The cache takes 2 MB at most, because lines are bounded.
@functools.lru_cache(maxsize=1024)
def sender(argument: str) -> Path:
    """`FROM:<address>` and its parameters."""
    path, parameters = _split_path("FROM:", argument)
    return Path(_mailbox(path, "5.1.7") if path else "", _read(parameters, MAIL_PARAMETERS))


def recipient(argument: str) -> Path:
    """`TO:<address>` and its parameters."""
    path, parameters = _split_path("TO:", argument)
    # RFC 5321 section 4.1.1.3: this one needs no domain.
    address = path if path.lower() == "postmaster" else _mailbox(path, "5.1.3")
    return Path(address, _read(parameters, RECIPIENT_PARAMETERS))


def _split_path(keyword: str, argument: str) -> tuple[str, str]:
    found = _PATH.fullmatch(argument[len(keyword) :]) if argument[: len(keyword)].upper() == keyword else None
    if found is None:
        raise CommandError(501, "5.5.4", f"Syntax error: use {keyword}<address>")
    return found[1], found[2] or ""


def _mailbox(path: str, enhanced: str) -> str:
    found = _MAILBOX.fullmatch(path)
    if found is None:
        raise CommandError(553, enhanced, "Malformed address")
    address, local = found.groups()
    # RFC 5321 section 4.5.3.1.2 allows a domain 255 octets, but the whole path leaves it fewer.
    if len(local.encode()) > MAX_LOCAL_OCTETS or len(address.encode()) > MAX_PATH_OCTETS:
        raise CommandError(553, enhanced, "Address too long")
    return address


def _read(text: str, known: Mapping[str, re.Pattern[str]]) -> Parameters:
    parameters: dict[str, str] = {}
    for word in text.split():
        found = _PARAMETER.fullmatch(word)
        if found is None:
            raise CommandError(501, "5.5.4", "Malformed parameter")
        name, value = found[1].upper(), found[2] or ""
        if name not in known:
            raise CommandError(555, "5.5.4", f"Parameter not recognized: {name[:40]}")
        if name in parameters:
            raise CommandError(501, "5.5.4", f"Duplicate parameter: {name}")
        if not known[name].fullmatch(value):
            raise CommandError(501, "5.5.4", f"Malformed value of parameter {name}")
        parameters[name] = value
    return parameters
