"""Received emails over Resend's API: the list, one of them, and the links to its files and to all of it."""

from collections.abc import AsyncIterator
from typing import Any
from urllib import parse

import httpx
import pytest
import pytest_asyncio

from postroad import context
from postroad.api.v1 import inbound
from postroad.model.people import callers
from postroad.services.accounts import account_registry
from postroad.storage.mail import received
from postroad.storage.people import accounts
from postroad_resend import api as resend
from postroad_resend import received_emails
from tests import contexts, received_rows
from tests.api import app_server
from tests.compat import compat_client

FILE: dict[str, Any] = {
    "filename": "order.csv",
    "content_type": "text/csv",
    "content_disposition": "attachment",
    "content_id": None,
    "size": 19,
}


@pytest_asyncio.fixture
async def client(ctx: context.Context, account: accounts.Account) -> AsyncIterator[httpx.AsyncClient]:
    key = await compat_client.new_key(ctx, account.id)
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"}) as opened:
        yield opened


async def downloaded(ctx: context.Context, link: str) -> bytes:
    async with app_server.running(inbound.ROUTES, context=ctx) as own:
        answer = await own.client.get(parse.urlsplit(link).path, headers={"Authorization": ""})
        assert answer.status_code == 200
        return answer.content


async def test_a_mail_is_shown_with_its_text_and_a_link_to_all_of_it(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    headers = b"X-Shop: ours\r\nX-Shop: theirs\r\nReply-To: <replies@example.net>\r\nCc: bob@example.net\r\n"
    mail = await received_rows.put(ctx, account.id, content=headers + received_rows.MAIL)
    shown = (await client.get(f"/emails/receiving/{mail.id}")).json()
    raw = shown.pop("raw")
    fields = shown.pop("headers")
    assert shown == {
        "object": "email",
        "id": mail.id,
        "created_at": "2027-01-15T08:00:00.000Z",
        "from": "Ada <ada@example.net>",
        "to": ["support+1042@in.example.com"],
        "bcc": [],
        "cc": ["bob@example.net"],
        "reply_to": ["replies@example.net"],
        "received_for": ["support+1042@in.example.com"],
        "message_id": "<1@example.net>",
        "subject": "Re: Your receipt",
        "html": "<p>It was due on <b>Monday</b>.</p>",
        "html_format": "cid",
        "text": "It was due on Monday.",
        "attachments": [{"id": f"{mail.id}_1", **FILE}],
    }
    assert (fields["x-shop"], fields["mime-version"]) == ("ours", "1.0")
    assert raw["expires_at"] == "2027-01-22T08:00:00.000Z"
    assert await downloaded(ctx, raw["download_url"]) == headers + received_rows.MAIL
    assert (await client.get(f"/emails/receiving/{mail.id}?html_format=cid")).status_code == 200
    refused = await client.get(f"/emails/receiving/{mail.id}?html_format=data_uri")
    assert (refused.status_code, refused.json()["message"][:20]) == (422, "html_format=data_uri")


async def test_the_list_has_what_each_mail_is_about_and_is_paged(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account, clock: contexts.Clock
) -> None:
    mails = []
    for _ in range(3):
        mails.append(await received_rows.put(ctx, account.id))
        clock.pass_seconds(1)
    first, second, third = (mail.id for mail in mails)
    page = (await client.get("/emails/receiving?limit=2")).json()
    assert (page["object"], page["has_more"]) == ("list", True)
    assert [one["id"] for one in page["data"]] == [third, second]
    shown = (await client.get(f"/emails/receiving/{third}")).json()
    whole = {"object", "html", "html_format", "text", "headers", "raw"}
    assert page["data"][0] == {name: value for name, value in shown.items() if name not in whole}
    rest = (await client.get(f"/emails/receiving?after={second}")).json()
    assert ([one["id"] for one in rest["data"]], rest["has_more"]) == ([first], False)
    refused = await client.get(f"/emails/receiving?before={second}")
    assert refused.json()["message"].startswith("before: Postroad does not support")


async def test_a_mail_whose_content_is_gone_is_listed_and_not_found(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    mail = await received_rows.put(ctx, account.id)
    async with ctx.store.transaction() as tx:
        await tx.execute("received_messages.remove_body", account.id, mail.id)
    (listed,) = (await client.get("/emails/receiving")).json()["data"]
    assert listed == {
        "id": mail.id,
        "created_at": "2027-01-15T08:00:00.000Z",
        "from": "Ada <ada@example.net>",
        "to": ["support+1042@in.example.com"],
        "bcc": [],
        "cc": [],
        "reply_to": [],
        "received_for": ["support+1042@in.example.com"],
        "message_id": "<1@example.net>",
        "subject": "Re: Your receipt",
        "attachments": [],
    }
    gone = await client.get(f"/emails/receiving/{mail.id}")
    assert (gone.status_code, gone.json()["name"]) == (404, "not_found")


async def test_a_page_ends_before_there_is_too_much_to_read(
    ctx: context.Context,
    client: httpx.AsyncClient,
    account: accounts.Account,
    clock: contexts.Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(received_emails, "MAX_LISTED_BYTES", 2 * len(received_rows.MAIL))
    mails: list[received.Received] = []
    for _ in range(3):
        mails.append(await received_rows.put(ctx, account.id))
        clock.pass_seconds(1)
    page = (await client.get("/emails/receiving")).json()
    assert ([one["id"] for one in page["data"]], page["has_more"]) == ([mails[2].id, mails[1].id], True)
    rest = (await client.get(f"/emails/receiving?after={mails[1].id}")).json()
    assert ([one["id"] for one in rest["data"]], rest["has_more"]) == ([mails[0].id], False)


async def test_files_are_listed_with_links_that_need_no_key(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    second = b"--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=b.txt\r\n\r\nhi\r\n--b--"
    mail = await received_rows.put(ctx, account.id, content=received_rows.MAIL.replace(b"--b--", second))
    path = f"/emails/receiving/{mail.id}/attachments"
    listed = (await client.get(path)).json()
    assert (listed["object"], listed["has_more"]) == ("list", False)
    first = listed["data"][0]
    link = first["download_url"]
    assert first == {"id": f"{mail.id}_1", **FILE, "download_url": link, "expires_at": "2027-01-22T08:00:00.000Z"}
    assert await downloaded(ctx, link) == b"id,due\r\n1042,monday"
    one = (await client.get(f"{path}/{mail.id}_1")).json()
    assert one | {"download_url": link} == {"object": "attachment", **first}
    page = (await client.get(f"{path}?limit=1")).json()
    assert ([file["filename"] for file in page["data"]], page["has_more"]) == (["order.csv"], True)
    rest = (await client.get(f"{path}?limit=1&after={mail.id}_1")).json()
    assert ([file["filename"] for file in rest["data"]], rest["has_more"]) == (["b.txt"], False)
    for wrong, status in [(f"{path}/{mail.id}_3", 404), (f"{path}?after=x", 422), (f"{path}?before=x", 422)]:
        assert (await client.get(wrong)).status_code == status


async def test_another_account_finds_nothing_and_a_key_that_may_only_send_reads_nothing(
    ctx: context.Context, account: accounts.Account
) -> None:
    mail = await received_rows.put(ctx, account.id)
    paths = [f"/emails/receiving/{mail.id}{rest}" for rest in ("", "/attachments", f"/attachments/{mail.id}_1")]
    other = await account_registry.create(ctx, "Other")
    stranger_key = await compat_client.new_key(ctx, other.id)
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {stranger_key}"}) as stranger:
        for path in paths:
            assert (await stranger.get(path)).status_code == 404
        assert (await stranger.get("/emails/receiving")).json()["data"] == []
    sending = await compat_client.new_key(ctx, account.id, frozenset({callers.Scope.SEND}))
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {sending}"}) as sender:
        for path in ["/emails/receiving", *paths]:
            assert (await sender.get(path)).status_code == 401
