"""Every route of the HTTP API, with what a customer would send to it: for cases that hold for all of them.

The routes are read off the tables that the API itself is made of, and their examples off the walks of the API and of
the dashboard: a new route is walked from its first day. `ask` sends to one of them as its customer would, over a real
connection.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import httpx
import msgspec

from postroad import context
from postroad.api import routes as api_routes
from postroad.dashboard import application
from postroad.model.people import callers
from postroad.web import routing
from tests.api.v1 import test_tenancy as api
from tests.dashboard import browser_client
from tests.dashboard import test_every_route as pages
from tests.security.tenants import PASSWORD, Tenant
from tests.security.whole_service import WholeService

Route = routing.Route[context.Context]
# What the walk of the management routes does not send.
BODIES: Final[dict[tuple[str, str], dict[str, Any]]] = {
    **api.BODIES,
    ("POST", "/emails"): {"from": "a@b.example", "to": "c@example.net", "subject": "x", "text": "x"},
    ("POST", "/emails/batch"): {
        "emails": [{"from": "a@b.example", "to": "c@example.net", "subject": "x", "text": "x"}]
    },
    ("PATCH", "/emails/{id}"): {"send_at": None},
    ("POST", "/v1/auth/login"): {"email": "nobody@example.net", "password": "x"},
    ("POST", "/v1/auth/confirm"): {"password": "x"},
    ("POST", "/v1/auth/password"): {"current_password": "x", "new_password": "another long sentence"},
}
KINDS: Final = {path: kind for (_, path), kind in api.NAMED.items()} | {
    "/emails/{id}": "message",
    "/emails/{id}/cancel": "message",
    "/v1/auth/sessions/{id}": "session",
    "/v1/inbound/attachments/{token}": "link",
    "/v1/event-schemas/{type}": "event_type",
    "/v1/templates/{alias}": "template",
}
# What is nobody's own.
COMMON: Final = {"event_type": "email.bounced", "link": "no-such-link"}
# It never ends by itself.
ENDLESS: Final = ("/live",)


@dataclass(frozen=True, slots=True)
class RouteCall:
    """One route, as a customer meets it."""

    route: Route
    is_page: bool
    path: str

    @property
    def takes_json(self) -> bool:
        return self.route.body is not None and self.route.body_type == routing.JSON

    @property
    def parameters(self) -> list[str]:
        """The names of what its address may ask for."""
        return [field.encode_name for field in msgspec.structs.fields(self.route.query)] if self.route.query else []

    @property
    def members(self) -> list[str]:
        """The names of what its body may hold."""
        body = self.route.body
        if body is None or not issubclass(body, msgspec.Struct):
            return []
        return [field.encode_name for field in msgspec.structs.fields(body)]

    def form(self, tenant: Tenant) -> dict[str, str]:
        """What a page's form would send; with the CSRF token of the session."""
        return {**pages.filled(self.route, tenant.things), "csrf_token": tenant.csrf_token}

    def fields(self, tenant: Tenant) -> list[str]:
        """The lines of a head that say who asks, and how refusals are to look."""
        if not self.is_page:
            return [f"Authorization: Bearer {tenant.token}", "Idempotency-Key: walked"]
        jar = "; ".join(f"{cookie.name}={cookie.value}" for cookie in tenant.browser.cookies.jar)
        return [f"Cookie: {jar}", "Accept: application/json"]

    async def ask(self, tenant: Tenant, **more: Any) -> httpx.Response:
        """Send to it; a page refuses with the error object, because that was asked for."""
        if not self.is_page:
            return await tenant.ask(self.route.method, self.path, **more)
        headers = {"Accept": "application/json", **more.pop("headers", {})}
        return await tenant.browser.request(self.route.method, self.path, headers=headers, **more)


def route_calls(service: WholeService, tenant: Tenant) -> list[RouteCall]:
    """All of them, named after the customer's own things."""
    site = browser_client.build_site(service.ctx.settings)
    things = COMMON | tenant.things
    # Operators only: tests/dashboard/operator.
    customers = [route for route in application.routes(site) if route.permission is not callers.Permission.OPERATE]
    shown = [route for route in customers if pages.is_page(route) and route.path not in ENDLESS]
    return [
        *(RouteCall(route, is_page=False, path=_path(route, things)) for route in api_routes.ROUTES),
        *(RouteCall(route, is_page=True, path=pages.address(route, things)) for route in shown),
    ]


def bodies(walked: Iterable[RouteCall]) -> list[RouteCall]:
    """Those that take something."""
    return [stop for stop in walked if stop.route.body is not None]


def is_refusal(answer: httpx.Response, *statuses: int) -> bool:
    """Whether an answer is the error object with one of these statuses, its id in the header, and nothing of ours."""
    if answer.status_code not in statuses:
        return False
    reported = answer.json()
    assert reported.keys() == {"error", "code", "request_id"}
    assert reported["request_id"] == answer.headers["x-request-id"]
    assert "Traceback" not in answer.text
    assert PASSWORD not in answer.text
    return True


def _path(route: Route, things: dict[str, str]) -> str:
    path = route.path
    if not (parameters := routing.parameters(path)):
        return path
    # What belongs to something has two names.
    for name, thing in zip(parameters, things[KINDS[path]].split("/"), strict=True):
        path = path.replace(f"{{{name}}}", thing)
    return path


def at(stop: RouteCall, name: str) -> RouteCall:
    """The same route with another name in its path."""
    path = stop.route.path
    names = name.split("/") if KINDS.get(path) == "delivery_of_webhook" else [name]
    for place, parameter in enumerate(routing.parameters(path)):
        path = path.replace(f"{{{parameter}}}", names[place] if place < len(names) else "0")
    return dataclasses.replace(stop, path=path)
