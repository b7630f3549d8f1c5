"""`/healthz` (the process is alive) and `/readyz` (the service accepts requests).

Both are public and give no detail that would help an attacker. Load balancers use `/readyz`. Process supervisors use
`/healthz`, which never checks the database: a restart does not repair it.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from postroad import errors
from postroad.services import context
from postroad.storage import access_version
from postroad.web import routing

# Load balancers wait a few seconds; a database that takes longer than this for one row is not ready.
STORE_TIMEOUT_SECONDS: Final = 2.0


class Alive(msgspec.Struct, frozen=True):
    """The process is alive."""

    status: Literal["ok"]
    request_id: str


class Ready(msgspec.Struct, frozen=True):
    """The service accepts requests."""

    status: Literal["ready"]
    request_id: str


def routes(is_draining: Callable[[], bool]) -> tuple[routing.Route[context.Context], ...]:
    """The routes. `is_draining` tells whether the service is stopping, or is about to stop."""

    async def ready(ctx: context.Context, request: routing.Request) -> routing.Response:
        if is_draining():
            raise errors.ServiceUnavailable("the service is stopping", retry_after=5)
        await _check_store(ctx)
        return routing.Response(200, Ready("ready", request.id))

    return (
        routing.Route(
            method="GET",
            path="/healthz",
            handler=alive,
            summary="Check that the process is alive",
            description="Asks nothing of the database: restart a process that does not answer.",
            tag="Health",
            permission=None,
            responses={200: Alive},
            is_probe=True,
        ),
        routing.Route(
            method="GET",
            path="/readyz",
            handler=ready,
            summary="Check that the service accepts requests",
            description="503 while the service is stopping, or when the database does not respond.",
            tag="Health",
            permission=None,
            responses={200: Ready},
            errors=(errors.ServiceUnavailable,),
            is_probe=True,
        ),
    )


async def alive(_ctx: context.Context, request: routing.Request) -> routing.Response:
    """The liveness response."""
    return routing.Response(200, Alive("ok", request.id))


async def _check_store(ctx: context.Context) -> None:
    try:
        async with asyncio.timeout(STORE_TIMEOUT_SECONDS):
            async with ctx.store.reading() as tx:
                await access_version.version(tx)
            # A database that can be read may refuse writes, for example when the disk is full. This probe runs only
            # after a failed write, and is the smallest write there is; otherwise it costs each process one lookup.
            await ctx.accept_commits.recover(access_version.bump)
    except (errors.TemporaryFailure, TimeoutError):
        raise errors.ServiceUnavailable("the database did not respond in time", retry_after=5) from None
