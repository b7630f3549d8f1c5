"""Messages over Resend's API: what is sent is what our own API would send, and errors are theirs."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from postroad import context
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.services.accounts import account_registry
from postroad.services.messages import lookup
from postroad.storage.people import accounts
from postroad_resend import api as resend
from postroad_resend import emails
from tests import accepted_mail, contexts
from tests.compat import compat_client

EMAIL: dict[str, Any] = {
    "from": "Shop <shop@example.com>",
    "to": "ada@example.net",
    "subject": "Your order",
    "html": "<p>On its way</p>",
}


@pytest_asyncio.fixture
async def client(ctx: context.Context, account: accounts.Account) -> AsyncIterator[httpx.AsyncClient]:
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id)
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"}) as opened:
        yield opened


async def test_a_message_is_accepted_with_everything_that_both_know(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    response = await client.post(
        "/emails",
        json={
            **EMAIL,
            "to": ["ada@example.net", "bob@example.net"],
            "cc": "carol@example.net",
            "bcc": [],
            "reply_to": ["help@example.com"],
            "text": "On its way",
            "headers": {"X-Entity-Ref-ID": "7"},
            "tags": [{"name": "order", "value": "1042"}],
            "attachments": [
                {"filename": "a.txt", "content": "aGk="},
                {"filename": "b.bin", "content": [0, 255], "content_type": "application/x-b"},
                {"filename": "c.png", "content": "aGk=", "inline_content_id": "logo"},
            ],
            "scheduled_at": "in 1 hour",
            "topic_id": None,
        },
    )
    assert response.status_code == 200
    message_id = response.json()["id"]
    assert response.json() == {"id": message_id}
    assert "ratelimit" in response.headers
    found = (await lookup.details(ctx, account.id, message_id)).receipt
    assert (found.to, found.cc, found.bcc) == (("ada@example.net", "bob@example.net"), ("carol@example.net",), ())
    assert (found.reply_to, found.headers) == ("help@example.com", {"X-Entity-Ref-ID": "7"})
    assert found.metadata == {"order": "1042"}
    assert found.send_at == "2027-01-15T09:00:00.000Z"
    assert [
        (attachment.filename, attachment.content_type, attachment.size, attachment.content_id or None)
        for attachment in found.attachments
    ] == [
        ("a.txt", "text/plain", 2, None),
        ("b.bin", "application/x-b", 2, None),
        ("c.png", "image/png", 2, "logo"),
    ]
    shown = (await client.get(f"/emails/{message_id}")).json()
    assert shown == {
        "object": "email",
        "id": message_id,
        "to": ["ada@example.net", "bob@example.net"],
        "from": "Shop <shop@example.com>",
        "created_at": "2027-01-15T08:00:00.000Z",
        "subject": "Your order",
        "bcc": [],
        "cc": ["carol@example.net"],
        "reply_to": ["help@example.com"],
        "last_event": "scheduled",
        "scheduled_at": "2027-01-15T09:00:00.000Z",
        "message_id": f"<{message_id}@example.com>",
        "html": "<p>On its way</p>",
        "text": "On its way",
        "tags": [{"name": "order", "value": "1042"}],
    }


@pytest.mark.parametrize(
    "given, shown",
    [
        ("help@example.com", ["help@example.com"]),
        (["a@example.com", "Bo <b@example.com>"], ["a@example.com", "Bo <b@example.com>"]),
        ([], []),
    ],
)
async def test_replies_go_to_any_number_of_addresses(client: httpx.AsyncClient, given: object, shown: object) -> None:
    sent = await client.post("/emails", json={**EMAIL, "reply_to": given})
    assert (await client.get(f"/emails/{sent.json()['id']}")).json()["reply_to"] == shown


async def test_an_idempotency_key_replays_and_refuses_another_body(client: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "order-1042"}
    first = await client.post("/emails", json=EMAIL, headers=headers)
    again = await client.post("/emails", json=EMAIL, headers=headers)
    other = await client.post("/emails", json={**EMAIL, "subject": "Another"}, headers=headers)
    without = await client.post("/emails", json=EMAIL)
    assert first.json() == again.json() != without.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert (other.status_code, other.json()["name"]) == (409, "invalid_idempotent_request")


@pytest.mark.parametrize(
    "members, message",
    [
        ({"topic_id": "t1"}, "topic_id: Postroad does not support this part of the Resend API"),
        ({"reply_to": ["a@example.com"] * 11}, "reply_to: at most 10 items"),
        ({"reply_to": ["a@example.com", "b@"]}, "reply_to[1]: 'b@' is not an email address"),
        ({"scheduled_at": "tomorrow at noon"}, "scheduled_at: write an ISO 8601 time"),
        ({"scheduled_at": "2020-01-01T00:00:00Z"}, "send_at: 2020-01-01T00:00:00.000Z is in the past"),
        ({"tags": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]}, "tags: two have the same name"),
        ({"tags": ["a"]}, "tags[0]: expected a JSON object, got a string"),
        ({"to": 7}, "to: expected"),
        ({"sender": "x"}, "sender: unknown"),
        ({"html": None}, "text: give at least one of text, html, attachments, template"),
        ({"attachments": [{"filename": "a.txt", "content": [256]}]}, "attachments[0].content: octets are numbers"),
        ({"attachments": [{"filename": "a.txt"}]}, "attachments[0].content: is required"),
        ({"template": {"id": "nothing"}, "html": None}, "template: 'nothing' does not exist in this account"),
        ({"from": "shop@elsewhere.example"}, "from: elsewhere.example is not a domain of this account"),
    ],
)
async def test_bad_input_is_refused_by_name(client: httpx.AsyncClient, members: dict[str, Any], message: str) -> None:
    response = await client.post("/emails", json={**EMAIL, **members})
    assert response.status_code in (403, 422)
    assert response.json()["name"] == "validation_error"
    assert message in response.json()["message"]
    assert (await client.get("/emails")).json()["data"] == []


async def test_a_batch_is_all_or_nothing_unless_permissive(client: httpx.AsyncClient, clock: contexts.Clock) -> None:
    bad = {**EMAIL, "to": "nobody"}
    strict = await client.post("/emails/batch", json=[EMAIL, bad])
    assert (strict.status_code, strict.json()["name"]) == (422, "validation_error")
    assert strict.json()["message"].startswith("emails[1]: to: 'nobody' is not an email address")
    permissive = await client.post(
        "/emails/batch",
        json=[{**EMAIL, "topic_id": "t"}, EMAIL, bad, 7],
        headers={"x-batch-validation": "permissive"},
    )
    body = permissive.json()
    assert [one["index"] for one in body["errors"]] == [0, 2, 3]
    assert len(body["data"]) == 1
    clock.pass_seconds(1)
    both = (await client.post("/emails/batch", json=[EMAIL, EMAIL])).json()
    assert list(both) == ["data"]
    listed = (await client.get("/emails", params={"limit": 2})).json()
    assert (listed["object"], listed["has_more"]) == ("list", True)
    assert [one["id"] for one in listed["data"]] == [both["data"][1]["id"], both["data"][0]["id"]]
    rest = (await client.get("/emails", params={"after": listed["data"][1]["id"]})).json()
    assert [one["id"] for one in rest["data"]] == [body["data"][0]["id"]]
    assert rest["has_more"] is False


async def test_a_list_is_read_backwards(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(5):
        await client.post("/emails", json=EMAIL | {"subject": str(n)})
    ids = [one["id"] for one in (await client.get("/emails")).json()["data"]]
    for query, found, has_more in (
        ({"before": ids[4], "limit": 2}, ids[2:4], True),
        ({"before": ids[2], "limit": 2}, ids[:2], False),
        ({"before": ids[3]}, ids[:3], False),
        ({"before": ids[0]}, [], False),
    ):
        page = (await client.get("/emails", params=query)).json()
        assert ([one["id"] for one in page["data"]], page["has_more"]) == (found, has_more)
    monkeypatch.setattr(emails, "MAX_NEWER", 3)
    for query, told in (
        ({"before": ids[4]}, "before: more than 3 messages are newer"),
        ({"before": ids[4], "after": ids[0]}, "before: cannot be combined with after"),
        ({"before": "x"}, "before: is not a cursor"),
    ):
        refused = await client.get("/emails", params=query)
        assert (refused.status_code, refused.json()["name"]) == (422, "validation_error")
        assert refused.json()["message"].startswith(told)


@pytest.mark.parametrize("body", [[], [EMAIL] * 101, {"emails": []}])
async def test_a_batch_has_bounds(client: httpx.AsyncClient, body: object) -> None:
    response = await client.post("/emails/batch", json=body)
    assert (response.status_code, response.json()["name"]) == (422, "validation_error")


async def test_a_scheduled_message_is_rescheduled_and_canceled(client: httpx.AsyncClient) -> None:
    scheduled = {**EMAIL, "scheduled_at": "2027-01-16T08:00:00+01:00"}
    message_id = (await client.post("/emails", json=scheduled)).json()["id"]
    moved = await client.patch(f"/emails/{message_id}", json={"scheduled_at": "in 2 days"})
    assert moved.json() == {"object": "email", "id": message_id}
    assert (await client.get(f"/emails/{message_id}")).json()["scheduled_at"] == "2027-01-17T08:00:00.000Z"
    canceled = await client.post(f"/emails/{message_id}/cancel")
    assert canceled.json() == {"object": "email", "id": message_id}
    assert (await client.get(f"/emails/{message_id}")).json()["last_event"] == "canceled"
    assert [one["last_event"] for one in (await client.get("/emails")).json()["data"]] == ["canceled"]


async def test_a_list_shows_whom_and_as_what_each_message_was_sent(client: httpx.AsyncClient) -> None:
    everybody = {"to": ["ada@example.net", "bo@example.net"], "cc": "cy@example.net", "bcc": "di@example.net"}
    sent = await client.post("/emails", json={**EMAIL, **everybody, "reply_to": "help@example.com"})
    message_id = sent.json()["id"]
    (listed,) = (await client.get("/emails")).json()["data"]
    assert (listed["to"], listed["cc"], listed["bcc"], listed["reply_to"]) == (
        ["ada@example.net", "bo@example.net"],
        ["cy@example.net"],
        ["di@example.net"],
        ["help@example.com"],
    )
    assert listed["message_id"] == f"<{message_id}@example.com>"
    shown = (await client.get(f"/emails/{message_id}")).json()
    assert {name: shown[name] for name in listed} == listed


@pytest.mark.parametrize("bodies", [{"text": "Hi"}, {"html": "<p>Hé</p>"}, {"html": "<p>Hi</p>\n", "text": "Hi\n"}])
async def test_bodies_come_back_as_they_were_given(client: httpx.AsyncClient, bodies: dict[str, str]) -> None:
    email = {name: value for name, value in EMAIL.items() if name not in ("html", "text")}
    message_id = (await client.post("/emails", json={**email, **bodies})).json()["id"]
    shown = (await client.get(f"/emails/{message_id}")).json()
    assert (shown["html"], shown["text"]) == (bodies.get("html"), bodies.get("text"))


@pytest.mark.parametrize("value", ["Bearer ", "Bearer", "bearer  "])
async def test_an_empty_key_is_a_missing_one(ctx: context.Context, value: str) -> None:
    async with compat_client.opened(ctx, resend.API, {"Authorization": value}) as nobody:
        response = await nobody.get("/emails")
    assert (response.status_code, response.json()["name"]) == (401, "missing_api_key")


async def test_another_account_and_a_test_key_find_nothing(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    message_id = (await client.post("/emails", json=EMAIL)).json()["id"]
    other = await account_registry.create(ctx, "Other")
    keys = [
        await compat_client.new_key(ctx, other.id),
        await compat_client.new_key(ctx, account.id, mode=statuses.Mode.TEST, scopes=frozenset({"send", "read"})),
    ]
    for key in keys:
        async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"}) as stranger:
            for method, path in [("GET", ""), ("PATCH", ""), ("POST", "/cancel")]:
                response = await stranger.request(
                    method, f"/emails/{message_id}{path}", json={"scheduled_at": "in 1 day"}
                )
                assert (response.status_code, response.json()["name"]) == (404, "not_found")
            assert (await stranger.get("/emails")).json()["data"] == []


async def test_a_key_that_may_only_send_reads_nothing(ctx: context.Context, account: accounts.Account) -> None:
    key = await compat_client.new_key(ctx, account.id, frozenset({callers.Scope.SEND}))
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"}) as sender:
        for path in ("/emails", "/emails/x", "/templates"):
            response = await sender.get(path)
            assert (response.status_code, response.json()["name"]) == (401, "restricted_api_key")


@pytest.mark.parametrize("path", ["/emails/metrics", "/emails/x/share", "/emails/receiving/x/y"])
async def test_what_is_no_message_is_named_as_not_supported(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert (response.status_code, response.json()["name"]) == (404, "not_found")
    assert response.json()["message"].startswith(f"GET {path}: Postroad does not support")


async def test_headers_that_a_package_adds_are_checked_before_they_are_left_out(client: httpx.AsyncClient) -> None:
    added = {"Message-ID": "<1@shop.example>", "Content-Type": "text/plain", "X-Shop": "7"}
    assert (await client.post("/emails", json={**EMAIL, "headers": added})).status_code == 200
    for headers in (
        {"Content-X\r\nBcc": "eve@example.net"},
        {"Content-Language": "de"},
        {"Date": {"a": 1}},
        {"Date": "a\r\nBcc: eve@example.net"},
        {f"Content-{number}": "x" for number in range(500)},
    ):
        refused = await client.post("/emails", json={**EMAIL, "headers": headers})
        assert refused.status_code in (400, 422), headers
        assert "headers" in refused.json()["message"]
