"""`/healthz` (the process is alive) and `/readyz` (it should get requests: the store takes mail, nothing stops).

Public, and without any detail that would help an attacker. Who balances load asks `/readyz`; who restarts processes
asks `/healthz`, which never looks at the store: a restart does not mend a database.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from postroad import errors
from postroad.services import context
from postroad.storage import access_version
from postroad.web import routing

# Load balancers wait a few seconds; a store that takes longer than this for one row is not ready.
STORE_TIMEOUT_SECONDS: Final = 2.0


class Alive(msgspec.Struct, frozen=True):
    """The process is alive."""

    status: Literal["ok"]
    request_id: str


class Ready(msgspec.Struct, frozen=True):
    """The service takes requests."""

    status: Literal["ready"]
    request_id: str


def routes(draining: Callable[[], bool]) -> tuple[routing.Route[context.Context], ...]:
    """The routes; `draining` tells whether the service is stopping."""

    async def ready(ctx: context.Context, request: routing.Request) -> routing.Response:
        if draining():
            raise errors.ServiceUnavailable("the service is stopping", retry_after=5)
        await _check_store(ctx)
        return routing.Response(200, Ready("ready", request.id))

    return (
        routing.Route(
            method="GET",
            path="/healthz",
            handler=alive,
            summary="Whether the process is alive",
            tag="Health",
            permission=None,
            responses={200: Alive},
        ),
        routing.Route(
            method="GET",
            path="/readyz",
            handler=ready,
            summary="Whether the service takes requests",
            tag="Health",
            permission=None,
            responses={200: Ready},
            errors=(errors.ServiceUnavailable,),
        ),
    )


async def alive(_ctx: context.Context, request: routing.Request) -> routing.Response:
    """Say so."""
    return routing.Response(200, Alive("ok", request.id))


async def _check_store(ctx: context.Context) -> None:
    try:
        async with asyncio.timeout(STORE_TIMEOUT_SECONDS):
            async with ctx.store.reading() as tx:
                await access_version.version(tx)
            # A store that can be read may refuse to write: a full disk, for one. Tried only after it did, and by the
            # smallest write there is: it costs each process a look-up.
            await ctx.accept_commits.recover(access_version.bump)
    except (errors.TemporaryFailure, TimeoutError):
        raise errors.ServiceUnavailable("the store does not answer in time", retry_after=5) from None
