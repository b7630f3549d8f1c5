"""Every route of `/v1/operator` that changes something leaves its entry in an audit log.

The actions are held against the route table, so a new route without one fails here.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from postroad import config, context
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.operations import destinations, operator_state
from postroad.services.people import users
from postroad.services.queue import holds, sources
from tests import contexts
from tests.api import management
from tests.api.operator.conftest import ALL_ROUTES, Operator

REASON = {"reason": "why"}
# The action, and what is sent.
ACTIONS: Mapping[tuple[str, str], tuple[str, dict[str, Any] | None]] = {
    ("PATCH", "/v1/operator/accounts/{id}"): ("account.renamed", {"name": "New"}),
    ("POST", "/v1/operator/accounts/{id}/suspend"): ("account.suspended", REASON),
    ("POST", "/v1/operator/accounts/{id}/resume"): ("account.resumed", None),
    ("POST", "/v1/operator/accounts/{id}/credits"): ("credits.added", {"amount": 1}),
    ("POST", "/v1/operator/accounts/{id}/close"): ("account.closed", None),
    ("POST", "/v1/operator/accounts/{id}/reopen"): ("account.reopened", None),
    ("POST", "/v1/operator/accounts/{id}/recovery-link"): ("user.recovery_link_made", {"user_id": "of the account"}),
    ("POST", "/v1/operator/operators"): ("operator.added", {"email": "new@example.org"}),
    ("DELETE", "/v1/operator/operators/{id}"): ("operator.removed", None),
    ("POST", "/v1/operator/queue/retry"): ("queue.retried", {"all": True}),
    ("POST", "/v1/operator/queue/cancel"): ("queue.canceled", {"all": True}),
    ("POST", "/v1/operator/queue/expire"): ("queue.expired", {"all": True}),
    ("POST", "/v1/operator/queue/hold"): ("delivery.held", {"all": True, "reason": "why"}),
    ("POST", "/v1/operator/queue/release"): ("delivery.released", {"all": True}),
    ("POST", "/v1/operator/providers/{name}/pause"): ("provider.paused", REASON),
    ("POST", "/v1/operator/providers/{name}/resume"): ("provider.resumed", None),
    ("PUT", "/v1/operator/providers/{name}/limits"): ("provider.changed", {"connections": 1, "reason": "why"}),
    ("DELETE", "/v1/operator/providers/{name}/limits"): ("provider.restored", None),
    ("POST", "/v1/operator/sources/{name}/pause"): ("source.paused", REASON),
    ("POST", "/v1/operator/sources/{name}/resume"): ("source.resumed", {}),
    ("POST", "/v1/operator/sources/{name}/drain"): ("source.draining", REASON),
    ("POST", "/v1/operator/sources/{name}/warm-up"): ("source.warming", None),
    ("DELETE", "/v1/operator/sources/{name}/warm-up"): ("source.warm", None),
    ("POST", "/v1/operator/consistency-checks"): ("installation.checked", None),
}


def test_every_route_that_changes_something_has_an_action() -> None:
    changing = {(route.method, route.path) for route in ALL_ROUTES if route.method != "GET"}
    assert ACTIONS.keys() == changing


@pytest.mark.parametrize("method, path", ACTIONS)
async def test_a_change_is_logged_with_the_operator_as_actor(
    ctx: context.Context,
    clock: contexts.Clock,
    operator: Operator,
    theirs: management.AccountClients,
    state: operator_state.OperatorState,
    method: str,
    path: str,
) -> None:
    action, body = ACTIONS[method, path]
    other, _ = await users.create(
        ctx, theirs.account_id, email="ada@their.example", password=None, role=callers.Role.DEVELOPER
    )
    await users.add_operator(ctx, other.email)
    if path.endswith("/resume") and "accounts" in path:
        await account_registry.suspend(ctx, theirs.account_id, "x")
    if path.endswith("/reopen"):
        await account_registry.close(ctx, theirs.account_id)
    if path.endswith("/release"):
        await holds.hold(ctx, reason="x")
    if action in {"provider.restored", "provider.resumed"}:
        await destinations.pause(ctx, "google", reason="x", until=None)
    msgspec.structs.force_setattr(ctx.settings, "sources", (config.Source(name="google", address="127.0.0.1"),))
    if action == "source.resumed":
        await sources.drain(ctx, "google", reason="x")
    if action == "source.warm":
        await sources.warm_up(ctx, "google")
    clock.pass_seconds(1)
    began = ctx.clock()
    if path.endswith("/recovery-link"):
        body = {"user_id": other.id}
    names = {"accounts": theirs.account_id, "operators": other.id, "providers": "google"}
    asked = path.replace("{id}", names.get(path.split("/")[3], "")).replace("{name}", "google")
    answer = await operator.http.request(method, asked, json=body)
    assert answer.is_success, answer.text
    await state.jobs._flights._wait()
    await asyncio.sleep(0)
    found = await audit_log.search(ctx, None, audit_log.Filters(action=action, since=began), before=None, limit=9)
    assert found.rows
    assert {(one.actor, one.user_id) for one in found.rows} == {("operator", operator.user_id)}
    assert {one.request_id for one in found.rows} == {answer.headers["x-request-id"]}
