"""Refusals as people see them: a page with the sentence, the request id and a way on; or the log-in, if that lacks.

Programs get the error object, as everywhere, and so do scripts of ours, which show it where the form is.
"""

from collections.abc import Callable
from typing import Final
from urllib import parse

from postroad import errors
from postroad.dashboard import login, requests
from postroad.dashboard import site as sites
from postroad.web import responses, routing

# A longer address is not one that somebody wants to come back to.
MAX_NEXT_CHARACTERS: Final = 1_000
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
# A form that was refused with one of these has changed nothing, and can be sent again.
_RESUBMITTABLE: Final = frozenset({400, 401, 409, 413, 429})
# Where somebody may want to go, by how the refused path begins; the names are those of the menu.
SECTIONS: Final = {
    "credentials": ("/credentials", "SMTP credentials"),
    "credits": ("/credits", "Credits"),
    "domains": ("/domains", "Domains"),
    "journal": ("/journal", "Audit log"),
    "keys": ("/keys", "API keys"),
    "login": ("/login", "Log in"),
    "messages": ("/messages", "Messages"),
    "profile": ("/profile", "Profile"),
    "suppressions": ("/suppressions", "Suppressions"),
    "team": ("/team", "Team"),
    "template": ("/templates", "Templates"),
    "templates": ("/templates", "Templates"),
    "webhook": ("/webhook", "Webhook"),
    "welcome": ("/welcome", "Get started"),
}


def error_renderer(
    site: sites.Site,
) -> Callable[[errors.PostroadError, routing.RefusedRequest], responses.EncodedResponse | None]:
    """How this dashboard shows refusals."""

    def render(error: errors.PostroadError, refused: routing.RefusedRequest) -> responses.EncodedResponse | None:
        if not _wants_page(refused.headers):
            return None
        if isinstance(error, errors.Unauthorized) and refused.path != b"/login":
            return responses.success(_to_login(site, refused), request_id=refused.request_id)
        values = {
            "title": _TITLES.get(error.status, "That does not work"),
            "message": _message(error, refused),
            "section": SECTIONS.get(refused.path.decode("latin-1").removeprefix("/").partition("/")[0]),
            "can_mend": refused.method == "POST" and error.status in _RESUBMITTABLE,
            "code": error.code,
            "request_id": refused.request_id,
            "retry_after": error.retry_after,
        }
        content = site.pages.render("error.html", values)
        answer = routing.Response(error.status, content, headers=site.headers, content_type=sites.HTML)
        status, fields, body = responses.success(answer, request_id=refused.request_id)
        return status, [*fields, *responses.refusal_fields(error)], body

    return render


def _wants_page(headers: routing.Headers) -> bool:
    try:
        return headers.get(requests.SCRIPTED_FORM_HEADER) is None and b"text/html" in (headers.get(b"accept") or b"")
    except errors.InvalidRequest:
        return False


def _message(error: errors.PostroadError, refused: routing.RefusedRequest) -> str:
    """The sentence; where it was written for programs, another one for people."""
    if isinstance(error, errors.NotFound) and error.message == routing.UNKNOWN_PATH:
        return "There is no page at this address."
    if isinstance(error, errors.MethodNotAllowed) and refused.method == "GET":
        return "This address only takes forms, so there is nothing to see at it. Nothing was done."
    return error.message


def _to_login(site: sites.Site, refused: routing.RefusedRequest) -> routing.Response:
    return routing.Response(303, headers=(("Location", f"/login{_login_query(refused)}"), *site.headers))


def _login_query(refused: routing.RefusedRequest) -> str:
    """What the log-in has to know: where to go then, or that a form was not done."""
    if refused.method not in ("GET", "HEAD"):
        return "?ended=true"
    query = f"?{refused.query.decode('latin-1')}" if refused.query else ""
    path = login.local_path(refused.path.decode("latin-1") + query)
    return "" if path == login.HOME or len(path) > MAX_NEXT_CHARACTERS else f"?next={parse.quote(path, safe='/')}"
