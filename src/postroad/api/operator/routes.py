"""The routes of `/v1/operator`, and their own OpenAPI document: that of the accounts' API does not have them."""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from postroad import build_version, context
from postroad.api import openapi
from postroad.api.operator import accounts, audit_log, destinations, health, jobs, people, queue, sources
from postroad.api.v1 import resource
from postroad.concurrency import caches
from postroad.model.people import callers
from postroad.services.operations import operator_state
from postroad.web import routing

OPERATION_IDS: Final[Mapping[str, str]] = {
    "GET /v1/operator/health": "getHealth",
    "GET /v1/operator/checks": "runChecks",
    "GET /v1/operator/queue": "getQueue",
    "GET /v1/operator/queue/recipients": "listQueuedRecipients",
    "POST /v1/operator/queue/retry": "retryQueue",
    "POST /v1/operator/queue/cancel": "cancelQueue",
    "POST /v1/operator/queue/expire": "expireQueue",
    "GET /v1/operator/queue/holds": "listHolds",
    "POST /v1/operator/queue/hold": "holdQueue",
    "POST /v1/operator/queue/release": "releaseQueue",
    "GET /v1/operator/providers": "listProviders",
    "GET /v1/operator/providers/{name}": "getProvider",
    "POST /v1/operator/providers/{name}/pause": "pauseProvider",
    "POST /v1/operator/providers/{name}/resume": "resumeProvider",
    "PUT /v1/operator/providers/{name}/limits": "setProviderLimits",
    "DELETE /v1/operator/providers/{name}/limits": "restoreProviderLimits",
    "GET /v1/operator/sources": "listSources",
    "GET /v1/operator/sources/{name}": "getSource",
    "POST /v1/operator/sources/{name}/pause": "pauseSource",
    "POST /v1/operator/sources/{name}/resume": "resumeSource",
    "POST /v1/operator/sources/{name}/drain": "drainSource",
    "POST /v1/operator/sources/{name}/warm-up": "startSourceWarmup",
    "DELETE /v1/operator/sources/{name}/warm-up": "endSourceWarmup",
    "GET /v1/operator/accounts": "listAccounts",
    "GET /v1/operator/accounts/{id}": "getAccount",
    "PATCH /v1/operator/accounts/{id}": "updateAccount",
    "POST /v1/operator/accounts/{id}/suspend": "suspendAccount",
    "POST /v1/operator/accounts/{id}/resume": "resumeAccount",
    "POST /v1/operator/accounts/{id}/credits": "addCredits",
    "POST /v1/operator/accounts/{id}/close": "closeAccount",
    "POST /v1/operator/accounts/{id}/reopen": "reopenAccount",
    "POST /v1/operator/accounts/{id}/recovery-link": "createRecoveryLink",
    "GET /v1/operator/operators": "listOperators",
    "POST /v1/operator/operators": "addOperator",
    "DELETE /v1/operator/operators/{id}": "removeOperator",
    "GET /v1/operator/audit-log": "listAuditLogEntries",
    "GET /v1/operator/jobs": "listJobs",
    "GET /v1/operator/jobs/{id}": "getJob",
    "POST /v1/operator/consistency-checks": "startConsistencyCheck",
}


ABOUT: Final = openapi.About(
    title="Postroad operator API",
    description=(
        "Manages the installation: all accounts, the queue, destinations and processes. Every request needs a login "
        "token of an operator, or an API key with the scope `operator`; others get 403 or 401, whatever they ask for."
    ),
    operation_ids=OPERATION_IDS,
    has_webhooks=False,
)


def described(state: operator_state.OperatorState) -> tuple[resource.OperatorRoute, ...]:
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


def build(state: operator_state.OperatorState) -> tuple[resource.OperatorRoute, ...]:
    """All routes, with the document, which is made when it is first asked for."""
    routes = described(state)

    def describe() -> bytes:
        return msgspec.json.encode(openapi.document(routes, version=build_version.current(), about=ABOUT))

    document = caches.LazyValue(lambda: asyncio.to_thread(describe))

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
            permission=callers.Permission.OPERATE,
            scope=callers.Scope.OPERATOR,
            responses={200: bytes},
        ),
    )
