"""Refusals as people see them: a page with the sentence, the request id and a way on; or the log-in, if that lacks.

Programs get the error object, as everywhere, and so do scripts of ours, which show it where the form is.
"""

from collections.abc import Callable
from typing import Final
from urllib import parse

from postroad import errors
from postroad.dashboard import site as sites
from postroad.dashboard import visits
from postroad.web import answering, routing

_TITLES: Final = {
    400: "That does not work",
    401: "That did not work",
    403: "You may not do that",
    404: "There is nothing here",
    405: "There is nothing here",
    409: "That does not work now",
    413: "That is too much",
    429: "Too fast",
    500: "Something broke on our side",
    503: "Not available right now",
}


def depicting(site: sites.Site) -> Callable[[errors.PostroadError, routing.Refused], answering.Response | None]:
    """How this dashboard shows refusals."""

    def depict(error: errors.PostroadError, refused: routing.Refused) -> answering.Response | None:
        if not _wants_page(refused.headers):
            return None
        if isinstance(error, errors.Unauthorized) and refused.path != b"/login":
            return answering.success(_to_login(site, refused), request_id=refused.request_id)
        values = {
            "title": _TITLES.get(error.status, "That does not work"),
            "message": error.message,
            "code": error.code,
            "request_id": refused.request_id,
            "retry_after": error.retry_after,
        }
        content = site.pages.render("error.html", values)
        answer = routing.Answer(error.status, content, headers=site.headers, content_type=sites.HTML)
        status, fields, body = answering.success(answer, request_id=refused.request_id)
        return status, [*fields, *answering.refusal_fields(error)], body

    return depict


def _wants_page(headers: routing.Headers) -> bool:
    try:
        return headers.get(visits.ENHANCED) is None and b"text/html" in (headers.get(b"accept") or b"")
    except errors.InvalidRequest:
        return False


def _to_login(site: sites.Site, refused: routing.Refused) -> routing.Answer:
    path = refused.path.decode("latin-1")
    follows = "" if path == "/" or refused.method != "GET" else f"?next={parse.quote(path, safe='/')}"
    return routing.Answer(303, headers=(("Location", f"/login{follows}"), *site.headers))
