"""`/v1/webhooks`: several endpoints, each with settings, a secret, pings and a log of its own."""

from typing import Any

import pytest

from postroad import config, context
from postroad.services.webhooks import endpoint_settings, endpoints
from tests import contexts, event_formats, webhook_rows
from tests.api.management import AccountClients
from tests.api.webhook_calls import WEBHOOK, check_refusal, check_success
from tests.webhook_rows import URL

WEBHOOKS = "/v1/webhooks"
ALL = ["email.delivered", "email.bounced", "email.failed"]
SECOND = "https://127.0.0.2/second"


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


async def create(clients: AccountClients, **fields: Any) -> dict[str, Any]:
    made = check_success(await clients.owner.post(WEBHOOKS, json={"url": SECOND, **fields}), 201, "webhook", "secret")
    webhook: dict[str, Any] = made["webhook"]
    return webhook


async def listed(clients: AccountClients) -> list[str]:
    found = check_success(await clients.reader.get(WEBHOOKS), 200, "webhooks")
    return [one["id"] for one in found["webhooks"]]


async def test_an_endpoint_is_created_with_its_settings_and_a_secret(mine: AccountClients) -> None:
    assert await listed(mine) == []
    body = {
        "url": URL,
        "events": ["email.failed", "email.bounced"],
        "enabled": False,
        "version": 2,
        "tags": ["a tag", "other", "a tag"],
        "sender_domains": ["Shop.Example", "bücher.example", "shop.example"],
        "mode": "test",
        "standard_signature": True,
        "description": "For billing",
    }
    made = check_success(await mine.owner.post(WEBHOOKS, json=body), 201, "webhook", "secret")
    webhook = made["webhook"]
    assert webhook == {
        "id": webhook["id"],
        "is_first": True,
        "url": URL,
        "description": "For billing",
        "events": ["email.bounced", "email.failed"],
        "format": "postroad",
        "version": 2,
        "tags": ["a tag", "other"],
        "sender_domains": ["shop.example", "xn--bcher-kva.example"],
        "mode": "test",
        "standard_signature": True,
        "enabled": False,
        "failing_since": None,
        "disabled_reason": None,
        "created_at": "2027-01-15T08:00:00.000Z",
        "updated_at": "2027-01-15T08:00:00.000Z",
        "secret_hint": f"whsec_…{made['secret'][-4:]}",
    }
    shown = check_success(await mine.reader.get(f"{WEBHOOKS}/{webhook['id']}"), 200, "webhook")
    assert shown["webhook"] == webhook


async def test_the_contracts_webhook_is_the_first_and_no_other_takes_its_place(
    mine: AccountClients, clock: contexts.Clock
) -> None:
    first = check_success(await mine.owner.put(WEBHOOK, json={"url": URL}), 200, "webhook", "secret")["webhook"]
    assert set(first) == {"url", "events", "enabled", "created_at", "updated_at", "secret_hint"}
    clock.pass_seconds(1)
    second = await create(mine)
    (first_id, second_id) = await listed(mine)
    assert second_id == second["id"]
    assert (second["is_first"], second["events"], second["enabled"], second["mode"]) == (False, ALL, True, "live")
    assert (await mine.reader.get(WEBHOOK)).json()["webhook"] == first
    assert (await mine.reader.get(f"{WEBHOOKS}/{first_id}")).json()["webhook"]["is_first"] is True
    assert (await mine.owner.delete(WEBHOOK)).status_code == 204
    assert (await mine.reader.get(WEBHOOK)).json()["webhook"] is None
    assert await listed(mine) == [second_id]
    assert (await mine.owner.put(WEBHOOK, json={"url": URL})).json()["webhook"]["url"] == URL
    assert len(await listed(mine)) == 2


async def test_the_format_of_another_service_is_shown_and_its_own_settings_are_not_changed_here(
    ctx: context.Context, mine: AccountClients
) -> None:
    wanted = endpoint_settings.Changes(url=URL, format_events=["arrived"])
    saved = await endpoints.create(event_formats.with_format(ctx), mine.account_id, wanted, of_format="other")
    path = f"{WEBHOOKS}/{saved.webhook.id}"
    shown = check_success(await mine.reader.get(path), 200, "webhook")["webhook"]
    assert (shown["format"], shown["events"], shown["is_first"]) == ("other", ["email.delivered"], False)
    for field, value in (("events", ["email.failed"]), ("version", 2), ("standard_signature", True)):
        refused = check_refusal(await mine.owner.patch(path, json={field: value}), 400, "invalid_request")
        assert refused.startswith(f"{field}: this webhook has the format of another service (other)")
    changed = check_success(await mine.owner.patch(path, json={"description": "Postmark"}), 200, "webhook")
    assert (changed["webhook"]["format"], changed["webhook"]["description"]) == ("other", "Postmark")
    assert check_success(await mine.owner.get(WEBHOOK), 200, "webhook")["webhook"] is None


async def test_what_is_left_out_of_a_change_stays(mine: AccountClients, clock: contexts.Clock) -> None:
    made = await create(mine, tags=["a"], sender_domains=["shop.example"], description="x", events=["email.failed"])
    path, later = f"{WEBHOOKS}/{made['id']}", "2027-01-15T08:01:00.000Z"
    clock.pass_seconds(60)
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"enabled": False}, {"enabled": False}),
        ({"tags": []}, {"tags": []}),
        ({"sender_domains": [], "description": ""}, {"sender_domains": [], "description": ""}),
        ({"url": URL, "events": []}, {"url": URL, "events": ALL}),
        ({"version": 2, "mode": "test", "standard_signature": True, "enabled": True, "tags": None},
         {"version": 2, "mode": "test", "standard_signature": True, "enabled": True}),
    ]  # fmt: skip
    expected = made | {"updated_at": later}
    for body, changed in cases:
        expected |= changed
        assert check_success(await mine.owner.patch(path, json=body), 200, "webhook")["webhook"] == expected
    assert (await mine.reader.get(path)).json()["webhook"] == expected


@pytest.mark.parametrize(
    "field, body",
    [
        ("url", {}),
        ("url", {"url": "http://127.0.0.2/"}),
        ("url", {"url": "https://127.0.0.1/"}),
        ("events[0]", {"url": URL, "events": ["webhook.test"]}),
        ("version", {"url": URL, "version": 3}),
        ("mode", {"url": URL, "mode": "both"}),
        ("tags[0]", {"url": URL, "tags": [""]}),
        ("tags[1]", {"url": URL, "tags": ["a", "b\nc"]}),
        ("tags", {"url": URL, "tags": ["x"] * 21}),
        ("sender_domains[0]", {"url": URL, "sender_domains": ["no domain"]}),
        ("sender_domains", {"url": URL, "sender_domains": ["a.example"] * 21}),
        ("description", {"url": URL, "description": "two\nlines"}),
        ("description", {"url": URL, "description": "x" * 201}),
        ("standard_signature", {"url": URL, "standard_signature": "yes"}),
        ("is_first", {"url": URL, "is_first": True}),
        ("secret", {"url": URL, "secret": "whsec_mine"}),
    ],
)
async def test_what_breaks_a_rule_is_refused_naming_it(mine: AccountClients, field: str, body: dict[str, Any]) -> None:
    sentence = check_refusal(await mine.owner.post(WEBHOOKS, json=body), 400, "invalid_request")
    assert sentence.startswith((f"{field}: ", f"{field} ")) or f"'{field}'" in sentence, sentence
    assert await listed(mine) == []
    if "url" in body:
        made = await create(mine)
        check_refusal(await mine.owner.patch(f"{WEBHOOKS}/{made['id']}", json=body), 400, "invalid_request")
        assert (await mine.reader.get(f"{WEBHOOKS}/{made['id']}")).json()["webhook"] == made


async def test_an_account_has_ten_and_an_eleventh_is_refused(mine: AccountClients, theirs: AccountClients) -> None:
    ids = [(await create(mine))["id"] for _ in range(10)]
    sentence = check_refusal(await mine.owner.post(WEBHOOKS, json={"url": URL}), 409, "conflict")
    assert sentence.startswith("the quota of this account is 10 webhooks; remove one")
    await create(theirs)
    assert (await mine.owner.delete(f"{WEBHOOKS}/{ids[4]}")).status_code == 204
    await create(mine)
    # The place of the first is not free any more.
    assert (await mine.owner.delete(WEBHOOK)).status_code == 204
    await create(mine)
    assert (await mine.owner.put(WEBHOOK, json={"url": URL})).status_code == 200
    assert len(await listed(mine)) == 10


async def test_each_endpoint_has_its_own_secret_pings_and_log(mine: AccountClients) -> None:
    one, two = await create(mine, url="https://127.0.0.2:9/one"), await create(mine, url="https://127.0.0.2:9/two")
    paths = [f"{WEBHOOKS}/{webhook['id']}" for webhook in (one, two)]
    rotated = check_success(await mine.owner.post(f"{paths[1]}/rotate-secret", json={}), 200, "secret")["secret"]
    assert (await mine.reader.get(paths[1])).json()["webhook"]["secret_hint"] == f"whsec_…{rotated[-4:]}"
    assert (await mine.reader.get(paths[0])).json()["webhook"] == one
    pinged = [check_success(await mine.owner.post(f"{path}/ping"), 200, "delivery")["delivery"] for path in paths]
    assert [delivery["url"] for delivery in pinged] == [one["url"], two["url"]]
    for path in paths:
        check_refusal(await mine.owner.post(f"{path}/ping"), 429, "rate_limited")
    for path, mine_of, other in ((paths[0], *pinged), (paths[1], *pinged[::-1])):
        log = check_success(await mine.reader.get(f"{path}/deliveries"), 200, "deliveries", "next_before")
        assert log["deliveries"] == [mine_of]
        assert (await mine.reader.get(f"{path}/deliveries/{mine_of['id']}")).json()["delivery"] == mine_of
        check_refusal(await mine.reader.get(f"{path}/deliveries/{other['id']}"), 404, "not_found")
        check_refusal(await mine.owner.post(f"{path}/deliveries/{other['id']}/replay"), 404, "not_found")
        again = check_success(await mine.owner.post(f"{path}/deliveries/{mine_of['id']}/replay"), 202, "delivery")
        assert (again["delivery"]["replay_of"], again["delivery"]["url"]) == (mine_of["id"], mine_of["url"])
    assert (await mine.owner.delete(paths[1])).status_code == 204
    check_refusal(await mine.reader.get(f"{paths[1]}/deliveries"), 404, "not_found")
    assert len((await mine.reader.get(f"{paths[0]}/deliveries")).json()["deliveries"]) == 2


async def test_failures_of_one_endpoint_are_replayed_to_it(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    await create(mine)
    second = await create(mine)
    await webhook_rows.put_ended(ctx, mine.account_id, webhook_rows.State.FAILED)
    await webhook_rows.put_ended(ctx, mine.account_id, webhook_rows.State.FAILED, webhook_id=second["id"])
    clock.pass_seconds(1)
    period = {"after": "2026-01-01T00:00:00Z", "before": "2030-01-01T00:00:00Z"}
    path = f"{WEBHOOKS}/{second['id']}/deliveries"
    answer = await mine.owner.post(f"{path}/replay", json=period)
    assert check_success(answer, 202, "replayed", "has_more", "next_after")["replayed"] == 1
    assert len((await mine.reader.get(path)).json()["deliveries"]) == 2
    assert len((await mine.reader.get(f"{WEBHOOK}/deliveries")).json()["deliveries"]) == 1
