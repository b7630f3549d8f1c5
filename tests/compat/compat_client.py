"""A client of one compatible API, and API keys for it. Requests go to the application itself, without a socket."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import httpx
import structlog

from postroad import context, extensions
from postroad.api import extension_api
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.network.http import http_server
from postroad.services.people import api_keys, credentials
from postroad.web import path_switch
from tests import asgi

EVERY_SCOPE = frozenset(callers.Scope)


class CountedThreads:
    """Does the work at once, and knows for whom."""

    def __init__(self) -> None:
        self.parties: list[Any] = []

    async def run(self, party: object, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the work returns
        self.parties.append(party)
        return work()


@contextlib.asynccontextmanager
async def opened(
    ctx: context.Context, api: extension_api.HttpApi, headers: Mapping[str, str] | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the base URL of the API."""
    log = structlog.wrap_logger(
        structlog.ReturnLogger(), wrapper_class=structlog.make_filtering_bound_logger("critical")
    )
    app = extension_api.build_application(ctx, api, log=log)
    url = f"http://postroad.test{api.prefix}"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi.of(app)), base_url=url, headers=headers) as client:
        yield client


async def new_key(
    ctx: context.Context,
    account_id: str,
    scopes: frozenset[str] = EVERY_SCOPE,
    *,
    mode: statuses.Mode = statuses.Mode.LIVE,
    limits: callers.KeyLimits = callers.NO_LIMITS,
) -> str:
    """The secret of a new API key."""
    await credentials.create(ctx, account_id, name="compat")
    _, secret = await api_keys.create(
        ctx, account_id, credential_id=None, name="compat", scopes=scopes, mode=mode, limits=limits
    )
    return secret


@contextlib.asynccontextmanager
async def listening(ctx: context.Context) -> AsyncIterator[str]:
    """The base URL of a real listener for all compatible APIs, for packages that bring their own client."""
    log = structlog.wrap_logger(
        structlog.ReturnLogger(), wrapper_class=structlog.make_filtering_bound_logger("critical")
    )
    apps = {
        api.prefix: extension_api.build_application(ctx, api, log=log)
        for api in extensions.parts("apis", extension_api.HttpApi)
    }
    first = next(iter(apps.values()))
    marks = {name: api.prefix for api in extensions.parts("apis", extension_api.HttpApi) for name in api.own_headers}
    switch = path_switch.PathPrefixes(apps, first, headers=marks)
    listener = http_server.HttpListener(switch, refuse=first.refuse)
    await listener.start("127.0.0.1", 0)
    try:
        yield "http://{}:{}".format(*listener.address)
    finally:
        await listener.stop(grace_seconds=5)
