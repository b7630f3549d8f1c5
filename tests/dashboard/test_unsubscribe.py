"""The page of unsubscribe links: for mail programs, for scanners, and for people in their language."""

import json
import re

import httpx
import pytest

from postroad import context
from postroad.dashboard.mail import unsubscribe as page
from postroad.mail import unsubscribe_links
from postroad.services.accounts import account_registry as accounts
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.webhooks import endpoints
from postroad.storage.mail import suppressions as stored
from postroad.storage.mail import webhooks
from tests import webhook_rows
from tests.contexts import Clock
from tests.dashboard.browser_client import Browser

MESSAGE_ID = "em_" + "1" * 28
ONE_CLICK = "List-Unsubscribe=One-Click"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def link_of(ctx: context.Context, account_id: str, *, list_name: str = "news", email: str = "ada@example.net") -> str:
    link = unsubscribe_links.Link(account_id, list_name, email, MESSAGE_ID, "mine.example")
    return f"/unsubscribe/{unsubscribe_links.write(ctx.keys.unsubscribe, link)}"


async def left(ctx: context.Context, account_id: str) -> list[tuple[str, str, str]]:
    """The lists, addresses and sources of those who have left."""
    rows = await suppressions.page_of_lists(ctx, account_id, after=("", ""), limit=10)
    return [(row.list_name, row.email_key, row.source) for row in rows]


async def suppressed(ctx: context.Context, account_id: str) -> list[tuple[str, str, str | None]]:
    rows = await suppressions.page(ctx, account_id, after="", limit=10)
    return [(row.email_key, row.reason, row.message_id) for row in rows]


def undo_of(response: httpx.Response) -> str:
    match = re.search(r'name="undo" value="([^"]+)"', response.text)
    return match[1] if match else ""


@pytest.mark.parametrize("is_multipart", [False, True], ids=["urlencoded", "multipart"])
async def test_a_mail_program_unsubscribes_with_one_request_and_again(
    ctx: context.Context, browser: Browser, nobody: Browser, clock: Clock, *, is_multipart: bool
) -> None:
    link = link_of(ctx, browser.account_id)
    # From a server of a mailbox provider: no cookie, another origin, and no page before it.
    headers = {"Origin": "https://mail.google.example", "Sec-Fetch-Site": "cross-site"}
    for _ in range(2):
        clock.pass_seconds(1)
        if is_multipart:
            files = {"List-Unsubscribe": (None, b"One-Click")}
            response = await nobody.client.post(link, files=files, headers=headers)
        else:
            response = await nobody.client.post(link, content=ONE_CLICK, headers={**FORM, **headers})
        assert response.status_code == 200
        assert "set-cookie" not in response.headers
    assert await left(ctx, browser.account_id) == [("news", "ada@example.net", "one_click")]
    (row,) = await suppressions.page(ctx, browser.account_id, after="", limit=10, list_name="news")
    assert (row.message_id, row.created_at) == (MESSAGE_ID, clock.now - 1_000_000)
    assert await suppressed(ctx, browser.account_id) == []


async def test_a_scanner_that_opens_the_link_changes_nothing(
    ctx: context.Context, browser: Browser, nobody: Browser
) -> None:
    link = link_of(ctx, browser.account_id)
    assert (await nobody.client.head(link)).status_code == 200
    assert (await nobody.client.get(f"{link}/choice")).status_code == 405
    response = await nobody.get(link)
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["x-robots-tag"] == "noindex"
    assert response.headers["cache-control"] == "no-store"
    text = response.text
    assert "Stop sending “news” from mine.example to ada@example.net?" in text
    assert "Postroad" not in text
    assert not re.findall(r'(?:src|href|action)="(?!/(?:assets|unsubscribe)/)', text)
    assert await left(ctx, browser.account_id) == []


async def test_a_person_leaves_a_list_and_takes_it_back(
    ctx: context.Context, browser: Browser, nobody: Browser
) -> None:
    link = link_of(ctx, browser.account_id)
    done = await nobody.client.post(f"{link}/choice", data={"choice": "list"})
    assert "ada@example.net will no longer receive “news” from mine.example." in done.text
    assert await left(ctx, browser.account_id) == [("news", "ada@example.net", "page")]
    undone = await nobody.client.post(f"{link}/choice", data={"choice": "undo", "undo": undo_of(done)})
    assert "Undone. ada@example.net will receive mail from mine.example again." in undone.text
    assert await left(ctx, browser.account_id) == []


@pytest.mark.parametrize(
    "choice, sentence",
    [
        ("list", "ada@example.net will no longer receive “news” from mine.example."),
        ("all", "ada@example.net will no longer receive any mail from mine.example."),
    ],
)
async def test_who_opens_the_link_later_sees_what_they_left_and_takes_it_back(
    ctx: context.Context, browser: Browser, nobody: Browser, choice: str, sentence: str
) -> None:
    link = link_of(ctx, browser.account_id)
    await nobody.client.post(f"{link}/choice", data={"choice": choice})
    later = await nobody.get(link)
    assert sentence in later.text
    await nobody.client.post(f"{link}/choice", data={"choice": "undo", "undo": undo_of(later)})
    assert (await left(ctx, browser.account_id), await suppressed(ctx, browser.account_id)) == ([], [])
    assert "Stop sending “news” from mine.example to ada@example.net?" in (await nobody.get(link)).text


async def test_a_person_stops_all_mail_and_takes_it_back(
    ctx: context.Context, browser: Browser, nobody: Browser
) -> None:
    link = link_of(ctx, browser.account_id)
    done = await nobody.client.post(f"{link}/choice", data={"choice": "all"})
    assert "ada@example.net will no longer receive any mail from mine.example." in done.text
    assert await suppressed(ctx, browser.account_id) == [("ada@example.net", "unsubscribed from all mail", MESSAGE_ID)]
    for path in ("/suppressions", "/recipients/ada@example.net"):
        page = (await browser.get(path)).text.lower()
        assert ("unsubscribed from all mail" in page, "added by your team</strong>" in page) == (True, False)
    again = await nobody.client.post(f"{link}/choice", data={"choice": "all"})
    assert (again.status_code, bool(undo_of(again))) == (200, True)
    await nobody.client.post(f"{link}/choice", data={"choice": "undo", "undo": undo_of(done)})
    assert await suppressed(ctx, browser.account_id) == []


async def test_what_the_account_has_done_since_is_not_undone(
    ctx: context.Context, browser: Browser, nobody: Browser, clock: Clock
) -> None:
    link = link_of(ctx, browser.account_id)
    undo = {"choice": "undo", "undo": undo_of(await nobody.client.post(link))}
    await suppressions.remove(ctx, browser.account_id, "ada@example.net", list_name="news")
    clock.pass_seconds(1)
    await suppressions.add(ctx, browser.account_id, "ada@example.net", list_name="news")
    assert (await nobody.client.post(f"{link}/choice", data=undo)).status_code == 200
    assert await left(ctx, browser.account_id) == [("news", "ada@example.net", "account")]
    # Who has it already is not offered to take it back.
    assert undo_of(await nobody.client.post(link)) == ""


async def test_a_link_does_nothing_but_what_it_names(
    ctx: context.Context, browser: Browser, stranger: Browser, nobody: Browser
) -> None:
    link = link_of(ctx, browser.account_id)
    undo = undo_of(await nobody.client.post(link))
    assert undo
    others = link_of(ctx, stranger.account_id), link_of(ctx, browser.account_id, email="bob@example.net")
    foreign = unsubscribe_links.write(b"another key", unsubscribe_links.Link(browser.account_id, "a", "b", "c", "d"))
    for bad in (
        link[:-2],
        f"{link}x",
        "/unsubscribe/x",
        "/unsubscribe/%00",
        f"/unsubscribe/{foreign}",
        f"/unsubscribe/{undo}",
    ):
        for response in (
            await nobody.get(bad),
            await nobody.client.post(bad, content=ONE_CLICK, headers=FORM),
            await nobody.client.post(f"{bad}/choice", data={"choice": "all"}),
        ):
            assert (response.status_code, "This unsubscribe link is not valid." in response.text) == (404, True)
    for other, value in [(other, undo) for other in others] + [(link, f"{undo}0"), (link, "x"), (link, "")]:
        response = await nobody.client.post(f"{other}/choice", data={"choice": "undo", "undo": value})
        assert response.status_code == 404
    assert await left(ctx, browser.account_id) == [("news", "ada@example.net", "one_click")]
    assert await left(ctx, stranger.account_id) == []


async def test_the_link_of_an_account_that_is_gone_is_invalid(
    ctx: context.Context, browser: Browser, nobody: Browser
) -> None:
    gone = await accounts.create(ctx, name="Gone")
    await accounts.close(ctx, gone.id)
    await accounts.remove(ctx, gone.id)
    assert (await nobody.client.post(link_of(ctx, gone.id))).status_code == 404
    assert (await nobody.client.post(link_of(ctx, "acc_" + "0" * 28))).status_code == 404


async def test_an_endpoint_hears_of_it_once(
    ctx: context.Context, browser: Browser, nobody: Browser, clock: Clock
) -> None:
    await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL, wanted=["email.unsubscribed"])
    link = link_of(ctx, browser.account_id)
    for path, choice in ((link, {}), (link, {}), (f"{link}/choice", {"choice": "all"})):
        clock.pass_seconds(1)  # ids sort by time
        assert (await nobody.client.post(path, data=choice)).status_code == 200
    async with ctx.store.reading() as tx:
        webhook = await webhooks.first_of(tx, browser.account_id)
        assert webhook is not None
        deliveries = await webhooks.ready(tx, browser.account_id, webhook.id, limit=10)
    sent = [json.loads(delivery.body) for delivery in deliveries]
    assert [(event["type"], event["data"]) for event in sent] == [
        (
            "email.unsubscribed",
            {"to": "ada@example.net", "list": list_name, "email_id": MESSAGE_ID, "source": source},
        )
        for list_name, source in (("news", "one_click"), ("", "page"))
    ]


async def test_the_name_of_a_list_is_text(ctx: context.Context, browser: Browser, nobody: Browser) -> None:
    link = link_of(ctx, browser.account_id, list_name="<b>{sender}</b>\u202e")
    text = (await nobody.get(link)).text
    assert "“&lt;b&gt;{sender}&lt;/b&gt;\ufffd”" in text


@pytest.mark.parametrize(
    "accepted, language",
    [
        ("", "en"),
        ("de-CH,de;q=0.9,en;q=0.8", "de"),
        ("xx,ja;q=0.5,fr;q=0.7", "fr"),
        ("pt-BR", "pt"),
        ("de;q=0,en;q=0.1", "en"),
        ("*", "en"),
        ("nl;q=x,ES", "es"),
        ("\xff;q=,;;,", "en"),
    ],
)
def test_the_page_is_in_a_language_of_its_reader(accepted: str, language: str) -> None:
    assert page.language(accepted.encode("latin-1")) == language


async def test_every_language_has_every_sentence(ctx: context.Context, browser: Browser, nobody: Browser) -> None:
    assert set(page.TEXTS) >= {"en", "de", "fr", "es", "it", "pt", "nl", "pl", "ja"}
    link = link_of(ctx, browser.account_id)
    for language, texts in page.TEXTS.items():
        response = await nobody.client.get(link, headers={"Accept-Language": language})
        assert f'<html lang="{language}">' in response.text
        assert texts.button in response.text
        for name in ("question", "done"):
            assert all(f"{{{part}}}" in getattr(texts, name) for part in ("list", "sender", "address")), language
        for name in ("all_done", "undone"):
            assert all(f"{{{part}}}" in getattr(texts, name) for part in ("sender", "address")), language


async def test_the_suppressions_page_shows_who_left_a_list(
    ctx: context.Context, browser: Browser, nobody: Browser
) -> None:
    assert "find-list" not in (await browser.get("/suppressions")).text
    await nobody.client.post(link_of(ctx, browser.account_id, list_name="news & tips"))
    assert '<option value="news &amp; tips">news &amp; tips</option>' in (await browser.get("/suppressions")).text
    history = (await browser.get("/recipients/ada@example.net")).text
    assert 'Unsubscribed from <a href="/suppressions?list=news%20%26%20tips">news &amp; tips</a>.' in history
    shown = (await browser.get("/suppressions", list="news & tips")).text
    assert "Unsubscribed with one click" in shown
    assert f'href="/messages/{MESSAGE_ID}"' in shown
    added = await browser.post("/suppressions", {"email": "bob@example.net", "list": "news & tips"})
    assert added.headers["location"] == "/suppressions?list=news%20%26%20tips"
    fields = {"email": "ada@example.net", "list": "news & tips"}
    assert "is no longer suppressed" in (await browser.follow(await browser.post("/suppressions/remove", fields))).text
    assert await left(ctx, browser.account_id) == [("news & tips", "bob@example.net", stored.Source.ACCOUNT)]
    missing = await browser.get("/suppressions", list="news & tips", email="ada@example.net")
    assert "has not unsubscribed from news &amp; tips." in missing.text


async def test_the_page_and_its_form_work_on_a_host_of_the_sender(
    ctx: context.Context, browser: Browser, nobody: Browser
) -> None:
    link, host = link_of(ctx, browser.account_id), {"Host": "links.mine.example"}
    assert (await nobody.client.get(link, headers=host)).status_code == 200
    headers = {**host, "Origin": "https://links.mine.example", "Sec-Fetch-Site": "same-origin"}
    assert (await nobody.client.post(f"{link}/choice", data={"choice": "list"}, headers=headers)).status_code == 200
    assert await left(ctx, browser.account_id) == [("news", "ada@example.net", "page")]
