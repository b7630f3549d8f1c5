"""Error pages: the message, the request id and a link to go on; without a session, a redirect to the login.

Programs get the error object, and so do our scripts, which show it next to the form.
"""

from collections.abc import Callable
from typing import Final
from urllib import parse

from postroad import errors
from postroad.dashboard import confirm, login, requests
from postroad.dashboard import site as sites
from postroad.web import responses, routing

# Longer addresses are not worth returning to.
MAX_NEXT_CHARACTERS: Final = 1_000
_TITLES: Final = {
    400: "Invalid request",
    401: "Login failed",
    403: "Not allowed",
    404: "Not found",
    405: "Not found",
    409: "Conflict",
    413: "Request too large",
    429: "Too many requests",
    500: "Internal error",
    503: "Service unavailable",
}
_SAFE: Final = frozenset({"GET", "HEAD"})
# A form refused with one of these changed nothing and can be submitted again.
_RESUBMITTABLE: Final = frozenset({400, 401, 409, 413, 429})
# The page to return to, by the first segment of the path; the names are those of the menu.
SECTIONS: Final = {
    "audit-log": ("/audit-log", "Audit log"),
    "credentials": ("/credentials", "SMTP credentials"),
    "credits": ("/credits", "Credits"),
    "domains": ("/domains", "Domains"),
    "keys": ("/keys", "API keys"),
    "login": ("/login", "Log in"),
    "messages": ("/messages", "Messages"),
    "operator": ("/operator", "Operator console"),
    "profile": ("/profile", "Profile"),
    "sso": ("/login", "Log in"),
    "suppressions": ("/suppressions", "Suppressions"),
    "team": ("/team", "Team"),
    "template": ("/templates", "Templates"),
    "templates": ("/templates", "Templates"),
    "webhook": ("/webhook", "Webhooks"),
    "webhooks": ("/webhooks", "Webhooks"),
    "welcome": ("/welcome", "Get started"),
}


def error_renderer(
    site: sites.Site,
) -> Callable[[errors.PostroadError, routing.RefusedRequest], responses.EncodedResponse | None]:
    """The error renderer of this dashboard."""

    def render(error: errors.PostroadError, refused: routing.RefusedRequest) -> responses.EncodedResponse | None:
        if not _wants_page(refused.headers):
            return None
        if isinstance(error, errors.SecondFactorMissing):
            to_enrolment = routing.Response(303, headers=(("Location", "/profile/security"), *site.headers))
            return responses.success(to_enrolment, request_id=refused.request_id)
        if isinstance(error, errors.Unauthorized) and not refused.path.startswith(b"/login"):
            return responses.success(_to_login(site, refused), request_id=refused.request_id)
        if isinstance(error, errors.ConfirmationRequired) and refused.method in _SAFE:
            return responses.success(_to_confirm(site, refused), request_id=refused.request_id)
        values = {
            "title": _TITLES.get(error.status, "Request failed"),
            "message": _message(error, refused),
            "section": _section(site, error, refused),
            "can_resubmit": refused.method == "POST" and _can_resubmit(error),
            "can_confirm": isinstance(error, errors.ConfirmationRequired),
            "code": error.code,
            "request_id": refused.request_id,
            "retry_after": error.retry_after,
        }
        content = site.pages.render("error.html", values)
        answer = routing.Response(error.status, content, headers=site.headers, content_type=sites.HTML)
        status, fields, body = responses.success(answer, request_id=refused.request_id)
        return status, [*fields, *responses.refusal_fields(error)], body

    return render


def _section(site: sites.Site, error: errors.PostroadError, refused: routing.RefusedRequest) -> tuple[str, str] | None:
    """Where to go on; the console is not shown to those who may not open it, nor what is not there."""
    name = refused.path.decode("latin-1").removeprefix("/").partition("/")[0]
    is_closed = name == "operator" and isinstance(error, errors.Forbidden)
    return None if is_closed or (name == "credits" and not site.has_credits) else SECTIONS.get(name)


def _wants_page(headers: routing.Headers) -> bool:
    try:
        return headers.get(requests.SCRIPTED_FORM_HEADER) is None and b"text/html" in (headers.get(b"accept") or b"")
    except errors.InvalidRequest:
        return False


def _message(error: errors.PostroadError, refused: routing.RefusedRequest) -> str:
    """The message; routing errors are worded for API clients and get another one here."""
    if isinstance(error, errors.UnknownPath):
        return "There is no page at this address."
    if isinstance(error, errors.MethodNotAllowed) and refused.method == "GET":
        return "This address only accepts form submissions. Nothing was changed."
    return error.message


def _to_login(site: sites.Site, refused: routing.RefusedRequest) -> routing.Response:
    return routing.Response(303, headers=(("Location", f"/login{_login_query(refused)}"), *site.headers))


def _to_confirm(site: sites.Site, refused: routing.RefusedRequest) -> routing.Response:
    return routing.Response(303, headers=(("Location", f"{confirm.PATH}{_next_query(refused)}"), *site.headers))


def _can_resubmit(error: errors.PostroadError) -> bool:
    return error.status in _RESUBMITTABLE or isinstance(error, errors.ConfirmationRequired)


def _login_query(refused: routing.RefusedRequest) -> str:
    """The page to open after the login, or that a form was not processed."""
    return _next_query(refused) if refused.method in _SAFE else "?session_expired=true"


def _next_query(refused: routing.RefusedRequest) -> str:
    """The page to open afterwards."""
    query = f"?{refused.query.decode('latin-1')}" if refused.query else ""
    path = login.local_path(refused.path.decode("latin-1") + query)
    return "" if path == login.HOME or len(path) > MAX_NEXT_CHARACTERS else f"?next={parse.quote(path, safe='/')}"
