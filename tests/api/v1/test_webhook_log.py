"""`/v1/webhook/deliveries`: the log in pages, and sending again what was sent."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from postroad import config, context
from postroad.model.delivery import throttle
from postroad.model.units import identifiers
from postroad.services import usage_limits
from tests import contexts, webhook_rows, webhook_server
from tests.api.management import AccountClients
from tests.api.webhook_calls import (
    DELIVERIES,
    SHOWN,
    WEBHOOK,
    check_refusal,
    check_success,
    replay_of,
)
from tests.webhook_rows import URL, State

# Long after the end of every wait, on a machine that is busy with other tests.
TIMEOUT_SECONDS = 600.0
LOOK_SECONDS = 0.01


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def settings(database_url: str, authority: trustme.CA) -> Iterator[config.Settings]:
    with webhook_server.authority_file(authority) as ca_file:
        yield webhook_rows.settings(database_url, ca_file=ca_file)


async def test_the_log_is_read_in_parts_and_by_message(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    assert check_success(await mine.reader.get(DELIVERIES), 200, "deliveries", "next_before")["deliveries"] == []
    await mine.owner.put(WEBHOOK, json={"url": URL})
    made = []
    for number in range(26):
        made.append((await webhook_rows.put(ctx, mine.account_id, message_id=f"em_{number % 2:028x}")).id)
        clock.pass_seconds(1)
    made.reverse()

    async def listed(**query: str | int) -> list[str]:
        body = check_success(await mine.reader.get(DELIVERIES, params=query), 200, "deliveries", "next_before")
        return [delivery["id"] for delivery in body["deliveries"]]

    assert await listed() == made[:25]
    assert await listed(limit=100) == made
    assert await listed(limit=3, before=made[4]) == made[5:8]
    assert await listed(limit=2, message_id="em_" + "0" * 28) == made[1:5:2]
    assert await listed(limit=3, status="pending") == made[:3]
    assert await listed(status="failed") == []
    assert await listed(message_id="em_" + "f" * 28) == await listed(message_id="nonsense") == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=x",
        "before=",
        "before=em_1",
        "before=%00",
        "message_id=",
        "status=lost",
        "cursor=x",
    ],
)
async def test_a_part_that_cannot_be_is_refused(mine: AccountClients, query: str) -> None:
    check_refusal(await mine.owner.get(f"{DELIVERIES}?{query}"), 400, "invalid_request")


async def test_a_pending_delivery_says_when_it_is_due(ctx: context.Context, mine: AccountClients) -> None:
    await mine.owner.put(WEBHOOK, json={"url": URL})
    due_at = ctx.clock() + 300 * contexts.SECOND
    delivery = await webhook_rows.put(ctx, mine.account_id, state=State.WAITING, attempt_count=1, due_at=due_at)
    await webhook_rows.put_attempt(ctx, delivery, 1, status_code=None, response_body=None, error="timeout: too slow")
    (shown,) = (await mine.reader.get(DELIVERIES)).json()["deliveries"]
    assert (shown["status"], shown["next_attempt_at"]) == ("pending", "2027-01-15T08:05:00.000Z")
    assert (shown["event_type"], shown["message_id"]) == ("email.delivered", webhook_rows.MESSAGE_ID)
    assert shown["attempts"] == [
        {
            "at": "2027-01-15T08:00:00.000Z",
            "status_code": None,
            "duration_ms": 12.345,
            "response_body": None,
            "error": "timeout: too slow",
        }
    ]


@pytest.mark.parametrize("ahead", range(4))
async def test_a_long_body_is_shown_up_to_a_whole_character(
    ctx: context.Context, mine: AccountClients, ahead: int
) -> None:
    await mine.owner.put(WEBHOOK, json={"url": URL})
    body = ("x" * ahead + "🦉" * SHOWN).encode()
    await webhook_rows.put(ctx, mine.account_id, body=body)
    (shown,) = (await mine.reader.get(DELIVERIES)).json()["deliveries"]
    cut = shown["request_body"].encode()
    assert body.startswith(cut)
    assert SHOWN - 4 < len(cut) <= SHOWN


async def test_a_delivery_is_replayed_as_a_new_one(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    await mine.owner.put(WEBHOOK, json={"url": URL})
    for state in (State.SUCCEEDED, State.FAILED):
        old = await webhook_rows.put_ended(ctx, mine.account_id, state)
        clock.pass_seconds(1)
        again = check_success(await mine.owner.post(replay_of(old.id)), 202, "delivery")["delivery"]
        assert identifiers.is_identifier(again["id"], identifiers.WEBHOOK_DELIVERY)
        assert (again["replay_of"], again["event_id"]) == (old.id, old.event_id)
        assert again["request_body"] == old.body.decode()
        assert (again["status"], again["attempt_count"], again["attempts"]) == ("pending", 0, [])
        assert (await mine.reader.get(DELIVERIES, params={"limit": 1})).json()["deliveries"] == [again]


async def attempts(clients: AccountClients, delivery_id: str, *, count: int) -> list[dict[str, Any]]:
    """The attempts of a delivery, as soon as there are so many."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            listed = (await clients.owner.get(DELIVERIES)).json()["deliveries"]
            (found,) = [delivery["attempts"] for delivery in listed if delivery["id"] == delivery_id]
            if len(found) >= count:
                return list(found)
            await asyncio.sleep(LOOK_SECONDS)


async def test_one_delivery_is_shown(ctx: context.Context, mine: AccountClients) -> None:
    await mine.owner.put(WEBHOOK, json={"url": URL})
    made = await webhook_rows.put_ended(ctx, mine.account_id)
    shown = check_success(await mine.reader.get(f"{DELIVERIES}/{made.id}"), 200, "delivery")["delivery"]
    assert [shown] == (await mine.reader.get(DELIVERIES)).json()["deliveries"]


async def test_what_failed_in_a_period_is_replayed(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    period = {"after": "2027-01-15T08:00:00Z", "before": "2027-01-15T09:00:01+01:00"}
    check_refusal(await mine.owner.post(f"{DELIVERIES}/replay", json=period), 404, "not_found")
    await mine.owner.put(WEBHOOK, json={"url": URL})
    first = await webhook_rows.put_ended(ctx, mine.account_id, State.FAILED)
    clock.pass_seconds(1)
    await webhook_rows.put_ended(ctx, mine.account_id, State.FAILED)
    clock.pass_seconds(1)
    response = await mine.owner.post(f"{DELIVERIES}/replay", json=period)
    done = check_success(response, 202, "replayed", "has_more", "next_after")
    assert (done["replayed"], done["has_more"], done["next_after"]) == (1, False, None)
    (again,) = (await mine.reader.get(DELIVERIES, params={"status": "pending"})).json()["deliveries"]
    assert (again["replay_of"], again["request_body"]) == (first.id, first.body.decode())
    check_refusal(await mine.reader.post(f"{DELIVERIES}/replay", json=period), 403, "forbidden")
    await mine.owner.put(WEBHOOK, json={"url": URL, "enabled": False})
    check_refusal(await mine.owner.post(f"{DELIVERIES}/replay", json=period), 409, "conflict")


@pytest.mark.parametrize(
    "period",
    [
        {},
        {"after": "2027-01-15T08:00:00Z"},
        {"after": "yesterday", "before": "2027-01-15T08:00:00Z"},
        {"after": "2027-01-15T08:00:00Z", "before": "2027-01-15T08:00:00Z"},
        {"after": 1, "before": 2},
    ],
)
async def test_a_period_that_cannot_be_is_refused(mine: AccountClients, period: dict[str, object]) -> None:
    await mine.owner.put(WEBHOOK, json={"url": URL})
    check_refusal(await mine.owner.post(f"{DELIVERIES}/replay", json=period), 400, "invalid_request")


async def test_replays_of_one_delivery_and_of_a_period_share_a_rate(
    ctx: context.Context,
    mine: AccountClients,
    clock: contexts.Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(usage_limits, "REPEAT_RATE", throttle.RateLimit(rate=1, burst=2))
    period = {"after": "2027-01-15T08:00:00Z", "before": "2027-01-15T09:00:00Z"}
    check_refusal(await mine.owner.post(f"{DELIVERIES}/replay", json=period), 404, "not_found")  # does not count
    await mine.owner.put(WEBHOOK, json={"url": URL})
    old = await webhook_rows.put_ended(ctx, mine.account_id)
    for path, body in ((replay_of(old.id), None), (f"{DELIVERIES}/replay", period)):
        assert (await mine.owner.post(path, json=body)).status_code == 202
    for path, body in ((replay_of(old.id), None), (f"{DELIVERIES}/replay", period)):
        refused = await mine.owner.post(path, json=body)
        sentence = check_refusal(refused, 429, "rate_limited")
        assert sentence == "more than 1 replays per second; wait for Retry-After seconds"
        assert refused.headers["retry-after"] == "1"
    clock.pass_seconds(1)
    assert (await mine.owner.post(replay_of(old.id))).status_code == 202
