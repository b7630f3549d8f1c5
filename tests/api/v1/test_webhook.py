"""`/v1/webhook`: saved, read, rotated, pinged and removed; a secret is shown once and nowhere else."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from postroad import config, context
from tests import contexts, webhook_rows, webhook_server
from tests.api.management import AccountClients
from tests.api.webhook_calls import (
    DELIVERIES,
    PING,
    ROTATE,
    SHOWN,
    WEBHOOK,
    check_refusal,
    check_success,
    replay_of,
)
from tests.webhook_rows import URL

ALL = ["email.delivered", "email.bounced", "email.failed"]


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def settings(database_url: str, authority: trustme.CA) -> Iterator[config.Settings]:
    with webhook_server.authority_file(authority) as ca_file:
        yield webhook_rows.settings(database_url, ca_file=ca_file)


async def test_an_endpoint_is_made_with_a_secret_that_is_never_shown_again(mine: AccountClients) -> None:
    assert check_success(await mine.reader.get(WEBHOOK), 200, "webhook")["webhook"] is None
    made = check_success(await mine.owner.put(WEBHOOK, json={"url": URL}), 200, "webhook", "secret")
    secret = made["secret"]
    assert secret.startswith("whsec_")
    assert made["webhook"] == {
        "url": URL,
        "events": ALL,
        "enabled": True,
        "created_at": "2027-01-15T08:00:00.000Z",
        "updated_at": "2027-01-15T08:00:00.000Z",
        "secret_hint": f"whsec_…{secret[-4:]}",
    }
    shown = await mine.reader.get(WEBHOOK)
    assert check_success(shown, 200, "webhook")["webhook"] == made["webhook"]
    again = await mine.owner.put(WEBHOOK, json={"url": URL})
    check_success(again, 200, "webhook")
    for response in (shown, again, await mine.owner.get(DELIVERIES)):
        assert secret not in response.text


async def test_saving_keeps_what_is_left_out(mine: AccountClients, clock: contexts.Clock) -> None:
    body = {"url": URL, "events": ["email.failed", "email.bounced", "email.failed"], "enabled": False}
    made = check_success(await mine.owner.put(WEBHOOK, json=body), 200, "webhook", "secret")["webhook"]
    assert (made["events"], made["enabled"]) == (["email.bounced", "email.failed"], False)
    clock.pass_seconds(60)
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"events": None, "enabled": None}, {}),
        ({"enabled": True}, {"enabled": True}),
        ({"events": []}, {"enabled": True, "events": ALL}),
        ({"events": ["email.failed"], "enabled": False}, {"enabled": False, "events": ["email.failed"]}),
    ]
    for rest, changed in cases:
        saved = check_success(await mine.owner.put(WEBHOOK, json={"url": URL, **rest}), 200, "webhook")["webhook"]
        assert saved == {**made, "updated_at": "2027-01-15T08:01:00.000Z", **changed}


@pytest.mark.parametrize(
    "field, body",
    [
        ("url", {}),
        ("url", {"url": None}),
        ("url", {"url": 5}),
        ("url", {"url": ["https://127.0.0.2/"]}),
        ("events", {"url": URL, "events": "email.failed"}),
        ("events[0]", {"url": URL, "events": ["webhook.test"]}),
        ("events[1]", {"url": URL, "events": ["email.failed", "email.opened"]}),
        ("events[0]", {"url": URL, "events": [None]}),
        ("enabled", {"url": URL, "enabled": "yes"}),
        ("enabled", {"url": URL, "enabled": 1}),
        ("secret", {"url": URL, "secret": "whsec_mine"}),
        ("secret_hint", {"url": URL, "secret_hint": "x"}),
        ("event", {"url": URL, "event": ALL}),
    ],
)
async def test_what_breaks_a_rule_is_refused_naming_it(mine: AccountClients, field: str, body: dict[str, Any]) -> None:
    sentence = check_refusal(await mine.owner.put(WEBHOOK, json=body), 400, "invalid_request")
    assert sentence.startswith((f"{field}: ", f"{field} ")) or f"'{field}'" in sentence, sentence
    assert (await mine.owner.get(WEBHOOK)).json()["webhook"] is None


async def test_a_secret_is_rotated_with_and_without_a_body(mine: AccountClients) -> None:
    assert check_refusal(await mine.owner.post(ROTATE), 404, "not_found") == "this account has no webhook"
    first = (await mine.owner.put(WEBHOOK, json={"url": URL})).json()["secret"]
    answers = [
        await mine.owner.post(ROTATE),
        await mine.owner.post(ROTATE, json={}),
        await mine.owner.post(ROTATE, json={"overlap_hours": None}),
        await mine.owner.post(ROTATE, json={"overlap_hours": 1}),
        await mine.owner.post(ROTATE, json={"overlap_hours": 168}),
    ]
    secrets = [check_success(answer, 200, "secret")["secret"] for answer in answers]
    assert len({first, *secrets}) == 6
    shown = await mine.owner.get(WEBHOOK)
    assert shown.json()["webhook"]["secret_hint"] == f"whsec_…{secrets[-1][-4:]}"
    assert not any(secret in shown.text for secret in (first, *secrets))


async def test_a_ping_shows_what_the_endpoint_said(mine: AccountClients, authority: trustme.CA) -> None:
    assert check_refusal(await mine.owner.post(PING), 404, "not_found") == "this account has no webhook"
    async with webhook_server.running(
        authority=authority, answer=webhook_server.ok(500, b"<script>\x1b[31m\0" + b"\xff" * 5000)
    ) as endpoint:
        await mine.owner.put(WEBHOOK, json={"url": endpoint.literal_url, "enabled": False})
        delivery = check_success(await mine.owner.post(PING), 200, "delivery")["delivery"]
        (request,) = endpoint.requests
    (attempt,) = delivery.pop("attempts")
    reported = json.loads(request.body)
    assert delivery == {
        "id": delivery["id"],
        "event_id": reported["id"],
        "event_type": "webhook.test",
        "message_id": None,
        "recipient_id": None,
        "replay_of": None,
        "url": endpoint.literal_url,
        "status": "failed",
        "attempt_count": 1,
        "next_attempt_at": None,
        "created_at": "2027-01-15T08:00:00.000Z",
        "request_body": request.body.decode(),
    }
    assert attempt.keys() == {"at", "status_code", "duration_ms", "response_body", "error"}
    assert (attempt["at"], attempt["status_code"]) == ("2027-01-15T08:00:00.000Z", 500)
    assert attempt["duration_ms"] > 0
    assert attempt["response_body"].startswith("<script>\x1b[31m")
    assert len(attempt["response_body"].encode()) <= SHOWN
    listed = (await mine.reader.get(DELIVERIES)).json()["deliveries"]
    assert listed == [{**delivery, "attempts": [attempt]}]


async def test_a_removed_webhook_is_gone_with_its_log(ctx: context.Context, mine: AccountClients) -> None:
    check_refusal(await mine.owner.delete(WEBHOOK), 404, "not_found")
    await mine.owner.put(WEBHOOK, json={"url": URL})
    old = await webhook_rows.put_ended(ctx, mine.account_id)
    await webhook_rows.put(ctx, mine.account_id)
    removed = await mine.owner.delete(WEBHOOK)
    assert (removed.status_code, removed.content) == (204, b"")
    for made_again in (False, True):
        if made_again:
            assert "secret" in (await mine.owner.put(WEBHOOK, json={"url": URL})).json()
        assert (await mine.owner.get(DELIVERIES)).json()["deliveries"] == []
        check_refusal(await mine.owner.post(replay_of(old.id)), 404, "not_found")
        if not made_again:
            assert (await mine.owner.get(WEBHOOK)).json()["webhook"] is None
            for response in (
                await mine.owner.delete(WEBHOOK),
                await mine.owner.post(ROTATE),
                await mine.owner.post(PING),
            ):
                check_refusal(response, 404, "not_found")
