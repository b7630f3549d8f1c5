"""The cookies: session, pending login, challenge, begun single sign-on, a notice for the next page, an operator's view.

They are HttpOnly and SameSite=Lax, and Secure when the base URL uses TLS (RFC 6265bis; the prefix `__Host-` keeps a
sibling host from setting one).
"""

from typing import Final, NamedTuple
from urllib import parse

from postroad.web import routing

SESSION: Final = "postroad"
PENDING: Final = "postroad_pending"
NOTICE: Final = "postroad_notice"
VIEW_AS: Final = "postroad_view_as"
PASSKEY: Final = "postroad_passkey"
# A login that has been begun at a provider of single sign-on.
SSO: Final = "postroad_sso"
NOTICE_SECONDS: Final = 60
NOTICE_CHARACTERS: Final = 400
# Browsers keep cookies of up to 4 KB.
MAX_CHARACTERS: Final = 3_000
GOOD: Final = "good"
KINDS: Final = (GOOD, "warn", "bad")
_PREFIX: Final = "__Host-"


def read(headers: routing.Headers, name: str, *, is_secure: bool) -> str | None:
    """The value of a cookie; one that is sent twice may be injected, and counts as missing."""
    field = headers.get(b"cookie")
    if field is None:
        return None
    wanted = _name(name, is_secure=is_secure)
    pairs = (pair.strip().partition("=") for pair in field.decode("latin-1").split(";"))
    found = [value for key, _, value in pairs if key == wanted]
    return found[0] if len(found) == 1 else None


def write(name: str, value: str, *, is_secure: bool, seconds: int) -> tuple[str, str]:
    """The header field that sets a cookie; 0 seconds remove it."""
    secure = "; Secure" if is_secure else ""
    shown = _name(name, is_secure=is_secure)
    return "Set-Cookie", f"{shown}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def remove(name: str, *, is_secure: bool) -> tuple[str, str]:
    return write(name, "", is_secure=is_secure, seconds=0)


class Notice(NamedTuple):
    """What the next page says, and the signed value of how it is undone (framework/requests.py), if it can be."""

    text: str
    kind: str = GOOD
    undo: str = ""


def encode_notice(notice: Notice) -> str:
    """The kind, the escaped text and how it is undone, separated by `!`."""
    written = f"{notice.kind}!{parse.quote(notice.text[:NOTICE_CHARACTERS], safe='')}"
    has_room = len(written) + len(notice.undo) < MAX_CHARACTERS
    return f"{written}!{notice.undo}" if notice.undo and has_room else written


def decode_notice(value: str) -> Notice:
    """A notice of a cookie, which may be forged; an unknown kind counts as good."""
    kind, text, undo = [*value.split("!", 2), "", ""][:3] if "!" in value else (GOOD, value, "")
    return Notice(parse.unquote(text)[:NOTICE_CHARACTERS], kind if kind in KINDS else GOOD, undo)


def _name(name: str, *, is_secure: bool) -> str:
    return _PREFIX + name if is_secure else name
