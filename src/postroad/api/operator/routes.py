"""The routes of `/v1/operator`, and their own OpenAPI document: that of the accounts' API does not have them."""

import asyncio
from typing import Final

import msgspec

from postroad import build_version
from postroad.api import openapi
from postroad.api.operator import (
    accounts,
    audit_log,
    destinations,
    health,
    jobs,
    operation_ids,
    operator_resource,
    people,
    queue,
    sources,
)
from postroad.concurrency import lazy_value
from postroad.model import caller
from postroad.services import context, operator_state
from postroad.web import routing

ABOUT: Final = openapi.About(
    title="Postroad operator API",
    description=(
        "Manages the installation: all accounts, the queue, destinations and processes. Every request needs a login "
        "token of an operator, or an API key with the scope `operator`; others get 403 or 401, whatever they ask for."
    ),
    operation_ids=operation_ids.OPERATION_IDS,
    has_webhooks=False,
)


def described(state: operator_state.OperatorState) -> tuple[operator_resource.Route, ...]:
    """The routes that the document describes."""
    return (
        *health.routes(state.checks),
        *queue.routes(state.queue, state.jobs),
        *destinations.routes(state.queue),
        *sources.ROUTES,
        *accounts.ROUTES,
        *people.ROUTES,
        *audit_log.ROUTES,
        *jobs.routes(state.jobs),
    )


def build(state: operator_state.OperatorState) -> tuple[operator_resource.Route, ...]:
    """All routes, with the document, which is made when it is first asked for."""
    routes = described(state)

    def describe() -> bytes:
        return msgspec.json.encode(openapi.document(routes, version=build_version.current(), about=ABOUT))

    document = lazy_value.LazyValue(lambda: asyncio.to_thread(describe))

    async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
        del ctx, request
        return routing.Response(200, await document.get())

    return (
        *routes,
        routing.Route(
            method="GET",
            path="/v1/operator/openapi.json",
            handler=show,
            summary="The OpenAPI document of the operator API",
            tag="Documentation",
            permission=caller.Permission.OPERATE,
            scope=caller.Scope.OPERATOR,
            responses={200: bytes},
        ),
    )
