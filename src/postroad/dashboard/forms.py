"""Forms: the word that every one carries, and whether a request that changes something comes from a page of ours.

Two things are asked, and either would do: a browser says where a request comes from (`Origin`, `Sec-Fetch-Site`), and
only our own pages know the session's word (docs/decisions/0010-dashboard.md).
"""

from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard import site as sites
from postroad.web import routing

_SAME_ORIGIN: Final = (b"same-origin", b"none")


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every form holds: the session's word."""

    word: str | None = None


def refuse_cross_origin(site: sites.Site, headers: routing.Headers) -> None:
    """Refuse what a page of somebody else has started."""
    came_from = headers.get(b"sec-fetch-site")
    if came_from is not None and came_from not in _SAME_ORIGIN:
        raise _cross_origin()
    origin = headers.get(b"origin")
    # A page that tells nobody where it is (Referrer-Policy) sends its forms from the origin `null`, as Fetch has it.
    if origin is None or (origin == b"null" and came_from == b"same-origin"):
        return
    host = (headers.get(b"host") or b"").decode("latin-1").lower()
    if origin.decode("latin-1").lower() not in {sites.origin_of(site.base_url), f"http://{host}", f"https://{host}"}:
        raise _cross_origin()


def missing_csrf_token() -> errors.Forbidden:
    """What to say to a form without the session's word."""
    return errors.Forbidden("this form is not valid any more; open the page again and repeat what you did")


def _cross_origin() -> errors.Forbidden:
    return errors.Forbidden("this request was started by another site, so nothing was done")
