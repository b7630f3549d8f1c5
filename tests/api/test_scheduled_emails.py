"""`/emails` beyond the interface: messages that are sent later or not too late, moved and canceled, over HTTP."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from postroad import context
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services import usage_limits
from postroad.services.people import api_keys, credentials
from tests import accepted_mail
from tests.api.management import AccountClients
from tests.contexts import SECOND, Clock

API = Path(__file__).parents[2] / "docs" / "api.md"
HOUR = 3_600 * SECOND
BODY = {"from": "shop@example.com", "to": ["ada@example.net", "bob@example.org"], "subject": "Hello", "text": "Hi"}


async def send(mine: AccountClients, **options: object) -> dict[str, Any]:
    response = await mine.owner.post("/emails", json=BODY | options, headers={"Idempotency-Key": "order-1"})
    assert response.status_code == 202, response.text
    sent: dict[str, Any] = response.json()
    return sent


@pytest.fixture
async def sender(ctx: context.Context, mine: AccountClients) -> dict[str, str]:
    """The header of a credential that may only send."""
    await accepted_mail.allow_sending(ctx, mine.account_id)
    await credentials.create(ctx, mine.account_id, "shop")
    scopes = frozenset({callers.Permission.SEND})
    _, secret = await api_keys.create(ctx, mine.account_id, credential_id=None, name="x", scopes=scopes)
    return {"Authorization": f"Bearer {secret}"}


async def test_a_message_is_scheduled_moved_and_canceled(
    mine: AccountClients, sender: dict[str, str], clock: Clock
) -> None:
    send_at, moved_to = times.to_wire(clock.now + HOUR), times.to_wire(clock.now + 2 * HOUR)
    sent = await send(mine, send_at=send_at, expires_in=60)
    expires_at = times.to_wire(clock.now + HOUR + 60 * SECOND)
    path = f"/emails/{sent['id']}"
    listed = (await mine.owner.get("/v1/messages")).json()["messages"]
    details = (await mine.owner.get(f"/v1{path.replace('emails', 'messages')}")).json()
    for shown in (sent, (await mine.owner.get(path)).json(), *listed, details):
        assert (shown["status"], shown["send_at"], shown["expires_at"]) == ("queued", send_at, expires_at)

    moved = await mine.nobody.patch(path, json={"send_at": moved_to}, headers=sender)
    assert moved.status_code == 200, moved.text
    assert moved.json() == {
        "id": sent["id"],
        "status": "queued",
        "send_at": moved_to,
        "expires_at": times.to_wire(clock.now + 2 * HOUR + 60 * SECOND),
        "request_id": moved.headers["x-request-id"],
    }
    assert (await mine.owner.get(path)).json()["send_at"] == moved_to

    for _ in range(2):
        canceled = await mine.nobody.post(f"{path}/cancel", headers=sender)
        assert canceled.status_code == 200, canceled.text
        assert [(one["email"], one["canceled"], one["status"]) for one in canceled.json()["recipients"]] == [
            ("ada@example.net", True, "canceled"),
            ("bob@example.org", True, "canceled"),
        ]
    message = (await mine.owner.get(path)).json()
    assert (message["status"], message["billing_status"]) == ("failed", "released")
    refused = await mine.nobody.patch(path, json={"send_at": None}, headers=sender)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    # The response to the first request is stored, and stays what it was.
    assert await send(mine, send_at=send_at, expires_in=60) == sent


async def test_the_response_of_a_cancellation_is_the_documented_one(
    mine: AccountClients, sender: dict[str, str]
) -> None:
    (shown,) = re.findall(r"<!-- example: cancellation -->\n```json\n(.*?)\n```", API.read_text(), re.DOTALL)
    sent = await send(mine)
    real = (await mine.nobody.post(f"/emails/{sent['id']}/cancel", headers=sender)).json()
    example = json.loads(shown)
    assert list(example) == list(real)
    assert {tuple(one) for one in example["recipients"]} == {tuple(one) for one in real["recipients"]}


async def test_a_message_without_options_has_no_members_of_them(mine: AccountClients, sender: dict[str, str]) -> None:
    assert sender
    sent = await send(mine)
    listed = (await mine.owner.get("/v1/messages")).json()["messages"]
    for shown in (sent, (await mine.owner.get(f"/emails/{sent['id']}")).json(), *listed):
        assert not {"send_at", "expires_at"} & shown.keys()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"send_at": "soon"}, "send_at: not an RFC 3339 time"),
        ({"send_at": "2001-01-31T12:00:00Z"}, "send_at: 2001-01-31T12:00:00.000Z is in the past"),
        ({"expires_in": 59}, "expires_in: "),
        ({"expires_in": 432_001}, "expires_in: "),
    ],
)
async def test_bad_times_are_refused_by_name(
    mine: AccountClients, sender: dict[str, str], options: dict[str, object], message: str
) -> None:
    assert sender
    refused = await mine.owner.post("/emails", json=BODY | options, headers={"Idempotency-Key": "order-1"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
    assert refused.json()["error"].startswith(message), refused.text
    assert (await mine.owner.get("/v1/messages")).json()["messages"] == []


@pytest.mark.parametrize("body", [{}, {"send_at": "soon"}, {"send_at": 1}, {"send_at": None, "expires_in": 60}])
async def test_a_bad_move_changes_nothing(
    mine: AccountClients, sender: dict[str, str], clock: Clock, body: dict[str, object]
) -> None:
    sent = await send(mine, send_at=times.to_wire(clock.now + HOUR))
    refused = await mine.nobody.patch(f"/emails/{sent['id']}", json=body, headers=sender)
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
    assert (await mine.owner.get(f"/emails/{sent['id']}")).json()["send_at"] == sent["send_at"]


async def test_moves_and_cancellations_without_end_are_rate_limited(
    ctx: context.Context, mine: AccountClients, sender: dict[str, str], clock: Clock
) -> None:
    sent = await send(mine, send_at=times.to_wire(clock.now + HOUR))
    path = f"/emails/{sent['id']}"
    before = (await mine.owner.get(path)).json()["send_at"]
    for _ in range(usage_limits.REPEAT_RATE.burst):
        assert (await mine.nobody.patch(path, json={"send_at": before}, headers=sender)).status_code == 200
    moved_to = times.to_wire(clock.now + 2 * HOUR)
    refused = await mine.nobody.patch(path, json={"send_at": moved_to}, headers=sender)
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert int(refused.headers["retry-after"]) >= 1
    assert (await mine.owner.get(path)).json()["send_at"] == before
    statuses = [
        (await mine.nobody.post(f"{path}/cancel", headers=sender)).status_code
        for _ in range(ctx.settings.limits.request_burst)
    ]
    changes_left = ctx.settings.limits.request_burst - usage_limits.REPEAT_RATE.burst - 1
    assert statuses == [200] * changes_left + [429] * (len(statuses) - changes_left)


async def test_a_key_that_is_limited_to_domains_changes_no_other_mail(
    ctx: context.Context, mine: AccountClients, sender: dict[str, str], clock: Clock
) -> None:
    sent = await send(mine, send_at=times.to_wire(clock.now + HOUR))
    for domain, status in (("news.example.com", 403), ("example.com", 200)):
        limits = callers.KeyLimits(domains=(domain,))
        _, secret = await api_keys.create(
            ctx, mine.account_id, credential_id=None, name="x", scopes=frozenset({"send"}), limits=limits
        )
        headers = {"Authorization": f"Bearer {secret}"}
        path = f"/emails/{sent['id']}"
        moved = await mine.nobody.patch(path, json={"send_at": sent["send_at"]}, headers=headers)
        retried = await mine.nobody.post(f"/v1/messages/{sent['id']}/retry", headers=headers)
        canceled = await mine.nobody.post(f"{path}/cancel", headers=headers)
        # A scheduled message has nothing to retry.
        assert (moved.status_code, retried.status_code, canceled.status_code) == (
            status,
            409 if status == 200 else 403,
            status,
        )
