"""Limits of API keys over the API: given, listed with their usage, changed, and enforced."""

import asyncio
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio

from postroad import config, context
from postroad.services.people import credentials, sessions
from tests import accepted_mail, contexts
from tests.api.management import AccountClients

Created = dict[str, Any]
MESSAGE = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Hi", "text": "x"}
START = "2027-01-15T08:00:00.000Z"
SECONDS_TO_MIDNIGHT = 16 * 3600


@pytest.fixture
def settings(settings: config.Settings, monkeypatch: pytest.MonkeyPatch) -> config.Settings:
    """Days pass in these tests; the owner stays logged in and confirmed."""
    monkeypatch.setattr(sessions, "TOKEN_SECONDS", 30 * 24 * 3600)
    security = msgspec.structs.replace(settings.security, confirmation_minutes=30 * 24 * 60)
    return msgspec.structs.replace(settings, security=security)


@pytest_asyncio.fixture
async def shop(ctx: context.Context, mine: AccountClients) -> AccountClients:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    await credentials.create(ctx, mine.account_id, "main")
    return mine


async def create(client: httpx.AsyncClient, *, headers: dict[str, str] | None = None, **members: Any) -> Created:
    response = await client.post("/v1/api-keys", json={"name": "Shop", **members}, headers=headers)
    assert response.status_code == 201, response.text
    made: Created = response.json()
    return made


def bearer(made: Created) -> dict[str, str]:
    return {"Authorization": f"Bearer {made['secret']}"}


async def send(shop: AccountClients, made: Created, key: str, **members: Any) -> httpx.Response:
    body = {**MESSAGE, **members}
    return await shop.nobody.post("/emails", json=body, headers={**bearer(made), "Idempotency-Key": key})


def refusal(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


async def listed(shop: AccountClients) -> Created:
    found: list[Created] = (await shop.owner.get("/v1/api-keys")).json()["api_keys"]
    (key,) = found
    return key


async def test_limits_are_kept_in_normal_form_and_listed(shop: AccountClients) -> None:
    made = await create(
        shop.owner,
        domains=["Example.COM", "example.com", "bücher.example"],
        networks=["192.0.2.7", "2001:DB8::/32"],
        templates=["welcome"],
        recipients_per_day=5,
        credit_budget=7,
        expires_at="2027-01-16T09:00:00+01:00",
    )
    assert made["api_key"]["domains"] == ["example.com", "xn--bcher-kva.example"]
    assert made["api_key"]["networks"] == ["192.0.2.7/32", "2001:db8::/32"]
    assert made["api_key"]["expires_at"] == "2027-01-16T08:00:00.000Z"
    assert (made["api_key"]["recipients_today"], made["api_key"]["credits_used"]) == (0, 0)
    assert await listed(shop) == made["api_key"]


@pytest.mark.parametrize(
    "member, value",
    [
        ("domains", ["not a domain"]),
        ("domains", "example.com"),
        ("domains", ["a.example"] * 101),
        ("networks", ["192.0.2.7/24"]),
        ("networks", ["everywhere"]),
        ("networks", [""]),
        ("templates", ["No Alias"]),
        ("recipients_per_day", 0),
        ("recipients_per_day", -1),
        ("recipients_per_day", 1_000_000_001),
        ("recipients_per_day", 1.5),
        ("credit_budget", 0),
        ("expires_at", START),
        ("expires_at", "tomorrow"),
        ("expires_at", 5),
    ],
)
async def test_limits_that_make_no_sense_are_refused_by_name(shop: AccountClients, member: str, value: object) -> None:
    response = await shop.owner.post("/v1/api-keys", json={"name": "Shop", member: value})
    assert refusal(response) == (400, "invalid_request")
    assert response.json()["error"].startswith(member)
    assert (await shop.owner.get("/v1/api-keys")).json()["api_keys"] == []


async def test_an_address_with_a_prefix_is_answered_with_its_network(shop: AccountClients) -> None:
    response = await shop.owner.post("/v1/api-keys", json={"name": "Shop", "networks": ["192.0.2.7/24"]})
    assert response.json()["error"].endswith("the network of this address is 192.0.2.0/24")


async def test_a_key_sends_only_from_its_domains(shop: AccountClients) -> None:
    made = await create(shop.owner, domains=["other.example"])
    refused = await send(shop, made, "1")
    assert refusal(refused) == (403, "forbidden")
    assert refused.json()["error"] == ("from: this API key may not send from example.com, only from other.example")
    both = await create(shop.owner, domains=["other.example", "example.com"])
    assert (await send(shop, both, "1")).status_code == 202


async def test_a_key_sends_only_its_templates(shop: AccountClients) -> None:
    for alias in ("welcome", "bye"):
        await shop.owner.put(f"/v1/templates/{alias}", json={"subject": "Hi", "text": "x"})
    made = await create(shop.owner, templates=["welcome"])
    for members in ({}, {"text": None, "subject": None, "template": "bye"}):
        refused = await send(shop, made, "1", **members)
        assert refusal(refused) == (403, "forbidden")
        assert refused.json()["error"] == "template: this API key may only send the templates welcome"
    test = await shop.nobody.post("/v1/test-email", json={"to": "ada@example.net"}, headers=bearer(made))
    assert refusal(test) == (403, "forbidden")
    sent = await send(shop, made, "1", text=None, subject=None, template="welcome")
    assert sent.status_code == 202


async def test_a_key_works_only_from_its_networks(shop: AccountClients) -> None:
    elsewhere = await create(shop.owner, scopes=["*"], networks=["192.0.2.0/24", "2001:db8::/32"])
    refused = await send(shop, elsewhere, "1")
    assert refusal(refused) == (403, "forbidden")
    assert refused.json()["error"] == "Authorization: this API key may not be used from 127.0.0.1"
    assert refusal(await shop.nobody.get("/v1/account", headers=bearer(elsewhere))) == (403, "forbidden")
    # The contract has no 403 for it.
    read = await shop.nobody.get("/emails/em_" + "0" * 28, headers=bearer(elsewhere))
    assert refusal(read) == (401, "unauthorized")
    here = await create(shop.owner, networks=["192.0.2.0/24", "127.0.0.0/8"])
    assert (await send(shop, here, "1")).status_code == 202


async def test_recipients_a_day_are_counted_and_begin_again_at_midnight(
    shop: AccountClients, clock: contexts.Clock
) -> None:
    made = await create(shop.owner, recipients_per_day=3)
    two = ["a@example.net", "b@example.net"]
    assert (await send(shop, made, "1", to=two)).status_code == 202
    refused = await send(shop, made, "2", to=two)
    assert refusal(refused) == (429, "rate_limited")
    assert refused.headers["retry-after"] == str(SECONDS_TO_MIDNIGHT)
    assert (await send(shop, made, "1", to=two)).headers["idempotent-replayed"] == "true"
    assert (await send(shop, made, "3")).status_code == 202
    assert refusal(await send(shop, made, "4")) == (429, "rate_limited")
    assert (await listed(shop))["recipients_today"] == 3
    too_many = await send(shop, made, "5", to=[*two, "c@example.net", "d@example.net"])
    assert refusal(too_many) == (403, "forbidden")
    clock.pass_seconds(SECONDS_TO_MIDNIGHT - 1)
    assert (await send(shop, made, "6")).headers["retry-after"] == "1"
    clock.pass_seconds(1)
    assert (await listed(shop))["recipients_today"] == 0
    assert (await send(shop, made, "6")).status_code == 202
    assert (await listed(shop))["recipients_today"] == 1


async def test_a_budget_is_used_up_exactly_by_requests_at_once(shop: AccountClients, clock: contexts.Clock) -> None:
    made = await create(shop.owner, credit_budget=5)
    answers = await asyncio.gather(*(send(shop, made, str(number)) for number in range(12)))
    assert sorted(answer.status_code for answer in answers) == [202] * 5 + [402] * 7
    refused = next(answer for answer in answers if answer.status_code == 402)
    assert refused.json()["code"] == "insufficient_credits"
    assert refused.json()["error"] == (
        "the message needs 1 credit, but this API key has used 5 of its budget of 5; "
        "raise the budget, or use another key"
    )
    clock.pass_seconds(5 * 24 * 3600)
    assert refusal(await send(shop, made, "later")) == (402, "insufficient_credits")
    assert (await listed(shop))["credits_used"] == 5
    path = f"/v1/api-keys/{made['api_key']['id']}"
    raised = await shop.owner.patch(path, json={"credit_budget": 6})
    assert (raised.status_code, raised.json()["api_key"]["credits_used"]) == (200, 5)
    assert (await send(shop, made, "later")).status_code == 202
    assert refusal(await send(shop, made, "more")) == (402, "insufficient_credits")


async def test_a_key_ends_at_its_date_whatever_is_cached(shop: AccountClients, clock: contexts.Clock) -> None:
    made = await create(shop.owner, scopes=["send", "team"], expires_at="2027-01-15T08:00:00.200Z")
    assert (await send(shop, made, "1")).status_code == 202
    clock.pass_seconds(0.199999)
    assert (await send(shop, made, "2")).status_code == 202
    clock.pass_seconds(0.000001)
    for answer in (
        await send(shop, made, "3"),
        await send(shop, made, "1"),
        await shop.nobody.get("/v1/team", headers=bearer(made)),
    ):
        assert refusal(answer) == (401, "unauthorized")
        assert "has expired" in answer.json()["error"]
    path = f"/v1/api-keys/{made['api_key']['id']}"
    assert (await shop.owner.patch(path, json={"expires_at": None})).status_code == 200
    assert (await send(shop, made, "3")).status_code == 202


async def test_a_key_is_changed_by_members(shop: AccountClients) -> None:
    made = await create(shop.owner, domains=["example.com"], recipients_per_day=5)
    path = f"/v1/api-keys/{made['api_key']['id']}"
    changed = await shop.owner.patch(path, json={"name": "Till", "scopes": ["send", "read"], "domains": None})
    assert changed.status_code == 200
    expected = {**made["api_key"], "name": "Till", "scopes": ["send", "read"], "domains": []}
    assert changed.json()["api_key"] == expected
    assert await listed(shop) == expected
    assert (await shop.nobody.get("/v1/messages", headers=bearer(made))).status_code == 200
    entries = (await shop.owner.get("/v1/audit-log")).json()["entries"]
    (entry,) = (entry for entry in entries if entry["action"] == "api_key.changed")
    assert (entry["subject"], entry["detail"]) == ("Till", "name, scopes, domains")


async def test_changes_that_make_no_sense_are_refused(
    shop: AccountClients, theirs: AccountClients, clock: contexts.Clock
) -> None:
    made = await create(shop.owner)
    path = f"/v1/api-keys/{made['api_key']['id']}"
    bodies: list[Created] = [
        {"name": ""},
        {"scopes": []},
        {"credential_id": "x"},
        {"networks": ["x"]},
        {"credit_budget": 0},
        {"expires_at": START},
    ]
    for body in bodies:
        assert refusal(await shop.owner.patch(path, json=body)) == (400, "invalid_request")
    assert refusal(await shop.reader.patch(path, json={"name": "x"})) == (403, "forbidden")
    assert refusal(await theirs.owner.patch(path, json={"name": "x"})) == (404, "not_found")
    await shop.owner.delete(path)
    assert refusal(await shop.owner.patch(path, json={"name": "x"})) == (404, "not_found")
    assert await listed(shop) == {**made["api_key"], "revoked_at": START}


async def test_a_limited_key_gives_no_more_than_it_has(shop: AccountClients) -> None:
    own: Created = {"networks": ["127.0.0.0/8"], "domains": ["example.com"], "expires_at": "2027-01-16T08:00:00Z"}
    made = await create(shop.owner, scopes=["*"], **own)
    headers = bearer(made)
    more: list[Created] = [
        {},
        {**own, "networks": ["0.0.0.0/0"]},
        {**own, "domains": ["example.com", "other.example"]},
        {**own, "expires_at": "2027-01-16T08:00:01Z"},
        {**own, "expires_at": None},
    ]
    for body in more:
        answer = await shop.nobody.post("/v1/api-keys", json={"name": "x", **body}, headers=headers)
        assert refusal(answer) == (403, "forbidden")
    path = f"/v1/api-keys/{made['api_key']['id']}"
    raised: list[Created] = [{"networks": None}, {"domains": []}, {"expires_at": "2028-01-01T00:00:00Z"}]
    for body in raised:
        assert refusal(await shop.nobody.patch(path, json=body, headers=headers)) == (403, "forbidden")
    for path_, body in (
        ("/v1/credentials", {"name": "x"}),
        ("/v1/team", {"email": "eve@example.net", "role": "read_only"}),
    ):
        answer = await shop.nobody.post(path_, json=body, headers=headers)
        assert refusal(answer) == (403, "forbidden")
        assert "has limits" in answer.json()["error"]
    child = await create(shop.nobody, headers=headers, **{**own, "networks": ["127.0.0.1/32"]})
    assert child["api_key"]["networks"] == ["127.0.0.1/32"]
    lowered = await shop.nobody.patch(path, json={"networks": ["127.0.0.1"]}, headers=headers)
    assert lowered.status_code == 200


async def test_a_key_with_a_budget_creates_no_keys_that_send(shop: AccountClients) -> None:
    made = await create(shop.owner, scopes=["*"], credit_budget=5)
    headers = bearer(made)
    for body in ({"credit_budget": 5}, {"credit_budget": 1, "scopes": ["*"]}):
        answer = await shop.nobody.post("/v1/api-keys", json={"name": "x", **body}, headers=headers)
        assert refusal(answer) == (403, "forbidden")
        assert "cannot create keys that send" in answer.json()["error"]
    reader = await create(shop.nobody, headers=headers, scopes=["read"], credit_budget=5)
    path = f"/v1/api-keys/{reader['api_key']['id']}"
    assert refusal(await shop.nobody.patch(path, json={"scopes": ["send"]}, headers=headers)) == (403, "forbidden")
    own = f"/v1/api-keys/{made['api_key']['id']}"
    assert (await shop.nobody.patch(own, json={"credit_budget": 4}, headers=headers)).status_code == 200
    assert refusal(await shop.nobody.patch(own, json={"credit_budget": 5}, headers=headers)) == (403, "forbidden")
