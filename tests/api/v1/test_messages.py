"""`/v1/messages`: the list with filters and cursor, one message with everything, and its bytes."""

import contextlib
import re
from typing import Any

import hypothesis
import msgspec
import pytest
from hypothesis import strategies

from postroad import context
from postroad.api.v1 import messages
from postroad.model.bounces import disposition
from postroad.model.delivery import throttle
from postroad.model.mail import send_request, statuses
from postroad.protocol.mime import address
from postroad.services import usage_limits
from postroad.services.messages import previews
from postroad.storage.mail import attempts
from tests import accepted_mail, contexts, queue_steps
from tests.api.management import AccountClients
from tests.services import claimed_mail


async def ids(clients: AccountClients, **filters: Any) -> list[str]:
    response = await clients.reader.get("/v1/messages", params=filters)
    assert response.status_code == 200, response.text
    return [message["id"] for message in response.json()["messages"]]


async def test_a_message_is_listed_and_shown_with_everything(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    clock.pass_seconds(0.25)
    message_id = await accepted_mail.accept(
        ctx,
        mine.account_id,
        sender="Shop <shop@example.com>",
        to=("Ada <ada@example.net>", "bob@example.net"),
        cc=("ADA@example.net",),
        bcc=("eve@example.net",),
        reply_to="help@example.com",
        headers={"X-Order": "7"},
        tags=("orders",),
        attachments=(send_request.Attachment("a.txt", "eHg=", "text/plain", "part1"),),
    )
    (listed,) = (await mine.reader.get("/v1/messages")).json()["messages"]
    response = await mine.reader.get(f"/v1/messages/{message_id}")
    shown = response.json()
    assert listed == {
        "id": message_id,
        "status": "queued",
        "source": "api",
        "from": "Shop <shop@example.com>",
        "subject": "Your order",
        "billing_status": "reserved",
        "recipient_count": 3,
        "credits_reserved": 3,
        "size": shown["size"],
        "created_at": "2027-01-15T08:00:00.250Z",
    }
    recipients = shown.pop("recipients")
    assert shown == {
        **listed,
        "to": ["Ada <ada@example.net>", "bob@example.net"],
        "cc": ["ADA@example.net"],
        "bcc": ["eve@example.net"],
        "reply_to": "help@example.com",
        "headers": {"X-Order": "7"},
        "tags": ["orders"],
        "attachments": [{"filename": "a.txt", "content_type": "text/plain", "size": 2, "content_id": "part1"}],
        "accepted_request_id": "req_" + "0" * 28,
        "attempts": [],
        "async_bounces": [],
        "request_id": response.headers["x-request-id"],
    }
    assert [one["email"] for one in recipients] == ["ada@example.net", "bob@example.net", "eve@example.net"]
    assert recipients[0] == {
        "id": recipients[0]["id"],
        "email": "ada@example.net",
        "status": "queued",
        "billing_status": "reserved",
        "attempt_count": 0,
        "last_smtp_code": None,
        "last_smtp_response": None,
        "delivered_at": None,
        "bounced_at": None,
        "queue": {
            "state": "ready",
            "next_attempt_at": None,
            "reason": {"code": "ready", "text": "ready; waiting for a free worker"},
            "ahead": 0,
        },
    }


async def test_what_was_not_given_is_empty_or_null(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    shown = (await mine.owner.get(f"/v1/messages/{await accepted_mail.accept(ctx, mine.account_id)}")).json()
    assert (shown["cc"], shown["bcc"], shown["tags"], shown["attachments"]) == ([], [], [], [])
    assert (shown["reply_to"], shown["headers"]) == (None, {})


async def test_several_addresses_for_replies_are_a_list(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    message_id = await accepted_mail.accept(ctx, mine.account_id, reply_to=("a@example.com", "Bo <b@example.com>"))
    shown = (await mine.reader.get(f"/v1/messages/{message_id}")).json()
    assert shown["reply_to"] == ["a@example.com", "Bo <b@example.com>"]


async def test_everything_of_the_send_api_is_here_too(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    message_id = await accepted_mail.accept(ctx, mine.account_id)
    sent = (await mine.owner.get(f"/emails/{message_id}?include=queue")).json()
    shown = (await mine.owner.get(f"/v1/messages/{message_id}")).json()
    assert shown.items() >= {**sent, "request_id": shown["request_id"]}.items()


async def test_metadata_is_returned_where_a_message_has_it(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    plain = await accepted_mail.accept(ctx, mine.account_id)
    marked = await accepted_mail.accept(ctx, mine.account_id, metadata={"order": "10:42", "empty": ""})
    for path in ("/emails/", "/v1/messages/"):
        assert "metadata" not in (await mine.owner.get(path + plain)).json()
        assert (await mine.owner.get(path + marked)).json()["metadata"] == {"order": "10:42", "empty": ""}
    assert await ids(mine, metadata="order:10:42") == [marked]
    assert await ids(mine, metadata="order:10") == await ids(mine, metadata="Order:10:42") == []


async def test_large_bytes_come_in_parts_that_hold_a_place(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    path = f"/v1/messages/{await accepted_mail.accept(ctx, mine.account_id, text='word ' * 100_000)}"
    with contextlib.ExitStack() as places:
        for _ in range(previews.DOWNLOADS.per_account):
            places.enter_context(usage_limits.acquire(ctx, previews.DOWNLOADS, mine.account_id))
        refused = await mine.reader.get(f"{path}/raw")
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert refused.headers["retry-after"] == "5"
    response = await mine.reader.get(f"{path}/raw")
    size = (await mine.reader.get(path)).json()["size"]
    assert len(response.content) == size > previews.SMALL_OCTETS
    assert response.headers["content-length"] == str(size)
    assert (await mine.reader.head(f"{path}/raw")).headers["content-length"] == str(size)
    assert not ctx.work_in_progress


async def test_the_bytes_are_downloaded_and_never_shown(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    message_id = await accepted_mail.accept(
        ctx, mine.account_id, html="<script>alert(1)</script>", bcc=("eve@example.net",)
    )
    response = await mine.reader.get(f"/v1/messages/{message_id}/raw")
    assert response.status_code == 200
    assert response.headers["content-type"] == "message/rfc822"
    assert response.headers["content-disposition"] == f'attachment; filename="{message_id}.eml"'
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-request-id"].startswith("req_")
    assert b"Subject: Your order\r\n" in response.content
    assert b"eve@" not in response.content
    size = (await mine.reader.get(f"/v1/messages/{message_id}")).json()["size"]
    assert len(response.content) == size


async def test_filters_choose(ctx: context.Context, mine: AccountClients, clock: contexts.Clock) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    first = await accepted_mail.accept(ctx, mine.account_id, tags=("a&b=c %",))
    clock.pass_seconds(60)
    second = await accepted_mail.accept(ctx, mine.account_id, sender="sale@example.com", source=statuses.Source.SMTP)
    clock.pass_seconds(60)
    third = await accepted_mail.accept(ctx, mine.account_id, to=("Bob+x@Example.net",))
    assert await ids(mine) == [third, second, first]
    assert await ids(mine, status="queued") == [third, second, first]
    assert await ids(mine, status="failed") == []
    assert await ids(mine, source="smtp") == [second]
    assert await ids(mine, **{"from": "Sale <SALE@example.com>"}) == [second]
    assert await ids(mine, to="bob+x@example.net") == [third]
    assert await ids(mine, tag="a&b=c %") == [first]
    assert await ids(mine, after="2027-01-15T08:01:00Z") == [third, second]
    assert await ids(mine, before="2027-01-15T08:01:00.000Z") == [first]
    assert await ids(mine, after="2027-01-15T09:01:00+01:00", before="2027-01-15T00:02:00-08:00") == [second]
    assert await ids(mine, after="0001-01-01T00:00:00Z", before="9999-12-31T23:59:60-23:59") == [third, second, first]
    assert await ids(mine, source="api", tag="a&b=c %", to="ada@example.net", status="queued") == [first]


async def test_a_search_takes_the_language_of_the_dashboard_beside_the_filters(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    first = await accepted_mail.accept(ctx, mine.account_id, tags=("a",), subject="Invoice 1")
    clock.pass_seconds(60)
    second = await accepted_mail.accept(ctx, mine.account_id, to=("bob@example.org",), subject="Invoice 2")
    clock.pass_seconds(60)
    test = await accepted_mail.accept(ctx, mine.account_id, is_test=True, subject="Invoice 3")
    assert await ids(mine, search="invoice") == [second, first]
    assert await ids(mine, search="to:@example.org OR tag:a -reminder") == [second, first]
    assert await ids(mine, search="invoice", tag="a") == [first]
    assert await ids(mine, search="tag:a", tag="b") == []
    # The narrower of two bounds counts.
    assert await ids(mine, search="after:2m", after="2027-01-15T08:01:00Z") == [second]
    assert await ids(mine, search="after:2027-01-15T08:01Z", after="2027-01-15T08:00:00Z") == [second]
    assert await ids(mine, search="before:2027-01-15T08:01Z", before="2028-01-15T08:00:00Z") == [first]
    assert await ids(mine, search="mode:test") == [test]
    assert await ids(mine, search=test) == [test]
    assert await ids(mine, search=test, mode="live") == []
    refused = await mine.owner.get("/v1/messages", params={"search": "invoice stauts:failed"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
    assert refused.json()["error"].startswith("search: unknown filter stauts: (did you mean status:?)")


async def test_a_test_key_finds_no_live_message_by_its_id(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    live = await accepted_mail.accept(ctx, mine.account_id)
    await mine.owner.post("/v1/credentials", json={"name": "Web shop"})
    made = (await mine.owner.post("/v1/api-keys", json={"name": "test", "mode": "test", "scopes": ["read"]})).json()
    headers = {"Authorization": f"Bearer {made['secret']}"}
    for search in (live, f"id:{live[:9]}*", "mode:live", "order"):
        found = await mine.nobody.get("/v1/messages", params={"search": search}, headers=headers)
        assert found.json()["messages"] == [], search


async def test_a_count_comes_when_it_is_asked_for(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    for tag in ("a", "a", "b"):
        await accepted_mail.accept(ctx, mine.account_id, tags=(tag,))
    plain = (await mine.reader.get("/v1/messages?tag=a&limit=1")).json()
    assert "count" not in plain
    assert "count" not in (await mine.reader.get("/v1/messages?tag=a&count=false")).json()
    counted = (await mine.reader.get("/v1/messages?tag=a&limit=1&count=true")).json()
    assert counted["count"] == {"number": 2, "exact": True}
    assert len(counted["messages"]) == 1
    assert (await mine.reader.get("/v1/messages?count=1")).status_code == 400


async def test_the_list_is_read_in_parts_newest_first(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    made = []
    for number in range(5):
        made.append(await accepted_mail.accept(ctx, mine.account_id, tags=("even",) if number % 2 == 0 else ()))
        clock.pass_seconds(1)
    first = (await mine.owner.get("/v1/messages?limit=2&tag=even")).json()
    rest = (await mine.owner.get(f"/v1/messages?limit=2&tag=even&cursor={first['next_cursor']}")).json()
    assert [one["id"] for one in first["messages"] + rest["messages"]] == [made[4], made[2], made[0]]
    assert rest["next_cursor"] is None


@pytest.mark.parametrize(
    "parameter", ["status", "source", "from", "to", "tag", "metadata", "after", "before", "cursor", "limit", "count"]
)
async def test_no_filter_is_more_than_refused(mine: AccountClients, parameter: str) -> None:
    hostile = ["", "%00", "a%00b", "%0d%0aX:1", "%ff", "%ed%a0%80", "x" * 5000, "%7f"]
    if parameter != "tag":
        hostile += ["%27%20OR%20%271%27=%271", "%25", "{}", "[]"]
    for value in hostile:
        response = await mine.owner.get(f"/v1/messages?{parameter}={value}")
        assert (response.status_code, response.json()["code"]) == (400, "invalid_request"), value
        assert response.json()["request_id"] == response.headers["x-request-id"]


async def test_search_characters_of_sql_are_only_characters(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    await accepted_mail.accept(ctx, mine.account_id, tags=("orders",))
    for tag in ("%", "_rders", "orders' OR '1'='1", "orders\\", '"', "o%"):
        assert await ids(mine, tag=tag) == []
    for parameter in ("account_id", "1=1", "status[$ne]", "from.x"):
        assert (await mine.owner.get("/v1/messages", params={parameter: "x"})).status_code == 400


async def test_an_error_names_its_parameter(mine: AccountClients) -> None:
    for parameter, value in (("after", "yesterday"), ("before", "2026-02-30T00:00:00Z"), ("from", "x"), ("limit", "0")):
        response = await mine.owner.get("/v1/messages", params={parameter: value})
        assert response.status_code == 400
        assert response.json()["error"].startswith(f"{parameter}: ")


@hypothesis.given(strategies.from_regex(re.compile(messages.ADDRESS_PATTERN[:-1] + r"\Z")))
def test_what_the_schema_of_a_filter_allows_is_an_address(text: str) -> None:
    hypothesis.assume(len(text) <= address.MAX_ADDRESS_OCTETS)
    assert address.parse(text).key == text.lower()


async def test_attempts_and_asynchronous_bounces_are_shown_with_what_they_mean(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    message_id = await accepted_mail.accept(ctx, mine.account_id)
    (key,) = await queue_steps.claim(ctx, mine.account_id)
    await queue_steps.defer(ctx, key)
    async with ctx.store.transaction() as tx:
        report = attempts.AsyncBounce(*key, clock.now, "failed", "5.1.1", "address", "no such user")
        await attempts.insert_async_bounces(tx, [report])
    shown = (await mine.reader.get(f"/v1/messages/{message_id}")).json()
    assert shown["attempts"] == [
        {
            "recipient_id": key[2],
            "started_at": "2027-01-15T08:00:00.000Z",
            "duration_ms": 250.0,
            "host": "mx.example.net",
            "address": "192.0.2.1",
            "tls": "TLSv1.3",
            "source": "",
            "verdict": "retry",
            "smtp_code": 451,
            "smtp_response": "4.7.1 greylisted",
            "fault": "rate",
            "reason": "greylisted",
            "explanation": disposition.explain("greylisted"),
            "in_doubt": False,
        }
    ]
    assert shown["async_bounces"] == [
        {
            "recipient_id": key[2],
            "received_at": "2027-01-15T08:00:00.000Z",
            "action": "failed",
            "status": "5.1.1",
            "fault": "address",
            "response": "no such user",
        }
    ]


async def test_a_waiting_message_is_tried_now(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    message_id = await accepted_mail.accept(ctx, mine.account_id, to=("ada@example.net", "bob@example.net"))
    (key, held) = await queue_steps.claim(ctx, mine.account_id, most=2)
    await queue_steps.defer(ctx, key)
    path = f"/v1/messages/{message_id}/retry"
    assert (await mine.reader.post(path)).status_code == 403
    clock.pass_seconds(31)
    response = await mine.owner.post(path)
    request_id = response.headers["x-request-id"]
    assert (response.status_code, response.json()) == (200, {"retried": 1, "sending": 1, "request_id": request_id})
    refused = await mine.owner.post(path, json={"recipient_id": held[2]})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    await queue_steps.defer(ctx, held)
    soon = await mine.owner.post(path, json={"recipient_id": held[2]})
    assert (soon.status_code, soon.json()["code"], soon.headers["retry-after"]) == (429, "rate_limited", "31")
    clock.pass_seconds(31)
    again = await mine.owner.post(path, json={"recipient_id": held[2]})
    assert (again.status_code, again.json()["retried"], again.json()["sending"]) == (200, 1, 0)


async def test_an_attempt_that_did_not_succeed_has_its_conversation(ctx: context.Context, mine: AccountClients) -> None:
    message_id, claims = await claimed_mail.accepted(ctx, mine.account_id, "ada@example.net", "bob@example.net")
    for claim, verdict in zip(claims, (disposition.Verdict.DELIVERED, disposition.Verdict.BOUNCED), strict=True):
        said = "" if verdict is disposition.Verdict.DELIVERED else "C: DATA\nS: 554 5.7.1 no"
        outcome = claimed_mail.outcome(ctx, claim, verdict, recipient_count=2)
        await ctx.outcome_commits.submit([msgspec.structs.replace(outcome, conversation=said)])
    delivered, bounced = (await mine.reader.get(f"/v1/messages/{message_id}")).json()["attempts"]
    assert bounced["conversation"] == "C: DATA\nS: 554 5.7.1 no"
    assert "conversation" not in delivered


async def test_retries_have_a_rate_of_their_own(
    ctx: context.Context,
    mine: AccountClients,
    clock: contexts.Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(usage_limits, "REPEAT_RATE", throttle.RateLimit(rate=1, burst=1))
    await accepted_mail.allow_sending(ctx, mine.account_id)
    paths = []
    for _ in range(2):
        paths.append(f"/v1/messages/{await accepted_mail.accept(ctx, mine.account_id)}/retry")
        assert (await mine.owner.post(paths[-1])).status_code == 409  # nothing waits: does not count
        (key,) = await queue_steps.claim(ctx, mine.account_id)
        await queue_steps.defer(ctx, key)
    clock.pass_seconds(31)
    assert (await mine.owner.post(paths[0])).status_code == 200
    refused = await mine.owner.post(paths[1])
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert refused.json()["error"] == "more than 1 retries per second; wait for Retry-After seconds"
    assert refused.headers["retry-after"] == "1"
    clock.pass_seconds(1)
    assert (await mine.owner.post(paths[1])).status_code == 200
