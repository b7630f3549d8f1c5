"""The cookies: session, pending login, challenge, begun single sign-on, a notice for the next page, an operator's view.

They are HttpOnly and SameSite=Lax, and Secure when the base URL uses TLS (RFC 6265bis; the prefix `__Host-` keeps a
sibling host from setting one).
"""

from typing import Final
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


def encode_notice(text: str, kind: str = GOOD) -> str:
    """The kind and the escaped text, separated by `!`."""
    return f"{kind}!{parse.quote(text[:NOTICE_CHARACTERS], safe='')}"


def decode_notice(value: str) -> str:
    """The text of a notice cookie, which may be forged."""
    return parse.unquote(value.rpartition("!")[2])[:NOTICE_CHARACTERS]


def kind_of_notice(value: str) -> str:
    """The kind of a notice; an unknown kind counts as good."""
    kind = value.rpartition("!")[0]
    return kind if kind in KINDS else GOOD


def _name(name: str, *, is_secure: bool) -> str:
    return _PREFIX + name if is_secure else name
