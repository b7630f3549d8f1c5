"""Postmark's `/email`: what is accepted becomes the same message as over our own API, and errors have its numbers."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from postroad import context, errors
from postroad.mail.accept import validation
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.services.accounts import account_registry, credits
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import lookup
from postroad.services.templates import templates
from postroad.storage.people import accounts
from postroad.web import request_reader
from postroad_postmark import api, numbers, schemas, translation
from tests.compat import compat_client

CREDITS = 250
EMAIL = {"From": "shop@example.com", "To": "ada@example.net", "Subject": "Hello", "TextBody": "Hi"}


@pytest_asyncio.fixture
async def client(ctx: context.Context, account: accounts.Account) -> AsyncIterator[httpx.AsyncClient]:
    await domains.add(ctx, account.id, "example.com", verified=True)
    await credits.add(ctx, account.id, CREDITS, None)
    key = await compat_client.new_key(ctx, account.id)
    async with compat_client.opened(ctx, api.API, {"X-Postmark-Server-Token": key}) as opened:
        yield opened


async def test_a_message_is_accepted_with_all_its_fields(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient
) -> None:
    response = await client.post(
        "/email",
        json=EMAIL
        | {
            "From": "Shop <shop@example.com>",
            "To": 'Ada <ada@example.net>, "Hopper, Grace" <grace@example.net>',
            "Cc": "cc@example.net",
            "Bcc": "bcc@example.net",
            "ReplyTo": "help@example.com",
            "HtmlBody": '<img src="cid:logo">',
            "Tag": "welcome",
            "Metadata": {"order": "1042"},
            "MessageStream": "broadcast",
            "Headers": [{"Name": "X-Shop", "Value": "7"}],
            "TrackOpens": True,
            "TrackLinks": "HtmlAndText",
            "Attachments": [
                {"Name": "logo.png", "Content": "aGk=", "ContentType": "image/png", "ContentID": "cid:logo"}
            ],
        },
    )
    body = response.json()
    assert response.status_code == 200
    assert sorted(body) == ["ErrorCode", "Message", "MessageID", "SubmittedAt", "To"]
    assert (body["ErrorCode"], body["Message"]) == (0, "OK")
    assert body["To"] == 'Ada <ada@example.net>, "Hopper, Grace" <grace@example.net>'
    receipt = (await lookup.details(ctx, account.id, body["MessageID"])).receipt
    assert receipt.to == ("Ada <ada@example.net>", '"Hopper, Grace" <grace@example.net>')
    assert (receipt.sender, receipt.cc, receipt.bcc) == (
        "Shop <shop@example.com>",
        ("cc@example.net",),
        ("bcc@example.net",),
    )
    assert (receipt.reply_to, receipt.tags, receipt.headers) == ("help@example.com", ("welcome",), {"X-Shop": "7"})
    assert receipt.metadata == {"order": "1042", "postmark-stream": "broadcast"}
    assert [(attachment.filename, attachment.content_id) for attachment in receipt.attachments] == [
        ("logo.png", "logo")
    ]


async def test_replies_go_to_several_addresses(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient
) -> None:
    sent = await client.post("/email", json=EMAIL | {"ReplyTo": '"Help, please" <help@example.com>, b@example.com'})
    receipt = (await lookup.details(ctx, account.id, sent.json()["MessageID"])).receipt
    assert receipt.reply_to == ('"Help, please" <help@example.com>', "b@example.com")


async def test_a_repeated_key_sends_nothing_twice(client: httpx.AsyncClient) -> None:
    first, second = [await client.post("/email", json=EMAIL, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    other = await client.post("/email", json=EMAIL | {"Subject": "Other"}, headers={"Idempotency-Key": "k"})
    assert first.json()["MessageID"] == second.json()["MessageID"]
    assert (other.status_code, other.json()["ErrorCode"]) == (409, 300)


@pytest.mark.parametrize(
    "change, status, code, message",
    [
        ({"From": "shop@elsewhere.example"}, 422, 400, "elsewhere.example"),
        ({"To": "nobody"}, 422, 300, "Error parsing 'To': "),
        ({"To": None}, 422, 300, "to: at least one address is required"),
        ({"ReplyTo": ", ".join(["a@example.com"] * 11)}, 422, 300, "reply_to: 11 addresses; at most 10 are allowed"),
        ({"ReplyTo": "a@example.com, b@"}, 422, 300, "Error parsing 'ReplyTo': "),
        ({"TextBody": None}, 422, 300, "text: give at least one of"),
        ({"Subject": None}, 422, 300, "subject: is required"),
        ({"Form": "x"}, 422, 300, "Form: unknown member; did you mean 'From'?"),
        ({"Tag": 7}, 422, 300, "Tag: expected a string, got an integer"),
        ({"Metadata": {"a b": "c"}}, 422, 300, "metadata."),
        ({"Headers": [{"Name": "X", "Value": "1"}, {"Name": "X", "Value": "2"}]}, 422, 300, "Headers: 'X' is given"),
        ({"Attachments": [{"Name": "a.txt", "Content": "§"}]}, 422, 300, "attachments[0]"),
    ],
)
async def test_a_bad_message_is_refused_in_postmarks_shape(
    client: httpx.AsyncClient, change: dict[str, Any], status: int, code: int, message: str
) -> None:
    response = await client.post("/email", json=EMAIL | change)
    assert sorted(response.json()) == ["ErrorCode", "Message"]
    assert (response.status_code, response.json()["ErrorCode"]) == (status, code)
    assert message in response.json()["Message"]


async def test_what_is_not_json_has_a_number_of_its_own(client: httpx.AsyncClient) -> None:
    broken = await client.post("/email", content=b'{"From":', headers={"Content-Type": "application/json"})
    form = await client.post("/email", data={"From": "x"})
    assert (broken.status_code, broken.json()["ErrorCode"]) == (422, 402)
    assert (form.status_code, form.json()["Message"]) == (422, "Content-Type: must be application/json")


async def test_keys_are_checked(ctx: context.Context, account: accounts.Account) -> None:
    reading = await compat_client.new_key(ctx, account.id, frozenset({callers.Scope.READ}))
    async with compat_client.opened(ctx, api.API) as client:
        for token, told in [
            ("POSTMARK_API_TEST", "use a test key of Postroad (pr_test_…)"),
            ("pr_live_wrong", ""),
            (reading, "does not have the scope 'send'"),
        ]:
            response = await client.post("/email", json=EMAIL, headers={"X-Postmark-Server-Token": token})
            assert (response.status_code, response.json()["ErrorCode"]) == (401, 10)
            assert told in response.json()["Message"]


async def test_a_test_key_sends_test_messages(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient
) -> None:
    key = await compat_client.new_key(ctx, account.id, frozenset({callers.Scope.SEND}), mode=statuses.Mode.TEST)
    sent = await client.post("/email", json=EMAIL, headers={"X-Postmark-Server-Token": key})
    message, _ = await lookup.find(ctx, account.id, sent.json()["MessageID"])
    assert message.is_test


async def test_credits_and_suspension_have_numbers(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient
) -> None:
    many = ", ".join(f"u{number}@example.net" for number in range(50))
    for _ in range(CREDITS // 50):
        assert (await client.post("/email", json=EMAIL | {"To": many})).status_code == 200
    response = await client.post("/email", json=EMAIL | {"To": many})
    assert (response.status_code, response.json()["ErrorCode"]) == (422, 405)
    batch = await client.post("/email/batch", json=[EMAIL | {"To": many}, EMAIL | {"To": "x"}])
    assert [one["ErrorCode"] for one in batch.json()] == [405, 300]
    await account_registry.suspend(ctx, account.id, reason="unpaid")
    response = await client.post("/email", json=EMAIL)
    assert (response.status_code, response.json()["ErrorCode"]) == (422, 413)


async def test_a_batch_has_a_result_for_each_item_in_order(client: httpx.AsyncClient) -> None:
    items = [EMAIL, EMAIL | {"To": "nobody"}, 7, EMAIL | {"From": "shop@elsewhere.example"}, EMAIL]
    response = await client.post("/email/batch", json=items)
    assert response.status_code == 200
    assert [one["ErrorCode"] for one in response.json()] == [0, 300, 300, 400, 0]
    assert response.json()[2]["Message"] == "body[2]: expected a JSON object, got an integer"
    ids = [one["MessageID"] for one in response.json() if not one["ErrorCode"]]
    assert len(set(ids)) == 2


async def test_a_batch_that_is_larger_than_ours_is_accepted_in_parts(client: httpx.AsyncClient) -> None:
    items = [EMAIL | {"To": f"u{number}@example.net"} for number in range(101)]
    first = await client.post("/email/batch", json=items, headers={"Idempotency-Key": "k"})
    again = await client.post("/email/batch", json=items, headers={"Idempotency-Key": "k"})
    assert [one["To"] for one in first.json()] == [item["To"] for item in items]
    assert {one["ErrorCode"] for one in first.json()} == {0}
    assert [one["MessageID"] for one in again.json()] == [one["MessageID"] for one in first.json()]


async def test_a_batch_of_too_many_or_none_is_refused(client: httpx.AsyncClient) -> None:
    many = await client.post("/email/batch", json=[EMAIL] * 501)
    none = await client.post("/email/batch", json=[])
    assert (many.status_code, many.json()["ErrorCode"]) == (422, 410)
    assert (none.status_code, none.json()["ErrorCode"]) == (422, 300)


async def test_templates_are_found_by_alias_and_number_and_get_nested_models(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient
) -> None:
    made = await templates.put(
        ctx, account.id, "welcome", subject="Hi {{user.name}}", text="{{user.name}}: {{n}}", html=None
    )
    mail_of = {"From": "shop@example.com", "To": "ada@example.net"}
    model = {"user": {"name": "Ada", "age": None}, "n": 3}
    number = numbers.of(made.id)
    for named in ({"TemplateAlias": "welcome"}, {"TemplateId": number}, {"TemplateId": "welcome"}):
        sent = await client.post("/email/withTemplate/", json=mail_of | named | {"TemplateModel": model})
        message, _ = await lookup.find(ctx, account.id, sent.json()["MessageID"])
        assert message.subject == "Hi Ada"
    missing = await client.post("/email/withTemplate", json=mail_of | {"TemplateId": 1, "TemplateModel": {}})
    assert (missing.status_code, missing.json()["ErrorCode"]) == (422, 1101)
    listed = await client.post(
        "/email/withTemplate", json=mail_of | {"TemplateAlias": "welcome", "TemplateModel": {"a": {"items": [1]}}}
    )
    assert (listed.status_code, listed.json()["ErrorCode"]) == (422, 300)
    assert "'user.name', 'n' are missing" in listed.json()["Message"]
    await templates.put(ctx, account.id, "rows", subject="{{#a.items}}{{id}};{{/a.items}}", text="x", html=None)
    rows = {"TemplateAlias": "rows", "TemplateModel": {"a": {"items": [{"id": 1}, {"id": 2}]}}}
    sent = await client.post("/email/withTemplate", json=mail_of | rows)
    message, _ = await lookup.find(ctx, account.id, sent.json()["MessageID"])
    assert message.subject == "1;2;"
    batch = await client.post(
        "/email/batchWithTemplates",
        json={
            "Messages": [
                mail_of | {"TemplateAlias": "welcome", "TemplateModel": model},
                mail_of | {"TemplateAlias": "none", "TemplateModel": {}},
                mail_of | {"TemplateModel": {}},
                mail_of | {"TemplateAlias": "welcome", "TemplateModel": {}},
            ]
        },
    )
    assert [one["ErrorCode"] for one in batch.json()] == [0, 1101, 300, 300]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = [field.encode_name for field in request_reader.inspect.type_info(schemas.Email).fields]  # type: ignore[attr-defined]
TEXTS = st.sampled_from(["ada@example.net", "Ada <ada@example.net>, b@c.example", "a@@", "x", "", "\n", "cid:x"])


@given(st.dictionaries(st.sampled_from([*NAMES, "TemplateModel", "TemplateAlias", "Else"]), TEXTS | JSON, max_size=8))
def test_any_json_is_translated_or_refused(document: dict[str, Any]) -> None:
    for kind, translate in (
        (schemas.Email, translation.email),
        (schemas.TemplateEmail, lambda given: translation.template_email(given, alias="a")),
    ):
        try:
            made = translate(request_reader.convert({"From": "a@example.com"} | document, kind, root="body"))
            validation.check(made)
        except errors.PostroadError:
            continue
        shown = {name: value for name, value in msgspec.to_builtins(made).items() if value is not None}
        assert request_reader.convert(shown, send_request.SendRequest, root="body") == made
