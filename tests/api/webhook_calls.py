"""Calls of `/v1/webhook` for tests: its paths, and what every answer has to look like."""

from typing import Any

import httpx

from postroad import context
from postroad.model.people import callers
from tests.api import management

WEBHOOK = "/v1/webhook"
ROTATE = "/v1/webhook/rotate-secret"
PING = "/v1/webhook/ping"
DELIVERIES = "/v1/webhook/deliveries"
# As much of a body as the log shows, in bytes.
SHOWN = 2048


def replay_of(delivery_id: str) -> str:
    """The path that replays a delivery."""
    return f"{DELIVERIES}/{delivery_id}/replay"


def check_refusal(response: httpx.Response, status: int, code: str) -> str:
    """The sentence of a refusal, which is this one."""
    refusal = response.json()
    assert (response.status_code, refusal["code"]) == (status, code), response.text
    assert refusal.keys() == {"error", "code", "request_id"}
    return str(refusal["error"])


def check_success(response: httpx.Response, status: int, *members: str) -> dict[str, Any]:
    """The body of a success, which has these members and the request's id."""
    assert response.status_code == status, response.text
    body: dict[str, Any] = response.json()
    assert set(body) == {*members, "request_id"}
    assert body["request_id"] == response.headers["x-request-id"]
    return body


async def logged_in(ctx: context.Context, clients: management.AccountClients) -> dict[str, str]:
    """The header of somebody who has just logged in, for those who come so late that a session is over."""
    return {"Authorization": f"Bearer {await management.token(ctx, clients.account_id, callers.Role.OWNER)}"}
