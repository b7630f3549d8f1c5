"""A webhook listener gets its events until it acknowledges them, and changes nothing for other webhooks."""

import json

import pytest

from postroad import config, context
from postroad.services import usage_limits
from postroad.services.webhooks import endpoints, listeners
from tests import accepted_mail, contexts, webhook_rows
from tests.api.management import AccountClients

PATH = "/v1/webhook-listeners"
CANCELED = {"events": ["email.canceled"]}


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


async def cancel(ctx: context.Context, mine: AccountClients) -> None:
    """Something happens: a message is canceled."""
    await accepted_mail.allow_sending(ctx, mine.account_id, domain="mine.example")
    message_id = await accepted_mail.accept(ctx, mine.account_id, sender="shop@mine.example")
    assert (await mine.owner.post(f"/emails/{message_id}/cancel")).status_code == 200


async def test_events_are_returned_until_they_are_acknowledged(ctx: context.Context, mine: AccountClients) -> None:
    await endpoints.save(ctx, mine.account_id, url=webhook_rows.URL, wanted=["email.canceled"])
    created = (await mine.owner.post(PATH, json=CANCELED)).json()
    assert (created["webhook"]["url"], created["webhook"]["is_first"]) == ("listen:", False)
    assert created["secret"].startswith("whsec_")
    path = f"{PATH}/{created['webhook']['id']}/receive"
    assert (await mine.owner.post(path)).json()["events"] == []
    await cancel(ctx, mine)
    (event,) = (await mine.owner.post(path, json={"wait_seconds": 5})).json()["events"]
    assert (event["event_type"], json.loads(event["body"])["id"]) == ("email.canceled", event["event_id"])
    assert (await mine.owner.post(path, json={})).json()["events"] == [event]
    known = await mine.owner.post(path, json={"acknowledge": [event["id"], event["id"], "\0"]})
    assert known.json().get("events") == [], known.text
    # The other endpoint has its delivery still.
    (first, _) = (await mine.owner.get("/v1/webhooks")).json()["webhooks"]
    log = (await mine.owner.get(f"/v1/webhooks/{first['id']}/deliveries")).json()["deliveries"]
    assert [(one["event_id"], one["status"]) for one in log] == [(event["event_id"], "pending")]


async def test_a_listener_is_never_the_first_webhook(mine: AccountClients) -> None:
    listener = (await mine.owner.post(PATH, json={"events": ["email.bounced"], "version": 2})).json()["webhook"]
    assert (listener["events"], listener["version"]) == (["email.bounced"], 2)
    assert (await mine.owner.get("/v1/webhook")).json()["webhook"] is None
    other = (await mine.owner.post("/v1/webhooks", json={"url": webhook_rows.URL})).json()["webhook"]
    assert other["is_first"]
    assert (await mine.owner.delete(f"/v1/webhooks/{listener['id']}")).status_code == 204
    assert (await mine.owner.post(f"{PATH}/{listener['id']}/receive")).status_code == 404


async def test_a_listener_is_not_changed(mine: AccountClients) -> None:
    listener = (await mine.owner.post(PATH, json=CANCELED)).json()["webhook"]
    path = f"/v1/webhooks/{listener['id']}"
    for change in ({"url": webhook_rows.URL}, {"enabled": True}, {"enabled": False}):
        refused = await mine.owner.patch(path, json=change)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert (await mine.owner.patch(path, json={"events": ["email.unknown"]})).status_code == 400


async def test_a_webhook_with_a_url_cannot_be_received_and_no_url_makes_a_listener(
    ctx: context.Context, mine: AccountClients
) -> None:
    endpoint = (await endpoints.save(ctx, mine.account_id, url=webhook_rows.URL)).webhook
    await cancel(ctx, mine)
    assert (await mine.owner.post(f"{PATH}/{endpoint.id}/receive")).status_code == 404
    assert (await mine.owner.post("/v1/webhooks", json={"url": "listen:"})).status_code == 400


async def test_what_belongs_to_another_webhook_cannot_be_acknowledged(
    ctx: context.Context, mine: AccountClients
) -> None:
    paths = [f"{PATH}/{(await mine.owner.post(PATH, json=CANCELED)).json()['webhook']['id']}/receive" for _ in range(2)]
    await cancel(ctx, mine)
    events = [(await mine.owner.post(path)).json()["events"] for path in paths]
    assert len(events[0]) == len(events[1]) == 1
    body = {"acknowledge": [events[0][0]["id"]]}
    assert (await mine.owner.post(paths[1], json=body)).json()["events"] == events[1]
    assert (await mine.owner.post(paths[0])).json()["events"] == events[0]


async def test_waiting_requests_are_limited_for_each_account(ctx: context.Context, mine: AccountClients) -> None:
    listener = (await mine.owner.post(PATH)).json()["webhook"]["id"]
    held = [usage_limits.acquire(ctx, listeners.WAITING, mine.account_id) for _ in range(5)]
    for one in held:
        one.__enter__()
    refused = await mine.owner.post(f"{PATH}/{listener}/receive")
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    for one in held:
        one.__exit__(None, None, None)
    assert (await mine.owner.post(f"{PATH}/{listener}/receive")).status_code == 200


@pytest.mark.parametrize("body", [{"wait_seconds": 6}, {"wait_seconds": -1}, {"acknowledge": "x"}, {"more": 1}])
async def test_bad_input_is_refused(mine: AccountClients, body: dict[str, object]) -> None:
    listener = (await mine.owner.post(PATH)).json()["webhook"]["id"]
    assert (await mine.owner.post(f"{PATH}/{listener}/receive", json=body)).status_code == 400


async def test_a_listener_that_is_asked_stays_and_one_that_is_not_expires(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    used, unused = [(await mine.owner.post(PATH)).json()["webhook"]["id"] for _ in range(2)]
    for _ in range(3):
        clock.pass_seconds(300)
        assert (await mine.owner.post(f"{PATH}/{used}/receive")).status_code == 200
    expired = await endpoints.get(ctx, mine.account_id, unused)
    await listeners.expire(ctx, await endpoints.get(ctx, mine.account_id, used))
    await listeners.expire(ctx, expired)
    assert [one.id for one in await endpoints.of_account(ctx, mine.account_id)] == [used]
    clock.pass_seconds(700)
    assert (await mine.owner.post(PATH)).status_code == 201
    assert used not in [one.id for one in await endpoints.of_account(ctx, mine.account_id)]
