"""Every surface of the service with its routes, and clients of it for each kind of credential.

The routes are read off the tables that the service itself is made of: a new one is walked from its first day.
"""

import base64
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import httpx
import structlog

from postroad import context
from postroad.api import extension_api
from postroad.api import routes as api_routes
from postroad.api.operator import routes as operator_routes
from postroad.api.v1 import inbox
from postroad.dashboard import application as dashboard
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.services.people import credentials, users
from postroad.web import application, routing
from tests import asgi, contexts
from tests.api import management
from tests.compat import compat_client
from tests.dashboard import browser_client
from tests.dashboard import test_every_route as pages

Route = routing.Route[context.Context]
API, PAGES = "api", "pages"
OPERATOR, SMTP, NOBODY = "operator", "SMTP credential", "nobody"
KEYS: Final = {f"key with {scope}": frozenset({scope}) for scope in callers.Scope}
# All kinds of credentials.
KINDS: Final = (*(role.value for role in callers.Role), OPERATOR, *KEYS, SMTP, NOBODY)
ENDLESS: Final = ("/live", "/operator/live")


@dataclass(frozen=True, slots=True)
class Surface:
    """Some routes, and the application that serves them; `key_fields` may have the key beside `Authorization`."""

    name: str
    routes: tuple[Route, ...]
    app: application.Application[context.Context]
    key_fields: tuple[str, ...] = ()
    takes_passwords: bool = True


@dataclass(frozen=True, slots=True)
class Credential:
    """Somebody or something that asks: header fields of the API, and the cookies of a browser."""

    kind: str
    authorization: str = ""
    cookies: Mapping[str, str] = field(default_factory=dict)

    @property
    def permissions(self) -> frozenset[callers.Permission]:
        """Of a person, as the table has them."""
        if self.kind == OPERATOR:
            return callers.ROLE_PERMISSIONS[callers.Role.READ_ONLY] | callers.OPERATOR_PERMISSIONS
        is_person = self.kind in callers.ROLE_PERMISSIONS
        return callers.ROLE_PERMISSIONS[callers.Role(self.kind)] if is_person else frozenset()

    def may(self, surface: Surface, route: Route) -> bool:
        """What the table says about a route."""
        if route.permission is None or route.permission in self.permissions:
            return True
        if surface.name == PAGES:
            return False
        if self.kind in KEYS:
            return route.key_scope in KEYS[self.kind]
        return self.kind == SMTP and surface.takes_passwords and route.permission in callers.PASSWORD_PERMISSIONS

    def headers(self, surface: Surface) -> dict[str, str]:
        """What it sends; a page refuses with the error object, because that is asked for."""
        fields = {"Accept": "application/json"}
        if self.authorization:
            fields["Authorization"] = self.authorization
            fields |= dict.fromkeys(surface.key_fields, self.authorization.split()[-1])
        if surface.name == PAGES and self.cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return fields


def build(ctx: context.Context, site: sites.Site) -> list[Surface]:
    """The surfaces of the core."""
    assert site.mail is not None
    api = (*api_routes.ROUTES, *inbox.routes(site.mail), *operator_routes.build(site.operator_state))
    shown = tuple(route for route in dashboard.routes(site) if pages.is_page(route) and route.path not in ENDLESS)
    return [Surface(API, api, management.serve(ctx, api)), Surface(PAGES, shown, browser_client.serve(ctx, site))]


def of_extension(ctx: context.Context, api: extension_api.HttpApi) -> Surface:
    """The API of an extension. One that has a field of its own for the key takes no password there."""
    log = structlog.wrap_logger(
        structlog.ReturnLogger(), wrapper_class=structlog.make_filtering_bound_logger("critical")
    )
    app = extension_api.build_application(ctx, api, log=log)
    fields = tuple(one.decode() for one in api.own_headers)
    return Surface(api.service, api.prefixed, app, key_fields=fields, takes_passwords=not fields)


@contextlib.asynccontextmanager
async def opened(surface: Surface) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a surface, without a credential."""
    transport = httpx.ASGITransport(asgi.of(surface.app), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=browser_client.BASE_URL, timeout=60) as client:
        yield client


async def new_credential(ctx: context.Context, surfaces: Sequence[Surface], account_id: str, kind: str) -> Credential:
    """A credential of this kind in the account; people log in."""
    if kind == NOBODY:
        return Credential(kind)
    if kind == SMTP:
        credential, password = await credentials.create(ctx, account_id, "x")
        pair = base64.b64encode(f"{credential.username}:{password}".encode()).decode()
        return Credential(kind, f"Basic {pair}")
    if kind in KEYS:
        return Credential(kind, f"Bearer {await compat_client.new_key(ctx, account_id, KEYS[kind])}")
    role = callers.Role.READ_ONLY if kind == OPERATOR else callers.Role(kind)
    user = await browser_client.person(ctx, account_id, f"{kind}@mine.example", role)
    if kind == OPERATOR:
        await users.add_operator(ctx, user.email)
    return await log_in(surfaces, user.email, kind)


async def log_in(surfaces: Sequence[Surface], email: str, kind: str) -> Credential:
    """What somebody has who logged in to both, over the API and with a browser."""
    given = {"email": email, "password": contexts.PASSWORD}
    (api,) = [one for one in surfaces if one.name == API]
    (dashboard_pages,) = [one for one in surfaces if one.name == PAGES]
    async with opened(api) as client, opened(dashboard_pages) as browser:
        answer = await client.post("/v1/auth/login", json=given)
        assert (await browser.post("/login", data=given)).status_code == 303
        return Credential(kind, f"Bearer {answer.json()['token']}", dict(browser.cookies))
