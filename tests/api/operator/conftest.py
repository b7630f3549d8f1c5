"""The operator API on both engines, as an operator and as users of accounts call it."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest_asyncio

from postroad import context
from postroad.api.operator import routes
from postroad.model.people import callers
from postroad.services.operations import operator_jobs, operator_state
from postroad.services.people import users
from postroad.web import application
from tests import asgi, contexts
from tests.api import app_server, management


def new_state(lines: app_server.CapturedLog) -> operator_state.OperatorState:
    """What the routes of a process share."""
    return operator_state.OperatorState(operator_jobs.Jobs(lines.logger()))


# For tests that only look at the routes.
ALL_ROUTES = routes.build(new_state(app_server.CapturedLog()))
Client = Callable[[str], Awaitable[httpx.AsyncClient]]


@dataclasses.dataclass(frozen=True, slots=True)
class Operator:
    """A client with the login of an operator, whose account is that of `mine`."""

    http: httpx.AsyncClient
    user_id: str
    account_id: str


@pytest_asyncio.fixture
async def lines() -> app_server.CapturedLog:
    """What is logged."""
    return app_server.CapturedLog()


@pytest_asyncio.fixture
async def state(lines: app_server.CapturedLog) -> operator_state.OperatorState:
    return new_state(lines)


@pytest_asyncio.fixture
async def served(ctx: context.Context, state: operator_state.OperatorState) -> application.Application[context.Context]:
    return management.serve(ctx, routes.build(state))


@pytest_asyncio.fixture
async def client(served: application.Application[context.Context]) -> AsyncIterator[Client]:
    """Clients with a value of `Authorization`."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(authorization: str) -> httpx.AsyncClient:
            transport = httpx.ASGITransport(asgi.of(served))
            headers = {"Authorization": authorization}
            return await stack.enter_async_context(
                httpx.AsyncClient(transport=transport, base_url="http://postroad.test", headers=headers, timeout=60)
            )

        yield make


@pytest_asyncio.fixture
async def operator(
    ctx: context.Context, clock: contexts.Clock, mine: management.AccountClients, client: Client
) -> Operator:
    before = {one.id for one in await users.of_account(ctx, mine.account_id)}
    http = await client(f"Bearer {await management.token(ctx, mine.account_id, callers.Role.READ_ONLY)}")
    (user,) = [one for one in await users.of_account(ctx, mine.account_id) if one.id not in before]
    await users.add_operator(ctx, user.email)
    clock.pass_seconds(1)  # other accounts are younger
    return Operator(http, user.id, mine.account_id)
