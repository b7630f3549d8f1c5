"""An application on a real listener at a free port, with routes of the test's choice and a log that can be read.

`async with app_server.opened(routes) as opened:` gives `opened.address`, `opened.base_url`, `opened.client` (httpx,
signed in as a member) and `opened.lines` (what was logged). Callers are `Bearer member`, `Bearer reader` (a role that
may only read), `Bearer key` (may only send) and `Bearer other`, of another account; everyone else is unauthorized.
"""

import contextlib
import os
import ssl
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx
import structlog

from postroad import errors
from postroad.api import authentication
from postroad.concurrency import fairness
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.network.http import http_messages, http_server
from postroad.web import application as web_application
from postroad.web import request_reader, routing

REQUEST_ID = identifiers.pattern(identifiers.REQUEST)
ROLES = {
    "Bearer member": callers.EVERYTHING,
    "Bearer reader": callers.ROLE_PERMISSIONS[callers.Role.READ_ONLY],
    "Bearer key": frozenset({callers.Permission.SEND}),
    "Bearer other": callers.EVERYTHING,
}


@dataclass(frozen=True, slots=True)
class AppServer:
    """An application that is being served."""

    application: web_application.Application[Any]
    listener: http_server.HttpListener
    client: httpx.AsyncClient
    lines: list[dict[str, Any]]

    @property
    def address(self) -> tuple[str, int]:
        return self.listener.address

    @property
    def base_url(self) -> str:
        return f"http://{self.address[0]}:{self.address[1]}"


@dataclass(slots=True)
class CapturedLog:
    """A logger that keeps its lines."""

    kept: list[dict[str, Any]] = field(default_factory=list)

    def logger(self) -> structlog.typing.FilteringBoundLogger:
        def keep(_logger: object, level: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
            self.kept.append({"level": level, **event})
            raise structlog.DropEvent

        logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            None, processors=[keep], wrapper_class=structlog.make_filtering_bound_logger("debug")
        ).bind()
        return logger


async def authenticate(_context: object, headers: routing.Headers, /, *, client_address: str) -> callers.Caller:
    authorization = authentication.field(headers)
    if authorization not in ROLES:
        raise errors.Unauthorized("send a valid credential in the Authorization header")
    assert client_address == "127.0.0.1"
    return callers.Caller(
        account_id="acc_other" if authorization == "Bearer other" else "acc_test",
        credential_id="cred_test",
        scheme=callers.Scheme.TOKEN,
        permissions=ROLES[authorization],
    )


def require(
    who: callers.Caller, permission: callers.Permission, *, scope: callers.Scope | None, client_address: str
) -> None:
    del scope  # of API keys; these callers are users
    assert client_address == "127.0.0.1"
    if permission not in who.permissions:
        raise errors.Forbidden("this role may not do this")


@contextlib.asynccontextmanager
async def running(
    routes: Iterable[routing.Route[Any]],
    *,
    context: object = None,
    limits: http_messages.Limits | None = None,
    grace_seconds: float = 5,
    large_body_slots: request_reader.LargeBodySlots | None = None,
    delays: fairness.ResponseDelays | None = None,
) -> AsyncIterator[AppServer]:
    """Serve the routes until the block ends."""
    lines = CapturedLog()
    served: web_application.Application[Any] = web_application.Application(
        context,
        routes,
        authenticate=authenticate,
        require=require,
        clock=lambda: time.time_ns() // 1_000,
        entropy=os.urandom,
        log=lines.logger(),
        large_body_slots=large_body_slots,
        delays=delays,
    )
    # A short sweep only makes deadlines of tests end soon after they have passed.
    listener = http_server.HttpListener(served, refuse=served.refuse, limits=limits, sweep_seconds=0.02)
    await listener.start("127.0.0.1", 0)
    host, port = listener.address
    headers = {"Authorization": "Bearer member"}
    # Without the authorities of the system, which take longer to read than most tests.
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    async with httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=headers, timeout=30, verify=tls) as client:
        try:
            yield AppServer(served, listener, client, lines.kept)
        finally:
            await listener.stop(grace_seconds=grace_seconds)
