"""Postmark's messages, bounces, suppressions, templates and domains: filters, refusals, scopes and other accounts."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import hypothesis
import msgspec
import pytest
import pytest_asyncio
from hypothesis import strategies as st

from postroad import context
from postroad.model.bounces import disposition
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.services.accounts import account_registry
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.storage.people import accounts
from postroad_postmark import api
from tests import accepted_mail
from tests.compat import compat_client
from tests.contexts import Clock
from tests.services import claimed_mail

EMAIL = {"From": "shop@example.com", "To": "ada@example.net", "Subject": "Your order", "TextBody": "On its way"}
SUPPRESSIONS = "/message-streams/outbound/suppressions"


def presented(key: str) -> dict[str, str]:
    return {"X-Postmark-Server-Token": key}


@pytest_asyncio.fixture
async def client(ctx: context.Context, account: accounts.Account) -> AsyncIterator[httpx.AsyncClient]:
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id)
    async with compat_client.opened(ctx, api.API, presented(key)) as opened:
        yield opened


async def bounced(ctx: context.Context, account: accounts.Account, *to: str, **fields: object) -> str:
    """A message whose recipients have bounced; their addresses are suppressed."""
    message_id, claimed = await claimed_mail.another(ctx, account.id, *to, **fields)
    for one in claimed:
        verdict = disposition.Verdict.BOUNCED
        ended = claimed_mail.outcome(
            ctx, one, verdict, code=550, response="gone", suppress=True, recipient_count=len(to)
        )
        await ctx.outcome_commits.submit([ended])
    return message_id


async def test_messages_are_found_by_each_filter(client: httpx.AsyncClient, clock: Clock) -> None:
    sent = await client.post(
        "/email", json=EMAIL | {"Tag": "orders", "MessageStream": "broadcast", "Metadata": {"order": "10:42"}}
    )
    clock.pass_seconds(1)
    other = await client.post("/email", json=EMAIL | {"To": "bob@example.net", "Subject": "Something else"})
    first, second = sent.json()["MessageID"], other.json()["MessageID"]
    expected: list[tuple[dict[str, Any], list[str]]] = [
        ({}, [second, first]),
        ({"recipient": "bob@example.net"}, [second]),
        ({"fromemail": "shop@example.com", "count": 1, "offset": 1}, [first]),
        ({"tag": "orders"}, [first]),
        ({"subject": "ORDER"}, [first]),
        ({"messagestream": "broadcast"}, [first]),
        ({"metadata_order": "10:42"}, [first]),
        ({"metadata_order": "10"}, []),
        ({"status": "queued"}, [second, first]),
        ({"status": "sent"}, []),
        ({"fromdate": "2027-01-15", "todate": "2027-01-15"}, [second, first]),
        ({"fromdate": "2027-01-16T00:00:00"}, []),
        ({"todate": "2027-01-14"}, []),
    ]
    for query, found in expected:
        response = await client.get("/messages/outbound", params=query)
        assert (query, [one["MessageID"] for one in response.json()["Messages"]]) == (query, found)
    shown = (await client.get("/messages/outbound", params={"tag": "orders"})).json()["Messages"][0]
    assert (shown["MessageStream"], shown["Status"], shown["Metadata"]) == ("broadcast", "Queued", {"order": "10:42"})
    assert shown["To"] == [{"Email": "ada@example.net", "Name": None}]


@pytest.mark.parametrize(
    "path, code, message",
    [
        ("/messages/outbound?count=501", 300, "count: at most 500"),
        ("/messages/outbound?colour=red", 300, "colour: unknown parameter"),
        ("/messages/outbound?metadata_a=1&metadata_b=2", 300, "metadata_*: sent more than once"),
        ("/messages/outbound?metadata_a=1&messagestream=x", 300, "messagestream: cannot be combined"),
        ("/messages/outbound?metadata_=1", 300, "metadata: give a key and its value"),
        ("/messages/outbound?fromdate=today", 300, "fromdate: must be a date"),
        ("/messages/outbound?recipient=nobody", 300, "to: "),
        ("/messages/outbound/em_1/details", 701, "no such message"),
        ("/messages/outbound/em_1/dump", 701, "no such message"),
        ("/bounces/7", 407, "no such bounce"),
        ("/bounces/x", 407, "no such bounce"),
        ("/bounces?messageID=x", 701, "no such message"),
        ("/templates/none", 1101, "no such template"),
        ("/templates/7", 1101, "no such template"),
        ("/domains/7", 510, "no such domain"),
        ("/stats/outbound?tag=orders", 300, "tag: unknown parameter"),
    ],
)
async def test_what_is_not_there_or_not_valid_is_refused(
    client: httpx.AsyncClient, path: str, code: int, message: str
) -> None:
    response = await client.get(path)
    assert (response.status_code, response.json()["ErrorCode"]) == (422, code)
    assert message in response.json()["Message"]


async def test_bounces_are_found_shown_and_activated(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient
) -> None:
    message_id = await bounced(ctx, account, "ada@example.net", "bob@example.net", tags=("orders",))
    found = (await client.get("/bounces", params={"messageID": message_id})).json()
    assert found["TotalCount"] == 2
    expected: list[tuple[dict[str, Any], list[str]]] = [
        ({"emailFilter": "bob@example.net"}, ["bob@example.net"]),
        ({"tag": "orders", "count": 1}, ["ada@example.net"]),
        ({"tag": "other"}, []),
        ({"type": "SpamComplaint"}, []),
        ({"inactive": "true", "offset": 1}, ["bob@example.net"]),
        ({"inactive": "false"}, []),
    ]
    for query, emails in expected:
        listed = (await client.get("/bounces", params=query)).json()["Bounces"]
        assert (query, [one["Email"] for one in listed]) == (query, emails)
    number = found["Bounces"][1]["ID"]
    assert isinstance(number, int)
    assert number < 2**53
    shown = (await client.get(f"/bounces/{number}")).json()
    assert shown == found["Bounces"][1]
    assert (shown["Email"], shown["Inactive"], shown["Details"]) == ("bob@example.net", True, "550 gone")
    assert (await client.get(f"/bounces/{number}/dump")).json() == {"Body": "550 gone"}
    for _ in ("suppressed", "active already"):
        activated = (await client.put(f"/bounces/{number}/activate")).json()
        assert (activated["Message"], activated["Bounce"]["Inactive"]) == ("OK", False)
    listed = (await client.get(f"{SUPPRESSIONS}/dump")).json()["Suppressions"]
    assert [(one["EmailAddress"], one["SuppressionReason"]) for one in listed] == [("ada@example.net", "HardBounce")]
    events = (await client.get(f"/messages/outbound/{message_id}/details")).json()["MessageEvents"]
    assert [event["Type"] for event in events] == ["Bounced", "Bounced"]
    assert events[1]["Details"]["BounceID"] == str(number)
    assert (await client.get("/stats/outbound")).json()["BounceRate"] == 100


async def test_a_bounce_has_the_type_of_its_cause(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient
) -> None:
    names = ("unknown_address", "mailbox_full", "spam_suspected", "suppressed")
    _, claimed = await claimed_mail.another(ctx, account.id, *(f"{name}@example.net" for name in names))
    for one in claimed:
        name = one.email_key.partition("@")[0]
        ended = claimed_mail.outcome(ctx, one, disposition.Verdict.BOUNCED, recipient_count=4)
        assert ended.attempt is not None
        attempt = None if name == "suppressed" else msgspec.structs.replace(ended.attempt, reason=name)
        await ctx.outcome_commits.submit([msgspec.structs.replace(ended, attempt=attempt)])
    listed = (await client.get("/bounces")).json()["Bounces"]
    assert {one["Email"].partition("@")[0]: (one["Type"], one["TypeCode"], one["Name"]) for one in listed} == {
        "unknown_address": ("HardBounce", 1, "Hard bounce"),
        "mailbox_full": ("SoftBounce", 4096, "Soft bounce"),
        "spam_suspected": ("SpamNotification", 512, "Spam notification"),
        "suppressed": ("ManuallyDeactivated", 100_002, "Manually deactivated"),
    }
    soft = (await client.get("/bounces", params={"type": "SoftBounce"})).json()
    assert [one["Email"] for one in soft["Bounces"]] == ["mailbox_full@example.net"]
    shown = (await client.get(f"/bounces/{soft['Bounces'][0]['ID']}")).json()
    assert (shown["Type"], shown["Inactive"]) == ("SoftBounce", False)


async def test_suppressions_have_a_result_each(client: httpx.AsyncClient) -> None:
    body = {"Suppressions": [{"EmailAddress": "Ada@example.net"}, {"EmailAddress": "nobody"}]}
    made = (await client.post(SUPPRESSIONS, json=body)).json()["Suppressions"]
    assert [one["Status"] for one in made] == ["Suppressed", "Failed"]
    for query, count in [({}, 1), ({"SuppressionReason": "HardBounce"}, 0), ({"EmailAddress": "ADA@example.net"}, 1)]:
        listed = (await client.get(f"{SUPPRESSIONS}/dump", params=query)).json()["Suppressions"]
        assert (query, len(listed)) == (query, count)
    gone = (await client.post(f"{SUPPRESSIONS}/delete", json=body)).json()["Suppressions"]
    assert [one["Status"] for one in gone] == ["Deleted", "Failed"]
    many = await client.post(SUPPRESSIONS, json={"Suppressions": [{"EmailAddress": "a@b.example"}] * 51})
    assert (many.status_code, many.json()["ErrorCode"]) == (422, 300)


async def test_templates_are_created_edited_and_removed(client: httpx.AsyncClient) -> None:
    made = await client.post("/templates", json={"Name": "Welcome, new!", "Subject": "Hi", "TextBody": "Hi {{name}}"})
    assert made.json()["Alias"] == "welcome-new"
    number = made.json()["TemplateId"]
    again = await client.post("/templates", json={"Alias": "welcome-new", "Subject": "Hi", "TextBody": "Hi"})
    assert (again.status_code, again.json()["Message"][:5]) == (422, "Alias")
    await client.put(f"/templates/{number}", json={"HtmlBody": "<p>{{name}}</p>"})
    shown = (await client.get("/templates/welcome-new")).json()
    assert (shown["Subject"], shown["TextBody"], shown["HtmlBody"]) == ("Hi", "Hi {{name}}", "<p>{{name}}</p>")
    assert (await client.get("/templates?Count=1")).json()["TotalCount"] == 1
    for body, told in [
        ({"Name": "x", "Subject": "Hi", "TextBody": "{{#each people}}"}, "is not a placeholder"),
        ({"Name": "x", "TextBody": "Hi"}, "subject: "),
        ({"Name": "!", "Subject": "Hi", "TextBody": "Hi"}, "Alias: give Alias"),
        ({"Name": "x", "Subject": "Hi", "TextBody": "Hi", "TemplateType": "Layout"}, "does not support layouts"),
    ]:
        refused = await client.post("/templates", json=body)
        assert (refused.status_code, refused.json()["ErrorCode"]) == (422, 300)
        assert told in refused.json()["Message"]
    renamed = await client.put(f"/templates/{number}", json={"Alias": "other"})
    assert renamed.json()["Message"] == "Alias: cannot be changed; create a template with the new alias"
    gone = await client.delete(f"/templates/{number}")
    assert gone.json() == {"ErrorCode": 0, "Message": "Template welcome-new removed."}
    assert (await client.get("/templates/welcome-new")).json()["ErrorCode"] == 1101


async def test_webhooks_are_created_changed_and_removed(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient
) -> None:
    triggers = {"Bounce": {"Enabled": True, "IncludeContent": True}, "Open": {"Enabled": False}}
    made = await client.post(
        "/webhooks",
        json={
            "Url": "https://app.example/hooks",
            "HttpAuth": {"Username": "u", "Password": "hidden"},
            "HttpHeaders": [{"Name": "X-Token", "Value": "hidden"}],
            "Triggers": triggers,
        },
    )
    assert made.status_code == 200, made.text
    assert "hidden" not in made.text
    enabled = [name for name, one in made.json()["Triggers"].items() if one["Enabled"]]
    assert enabled == ["Bounce"]
    number = made.json()["ID"]
    changed = await client.put(f"/webhooks/{number}", json={"Triggers": {"Delivery": {"Enabled": True}}})
    assert [name for name, one in changed.json()["Triggers"].items() if one["Enabled"]] == ["Delivery", "Bounce"]
    with_mail = await client.put(f"/webhooks/{number}", json={"Triggers": {"Inbound": {"Enabled": True}}})
    enabled = [name for name, one in with_mail.json()["Triggers"].items() if one["Enabled"]]
    assert enabled == ["Delivery", "Bounce", "Inbound"]
    await client.put(f"/webhooks/{number}", json={"Triggers": {"Inbound": {"Enabled": False}}})
    for body, told in [
        ({"Triggers": {"Open": {"Enabled": True}}}, "Triggers.Open: Postroad does not track mail"),
        ({"MessageStream": "broadcast"}, "MessageStream: an endpoint gets the events of all"),
        ({"Url": "ftp://x"}, ""),
        ({"Triggers": {"Bounce": {"Enabled": False}, "Delivery": {"Enabled": False}}}, ""),
    ]:
        refused = await client.put(f"/webhooks/{number}", json=body)
        assert (refused.status_code, refused.json()["ErrorCode"]) == (422, 300)
        assert told in refused.json()["Message"]
    assert (await client.post("/webhooks", json={"Triggers": triggers})).json()["Message"] == "Url: is required"
    await endpoints.create(ctx, account.id, endpoint_settings.Changes(url="https://app.example/own"))
    other = await account_registry.create(ctx, "Other")
    key = presented(await compat_client.new_key(ctx, other.id))
    assert (await client.delete(f"/webhooks/{number}", headers=key)).json()["ErrorCode"] == 404
    listed = (await client.get("/webhooks")).json()["Webhooks"]
    assert [one["ID"] for one in listed] == [number]
    assert (await client.delete(f"/webhooks/{number}")).json()["ErrorCode"] == 0
    assert (await client.get(f"/webhooks/{number}")).status_code == 404


@pytest.mark.parametrize("path", ["PUT verifyDkim", "PUT verifyDKIM", "PUT verifyReturnPath", "POST verifyspf"])
async def test_verifying_a_domain_that_was_just_checked_shows_it(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient, path: str
) -> None:
    (domain,) = (await client.get("/domains")).json()["Domains"]
    ctx.dns.check_requested_at.put((account.id, domain["Name"]), ctx.clock())
    method, action = path.split()
    verified = await client.request(method, f"/domains/{domain['ID']}/{action}")
    assert (verified.status_code, verified.json()) == (200, domain)
    assert domain["SPFHost"] == "bounces.example.com"
    unknown = await client.request(method, f"/domains/7/{action}")
    assert unknown.json()["ErrorCode"] == 510


async def test_errors_about_the_key_name_its_header_field(client: httpx.AsyncClient) -> None:
    refused = await client.get("/server", headers=presented("hunter2"))
    assert (refused.status_code, refused.json()["ErrorCode"]) == (401, 10)
    assert refused.json()["Message"].startswith("X-Postmark-Server-Token: this is not an API key of Postroad")
    assert "Authorization" not in refused.json()["Message"]


async def test_another_account_sees_nothing(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient
) -> None:
    message_id = await bounced(ctx, account, "ada@example.net")
    number = (await client.get("/bounces")).json()["Bounces"][0]["ID"]
    template = await client.post("/templates", json={"Name": "mine", "Subject": "Hi", "TextBody": "Hi"})
    domain = (await client.get("/domains")).json()["Domains"][0]["ID"]
    other = await account_registry.create(ctx, "Other")
    key = await compat_client.new_key(ctx, other.id)
    for method, path, code in [
        ("GET", f"/messages/outbound/{message_id}/details", 701),
        ("GET", f"/messages/outbound/{message_id}/dump", 701),
        ("GET", f"/bounces/{number}", 407),
        ("PUT", f"/bounces/{number}/activate", 407),
        ("GET", f"/templates/{template.json()['TemplateId']}", 1101),
        ("DELETE", "/templates/mine", 1101),
        ("DELETE", f"/domains/{domain}", 510),
    ]:
        response = await client.request(method, path, headers=presented(key))
        assert (path, response.json()["ErrorCode"]) == (path, code)
    for path, member in [
        ("/messages/outbound", "Messages"),
        ("/bounces", "Bounces"),
        ("/templates", "Templates"),
        ("/domains", "Domains"),
        (f"{SUPPRESSIONS}/dump", "Suppressions"),
    ]:
        assert (await client.get(path, headers=presented(key))).json()[member] == []


async def test_a_test_key_sees_test_messages_only(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient
) -> None:
    live = (await client.post("/email", json=EMAIL)).json()["MessageID"]
    scopes = frozenset({callers.Scope.SEND, callers.Scope.READ})
    key = presented(await compat_client.new_key(ctx, account.id, scopes, mode=statuses.Mode.TEST))
    test = (await client.post("/email", json=EMAIL, headers=key)).json()["MessageID"]
    listed = (await client.get("/messages/outbound", headers=key)).json()["Messages"]
    assert [(one["MessageID"], one["Sandboxed"]) for one in listed] == [(test, True)]
    hidden = await client.get(f"/messages/outbound/{live}/details", headers=key)
    assert hidden.json()["ErrorCode"] == 701
    unscoped = await client.get("/templates", headers=key)
    assert (unscoped.status_code, unscoped.json()["ErrorCode"]) == (401, 10)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**70) | st.floats() | st.text(max_size=9),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)
NAMES = ["From", "To", "Subject", "TextBody", "Alias", "Name", "Messages", "Suppressions", "TemplateModel", "Metadata"]
BODIES = JSON | st.dictionaries(st.sampled_from(NAMES), JSON, max_size=5) | st.lists(JSON, max_size=3)


async def test_no_body_is_an_internal_error(client: httpx.AsyncClient) -> None:
    taking = [route for route in api.ROUTES if route.body is not None]
    assert len(taking) >= 10
    loop = asyncio.get_running_loop()

    async def statuses(body: Any) -> list[int]:  # noqa: ANN401 - any JSON value
        found = []
        for route in taking:
            path = route.path.replace("{id}", "x").replace("{stream}", "x")
            headers = {"Content-Type": "application/json"}
            answer = await client.request(route.method, path, content=json.dumps(body), headers=headers)
            found.append(answer.status_code)
        return found

    @hypothesis.given(BODIES)
    def check(body: object) -> None:
        answered = asyncio.run_coroutine_threadsafe(statuses(body), loop).result(60)
        assert all(status < 500 for status in answered), answered

    await asyncio.to_thread(check)
