"""Requests to compatible APIs, above all to Postmark's, that are made to cost others their time or memory."""

import dataclasses
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from postroad import context, errors
from postroad.api import extension_api
from postroad.concurrency import fairness
from postroad.model.bounces import disposition
from postroad.services import usage_limits
from postroad.services.suppressions import suppression_list
from postroad.services.templates import templates
from postroad.storage.engine import store
from postroad.storage.mail import suppressions as stored
from postroad.storage.people import accounts
from postroad_postmark import api, long_lists, numbers, translation
from postroad_resend import api as resend
from tests import accepted_mail
from tests.compat import compat_client
from tests.services import claimed_mail


class CountedStore:
    """A real store that counts how often it is asked."""

    def __init__(self, real: store.Store) -> None:
        self._real = real
        self.questions = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything is the real store's
        self.questions += name in {"reading", "scanning", "transaction"}
        return getattr(self._real, name)


EMAIL: dict[str, Any] = {"From": "shop@example.com", "To": "ada@example.net", "Subject": "Hello", "TextBody": "Hi"}


@pytest_asyncio.fixture
async def client(ctx: context.Context, account: accounts.Account) -> AsyncIterator[httpx.AsyncClient]:
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id)
    async with compat_client.opened(ctx, api.API, {"X-Postmark-Server-Token": key}) as opened:
        yield opened


@pytest.mark.parametrize("field", ["From", "To", "Cc", "Bcc", "ReplyTo"])
async def test_a_list_of_addresses_is_not_read_beyond_what_recipients_need(
    client: httpx.AsyncClient, field: str
) -> None:
    hostile = EMAIL | {field: "(" * 20_001}
    for path, body in (("/email", hostile), ("/email/batch", [hostile])):
        response = await client.post(path, json=body)
        (result,) = response.json() if isinstance(body, list) else [response.json()]
        assert result["ErrorCode"] == 300
        assert result["Message"] == f"{field}: at most 20000 characters are allowed; send several messages"


@pytest.mark.parametrize(
    "model, message",
    [
        ({"a" * 50: {"b" * 14: 1}}, "a name has at most 64 characters"),
        ({"a" * 100_000: {str(n): n for n in range(9)}}, "a name has at most 64 characters"),
        ({f"a{n}": n for n in range(33)}, "has more than 32 values"),
    ],
)
def test_a_small_model_does_not_become_large(model: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=message):
        translation.values(model)


def test_a_model_may_have_as_many_values_and_names_as_long_as_a_template_can_use() -> None:
    model = {"a" * 50: {"b" * 13: 1}} | {f"a{n}": n for n in range(31)}
    assert len(translation.values(model)) == 32


async def test_more_header_fields_than_a_message_may_have_are_not_read(client: httpx.AsyncClient) -> None:
    fields = [{"Name": f"X-{n}", "Value": "1"} for n in range(51)]
    response = await client.post("/email", json=EMAIL | {"Headers": fields})
    assert response.json() == {"ErrorCode": 300, "Message": "Headers: 51 fields; at most 50 are allowed"}


async def test_all_but_small_batches_are_read_in_threads(ctx: context.Context, account: accounts.Account) -> None:
    def read(place: int, item: str) -> tuple[int, str, bool]:
        return place, item, threading.current_thread() is threading.main_thread()

    few, many = list("abc"), list("abcdefghi")
    assert await extension_api.read_each(ctx, account.id, few, read) == [(n, few[n], True) for n in range(3)]
    assert await extension_api.read_each(ctx, account.id, many, read) == [(n, many[n], False) for n in range(9)]


async def test_the_templates_of_a_batch_are_looked_up_together(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    made = await templates.put(ctx, account.id, "welcome", subject="Hi", text="Hello", html=None)
    number = numbers.of(made.id)
    base: dict[str, Any] = {"From": "shop@example.com", "To": "ada@example.net", "TemplateModel": {}}
    known: list[dict[str, Any]] = [{"TemplateAlias": "welcome"}, {"TemplateId": number}, {"TemplateId": str(number)}]
    unknown: list[dict[str, Any]] = [{"TemplateId": n} for n in range(1, 20)]
    response = await client.post(
        "/email/batchWithTemplates", json={"Messages": [base | one for one in known + unknown]}
    )
    assert [one["ErrorCode"] for one in response.json()] == [0] * 3 + [1101] * 19


async def test_a_long_suppression_list_is_sent_page_by_page(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    for source, domain in ((stored.Source.COMPLAINT, "a.example"), (stored.Source.IMPORT, "b.example")):
        rows = [
            stored.Suppression(account.id, f"{n:04}@{domain}", source, "imported", None, None, ctx.clock())
            for n in range(600)
        ]
        await suppression_list.add_in_batches(ctx, rows, audit_subject=None)
    path = "/message-streams/outbound/suppressions/dump"
    for query, count in (({}, 1_200), ({"SuppressionReason": "SpamComplaint"}, 600), ({"Origin": "Nobody"}, 0)):
        response = await client.get(path, params=query)
        assert len({one["EmailAddress"] for one in response.json()["Suppressions"]}) == count
        assert "content-length" not in response.headers, "the list is in memory as a whole"
    for email, count in (("0599@B.example", 1), ("0600@b.example", 0), ("nobody", 0)):
        response = await client.get(path, params={"EmailAddress": email})
        assert len(response.json()["Suppressions"]) == count
    late = await client.get(path, params={"fromdate": "tomorrow"})
    assert late.json()["ErrorCode"] == 300


async def test_bounces_are_not_looked_up_one_by_one(ctx: context.Context, account: accounts.Account) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    to = [f"{n:02}@example.net" for n in range(40)]
    _, claimed = await claimed_mail.another(ctx, account.id, *to)
    for one in claimed:
        verdict = disposition.Verdict.BOUNCED
        ended = claimed_mail.outcome(ctx, one, verdict, code=550, response="gone", suppress=True, recipient_count=40)
        await ctx.outcome_commits.submit([ended])
    key = await compat_client.new_key(ctx, account.id)
    counted = CountedStore(ctx.store)
    watched = dataclasses.replace(ctx, store=counted)
    async with compat_client.opened(watched, api.API, {"X-Postmark-Server-Token": key}) as client:
        for query, total in (({}, 40), ({"type": "Unknown"}, 40), ({"inactive": "false"}, 0), ({"count": 2}, 3)):
            counted.questions = 0
            found = (await client.get("/bounces", params=query)).json()
            assert (found["TotalCount"], len(found["Bounces"])) == (total, min(total, query.get("count", 100)))
            assert counted.questions < 10
        odd = (await client.get("/bounces", params={"type": "Unknown", "offset": 39})).json()["Bounces"]
        assert [(one["Email"], one["Inactive"]) for one in odd] == [("39@example.net", True)]


async def test_a_large_template_is_validated_in_a_thread(ctx: context.Context, account: accounts.Account) -> None:
    key = await compat_client.new_key(ctx, account.id)
    threads = compat_client.CountedThreads()
    watched = dataclasses.replace(ctx, threads=threads)  # type: ignore[arg-type]
    async with compat_client.opened(watched, api.API, {"X-Postmark-Server-Token": key}) as client:
        for repeated, runs in ((100, 0), (4_000, 1)):
            source = "Hi {{name}}\n" * repeated
            threads.parties.clear()
            response = await client.post("/templates/validate", json={"Subject": "Hi", "TextBody": source})
            assert response.json()["TextBody"]["RenderedContent"] == "Hi name_Value\n" * repeated
            assert threads.parties == [account.id] * runs


async def test_a_small_template_that_loops_is_validated_in_a_thread(
    ctx: context.Context, account: accounts.Account
) -> None:
    """It would take a tenth of a second, for each of its three parts, in which nobody else is served."""
    key = await compat_client.new_key(ctx, account.id)
    threads = compat_client.CountedThreads()
    watched = dataclasses.replace(ctx, threads=threads)  # type: ignore[arg-type]
    async with compat_client.opened(watched, api.API, {"X-Postmark-Server-Token": key}) as client:
        threads.parties.clear()
        draft = {"TextBody": "{{#a}}{{#a}}x{{/a}}{{/a}}", "TestRenderModel": {"a": [1, 2]}}
        response = await client.post("/templates/validate", json=draft)
        assert response.json()["TextBody"]["RenderedContent"] == "xxxx"
        assert threads.parties == [account.id]


@pytest.mark.parametrize("service", ["postmark", "resend"])
async def test_a_change_of_many_suppressions_is_one_change(
    ctx: context.Context, account: accounts.Account, service: str
) -> None:
    key = await compat_client.new_key(ctx, account.id)
    counted = CountedStore(ctx.store)
    watched = dataclasses.replace(ctx, store=counted)
    emails = [f"{n:02}@example.net" for n in range(49)] + ["00@EXAMPLE.net"]
    headers = {"X-Postmark-Server-Token": key, "Authorization": f"Bearer {key}"}
    path, body = (
        "/message-streams/outbound/suppressions",
        {"Suppressions": [{"EmailAddress": email} for email in emails]},
    )
    calls: list[tuple[str, Any]] = [(path, body), (f"{path}/delete", body)]
    if service == "resend":
        calls = [(f"/suppressions/batch/{one}", {"emails": emails}) for one in ("add", "remove")]
    async with compat_client.opened(watched, api.API if service == "postmark" else resend.API, headers) as client:
        for (path, body), left in zip(calls, (49, 0), strict=True):
            counted.questions = 0
            response = await client.post(path, json=body)
            results = response.json()["Suppressions" if service == "postmark" else "data"]
            assert len(results) == 50
            assert not [
                result for result in results if result.get("Status") == "Failed" or result.get("deleted") is False
            ]
            assert counted.questions < 10
            assert await suppression_list.count(ctx, account.id) == left


@pytest.mark.parametrize("path", ["/messages/outbound", "/bounces"])
async def test_an_account_reads_one_long_list_at_a_time(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account, path: str
) -> None:
    with usage_limits.acquire(ctx, long_lists.LONG_LISTS, account.id):
        refused = await client.get(path, params={"count": 1, "offset": 999})
        assert (refused.status_code, refused.json()["ErrorCode"]) == (429, 429)
        assert refused.json()["Message"].startswith("long lists: at most 1 at once per account")
        assert (await client.get(path, params={"count": 1, "offset": 998})).status_code == 200
    assert (await client.get(path, params={"count": 500, "offset": 9_999})).status_code == 200


@pytest.mark.parametrize("service", ["Postmark", "Resend"])
async def test_an_accepted_message_is_never_delayed(
    ctx: context.Context, account: accounts.Account, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    """Its status is 200, as that of a page; but it has a rate of its own."""
    paced: list[bool] = []

    def of_account(_self: object, _account_id: str, pace: fairness.Pace, **_: object) -> float:
        paced.append(pace is fairness.Pace.REFUSALS)
        return 0.0

    monkeypatch.setattr(fairness.ResponseDelays, "of_account", of_account)
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id)
    if service == "Postmark":
        compatible, headers = api.API, {"X-Postmark-Server-Token": key}
        one, many, good, bad = "/email", "/email/batch", EMAIL, EMAIL | {"To": "nobody"}
    else:
        compatible, headers = resend.API, {"Authorization": f"Bearer {key}", "x-batch-validation": "permissive"}
        good = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Hello", "text": "Hi"}
        one, many, bad = "/emails", "/emails/batch", good | {"to": "nobody"}
    async with compat_client.opened(ctx, compatible, headers) as client:
        for path, body in ((one, good), (many, [bad, good])):
            assert (await client.post(path, json=body)).status_code == 200
        assert paced == []
        assert (await client.post(many, json=[bad])).status_code == 200
        assert (await client.post(one, json=bad)).status_code == 422
        assert paced == [False, True]
