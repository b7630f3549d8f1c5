"""The management routes as two accounts see them: real services on a real store, called through the application.

`mine` and `theirs` are accounts of one service. Each has a client for each kind of caller: `owner` and `reader`
are people with tokens, `nobody` sends no credential.
"""

import contextlib
import os
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

import httpx
import pytest_asyncio
import structlog

from postroad import context
from postroad.api import authentication, monitoring
from postroad.api import routes as api_routes
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.services.accounts import account_registry as accounts
from postroad.services.people import authentication as caller_authentication
from postroad.services.people import logins, step_up
from postroad.storage.people import users
from postroad.web import application, routing
from tests import asgi


@dataclass(slots=True)
class Switch:
    """Whether the service is stopping."""

    draining: bool = False

    def __call__(self) -> bool:
        return self.draining


@dataclass(frozen=True, slots=True)
class AccountClients:
    """One account, and clients for those who call for it."""

    account_id: str
    owner: httpx.AsyncClient
    reader: httpx.AsyncClient
    nobody: httpx.AsyncClient


async def token(ctx: context.Context, account_id: str, role: callers.Role) -> str:
    """A token of a new user, whose password nobody knows."""
    now = ctx.clock()
    user_id = ctx.new_id(identifiers.USER, now=now)
    user = users.User(user_id, account_id, f"{user_id}@example.org", role, now, None, now)
    async with ctx.store.transaction() as tx:
        await users.insert(tx, user, email_key=user.email)
        user = await logins.give_new(ctx, tx, user, password_hash=None)
    return (await logins.issue_token(ctx, user)).token


@contextlib.asynccontextmanager
async def open_account(
    ctx: context.Context, served: application.Application[context.Context], name: str
) -> AsyncIterator[AccountClients]:
    """A new account with its clients."""
    account = await accounts.create(ctx, name)
    async with contextlib.AsyncExitStack() as stack:

        async def client(headers: dict[str, str]) -> httpx.AsyncClient:
            transport = httpx.ASGITransport(asgi.of(served))
            return await stack.enter_async_context(
                httpx.AsyncClient(transport=transport, base_url="http://postroad.test", headers=headers, timeout=60)
            )

        async def person(role: callers.Role) -> httpx.AsyncClient:
            return await client({"Authorization": f"Bearer {await token(ctx, account.id, role)}"})

        yield AccountClients(
            account.id,
            owner=await person(callers.Role.OWNER),
            reader=await person(callers.Role.READ_ONLY),
            nobody=await client({}),
        )


@pytest_asyncio.fixture
async def switch() -> Switch:
    return Switch()


def serve(
    ctx: context.Context, routes: Iterable[routing.Route[context.Context]]
) -> application.Application[context.Context]:
    return application.Application(
        ctx,
        routes,
        authenticate=authentication.authenticate,
        require=caller_authentication.require,
        bind_actor=context.acting_as,
        confirmation=application.Confirmation(authentication.STEP_UP_ROUTES, step_up.refuse_unconfirmed),
        # Real time: requests of one test have ids of their own although the clock of the context stands still.
        clock=lambda: time.time_ns() // 1_000,
        entropy=os.urandom,
        log=structlog.wrap_logger(
            structlog.ReturnLogger(), wrapper_class=structlog.make_filtering_bound_logger("critical")
        ),
        note=ctx.request_log.note,
    )


@pytest_asyncio.fixture
async def served(ctx: context.Context, switch: Switch) -> application.Application[context.Context]:
    """The whole API."""
    return serve(ctx, (*api_routes.ROUTES, *monitoring.health_routes(switch)))


@pytest_asyncio.fixture
async def mine(ctx: context.Context, served: application.Application[context.Context]) -> AsyncIterator[AccountClients]:
    async with open_account(ctx, served, "Mine") as clients:
        yield clients


@pytest_asyncio.fixture
async def theirs(
    ctx: context.Context, served: application.Application[context.Context]
) -> AsyncIterator[AccountClients]:
    async with open_account(ctx, served, "Theirs") as clients:
        yield clients
