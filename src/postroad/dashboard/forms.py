"""Forms and protection against cross-site requests.

Two independent checks: the browser reports the origin of a request (`Origin`, `Sec-Fetch-Site`), and only our own pages
know the CSRF token of the session (docs/decisions/0010-dashboard.md).
"""

from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard import site as sites
from postroad.web import routing

_SAME_ORIGIN: Final = (b"same-origin", b"none")


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every form contains: the CSRF token of the session."""

    csrf_token: str | None = None

    def __repr__(self) -> str:
        # A form may contain a password.
        return f"{type(self).__name__}()"


def refuse_cross_origin(site: sites.Site, headers: routing.Headers) -> None:
    """Refuse a request that another site started."""
    came_from = headers.get(b"sec-fetch-site")
    if came_from is not None and came_from not in _SAME_ORIGIN:
        raise _cross_origin()
    origin = headers.get(b"origin")
    # With `Referrer-Policy: no-referrer`, forms are sent with the origin `null` (Fetch standard).
    if origin is None or (origin == b"null" and came_from == b"same-origin"):
        return
    host = (headers.get(b"host") or b"").decode("latin-1").lower()
    if origin.decode("latin-1").lower() not in {sites.origin_of(site.base_url), f"http://{host}", f"https://{host}"}:
        raise _cross_origin()


def missing_csrf_token() -> errors.Forbidden:
    """The error for a form without a valid CSRF token."""
    return errors.Forbidden("this form has expired; reload the page and submit it again")


def _cross_origin() -> errors.Forbidden:
    return errors.Forbidden("cross-site request refused; nothing was changed")
