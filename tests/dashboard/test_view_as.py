"""An operator views an account: its pages are shown read-only, without content, and its audit log tells it."""

import html
import json
import re
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from postroad import config, context
from postroad.dashboard import application
from postroad.dashboard.framework import cookies
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.services.messages import dev_inbox
from postroad.services.people import users
from postroad.services.templates import template_drafts, templates
from postroad.services.webhooks import endpoints
from postroad.storage.people import accounts
from tests import accepted_mail, contexts, webhook_rows
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser, Served, Switch
from tests.dashboard.test_every_route import FORM, Route, ask, describe, furnish, is_page

SECRET = "one-time code 491823"
BANNER = "You are viewing the account Theirs."
# Pages that an operator does not need, or that would give away what is hidden.
REFUSED = {
    "/approvals/{id}/request",
    "/audit-log/export",
    "/bulk",
    "/credits/ledger.csv",
    "/inbox",
    "/inbox/{id}",
    "/inbox/{id}/attachments/{index}",
    "/inbox/{id}/preview/html",
    "/inbox/{id}/raw",
    "/messages.csv",
    "/messages/{id}/attachments/{index}",
    "/messages/{id}/code",
    "/messages/{id}/preview/html",
    "/messages/{id}/raw",
    "/profile",
    "/profile/security",
    "/received",
    "/received/{id}",
    "/received/{id}/attachments/{index}",
    "/received/{id}/preview/html",
    "/received/{id}/raw",
    "/suppressions/export",
    "/team/{id}",
    "/template/new",
    "/template/new/{starter}",
    "/template/new/{starter}/picture",
    "/team/sso",
}
# Shown once the operator has asked for the content of the message.
ASKED_FOR = {"/messages/{id}/code", "/messages/{id}/preview/html"}


@pytest_asyncio.fixture
async def operator(ctx: context.Context, served: Served, mine: accounts.Account) -> AsyncIterator[Browser]:
    user = await browser_client.person(ctx, mine.id, "op@mine.example", callers.Role.OWNER)
    async with browser_client.open_browser(ctx, served, await users.add_operator(ctx, user.email)) as opened:
        yield opened


@pytest.fixture
def routes(site: sites.Site) -> list[Route]:
    """The pages of accounts."""
    pages = [route for route in application.routes(site) if is_page(route) and route.permission is not None]
    return [route for route in pages if route.permission is not callers.Permission.OPERATE]


async def view_account(operator: Browser, account: accounts.Account) -> None:
    answer = await operator.post(f"/operator/accounts/{account.id}/view-as")
    assert (answer.status_code, answer.headers["location"]) == (303, "/"), answer.text


async def told(ctx: context.Context, account_id: str) -> list[str]:
    written = await audit_log.page(ctx, account_id, before=None, limit=50)
    return [f"{one.actor} {audit_log.text(one)}" for one in written if one.action.endswith(".viewed")]


async def send_secret(ctx: context.Context, account_id: str) -> str:
    """A message whose subject, body and metadata are nobody else's business."""
    return await accepted_mail.accept(
        ctx,
        account_id,
        sender="shop@theirs.example",
        to=("ada@to.example",),
        subject=SECRET,
        text=SECRET,
        metadata={"code": SECRET},
    )


async def keep_secrets(ctx: context.Context, account_id: str, things: dict[str, str]) -> dict[str, str]:
    """The same secret wherever an account has content; returns things that have it."""
    message_id = await send_secret(ctx, account_id)
    content = templates.Content("Hello", "Hello {{name}}", None, sample=json.dumps({"name": SECRET}))
    await template_drafts.save(ctx, account_id, things["template"], content)
    body = json.dumps({"type": "email.delivered", "data": {"to": "ada@to.example", "subject": SECRET}})
    delivery = await webhook_rows.put(ctx, account_id, message_id=message_id, body=body.encode())
    await webhook_rows.put_attempt(ctx, delivery, 1, status_code=500, response_body=SECRET)
    return {
        **things,
        "message": message_id,
        "suppression": "ada@to.example",
        "webhook_delivery": delivery.id,
    }


async def test_the_menu_keeps_the_way_back_to_the_console(operator: Browser, theirs: accounts.Account) -> None:
    await view_account(operator, theirs)
    for path in ("/", "/messages"):
        page = (await operator.get(path)).text
        assert BANNER in page
        assert '<li><a href="/operator">Operator console</a></li>' in page
    console = await operator.get("/operator")
    assert console.status_code == 200
    assert BANNER not in console.text


async def test_each_page_is_shown_with_the_banner_or_refused_on_purpose_and_each_form_is_refused(
    ctx: context.Context,
    mail: dev_inbox.Inbox,
    routes: list[Route],
    settings: config.Settings,
    switch: Switch,
    operator: Browser,
    stranger: Browser,
    theirs: accounts.Account,
) -> None:
    things = await furnish(ctx, stranger, mail, domain="theirs.example")
    switch.stopping = True
    await view_account(operator, theirs)
    before = await sample_account.dump(settings.database.url)
    refused: set[str] = set()
    for route in routes:
        # What ends the session or confirms it, and what is told: tested below and in test_confirm.py.
        if route.path in ("/logout", "/messages/{id}/view-as") or route.path.startswith("/confirm"):
            continue
        answer = await ask(operator, route, things, csrf_token=operator.csrf_token)
        if route.method == "POST":
            assert answer.status_code == 403, describe(route, answer)
        elif answer.status_code == 403:
            refused.add(route.path)
        else:
            assert answer.status_code == 200, describe(route, answer)
            is_inside = "<main" in answer.text
            assert (BANNER in answer.text) == is_inside, route.path
            shown = set(FORM.findall(answer.text)) - {"/operator/view-as/end", "/logout"}
            assert all(path.endswith("/view-as") for path in shown), (route.path, shown)
    assert refused == REFUSED
    assert await sample_account.dump(settings.database.url) == before


async def test_the_content_of_a_message_is_nowhere_until_it_was_asked_for(
    ctx: context.Context,
    mail: dev_inbox.Inbox,
    routes: list[Route],
    switch: Switch,
    operator: Browser,
    stranger: Browser,
    theirs: accounts.Account,
) -> None:
    things = await furnish(ctx, stranger, mail, domain="theirs.example")
    things = await keep_secrets(ctx, theirs.id, things)
    message_id = things["message"]
    switch.stopping = True
    await view_account(operator, theirs)
    walked = [route for route in routes if route.method == "GET" and not route.path.startswith("/inbox")]
    addresses = {route.path: await ask(operator, route, things) for route in walked}
    extra = [await operator.get("/find", q=message_id), await operator.get("/find", q="ada@to.example")]
    # Who belongs to the account sees it.
    for path in ("/messages", "/templates/{alias}", "/webhooks/{webhook}/deliveries/{id}", "/messages/{id}"):
        route = next(one for one in walked if one.path == path)
        assert SECRET in html.unescape((await ask(stranger, route, things)).text), path
    for answer in (*addresses.values(), *extra):
        assert SECRET not in answer.text, answer.url
        assert answer.status_code in (200, 403)
    assert "See the whole request" in (await stranger.get("/approvals")).text
    assert "See the whole request" not in addresses["/approvals"].text
    assert "Subject hidden" in addresses["/messages"].text
    assert "Subject hidden" in addresses["/messages/{id}"].text
    assert 'value="Show the content of this message?' in addresses["/messages/{id}"].text
    refreshed = await operator.client.get(f"/messages/{message_id}", headers={"X-Refreshed": "page"})
    assert SECRET not in refreshed.text

    shown = await operator.follow(await operator.post(f"/messages/{message_id}/view-as"))
    assert shown.text.count(SECRET) >= 2
    assert BANNER in shown.text
    assert "/raw" not in shown.text
    delivery = f"/webhooks/{things['webhook']}/deliveries/{things['webhook_delivery']}"
    assert SECRET in (await operator.get(delivery)).text
    for path in ASKED_FOR:
        assert (await operator.get(path.replace("{id}", message_id))).status_code == 200, path
    assert (await operator.get(f"/messages/{message_id}/raw")).status_code == 403
    assert sorted(await told(ctx, theirs.id)) == [
        f"operator viewed the content of the message {message_id}",
        "operator viewed the pages of the account Theirs",
    ]


@pytest.mark.parametrize("search", ["-491823", "to:ada@to.example OR code", "metadata.order:1042"])
async def test_what_is_hidden_cannot_be_guessed_by_searching_for_it(
    ctx: context.Context,
    mail: dev_inbox.Inbox,
    operator: Browser,
    stranger: Browser,
    theirs: accounts.Account,
    search: str,
) -> None:
    await furnish(ctx, stranger, mail, domain="theirs.example")
    message_id = await send_secret(ctx, theirs.id)
    other_id = await send_secret(ctx, theirs.id)
    await view_account(operator, theirs)
    for path in ("/messages", "/tail"):
        assert message_id in (await operator.get(path, search="to:ada@to.example")).text
        answer = await operator.get(path, search=search)
        assert answer.status_code == 400
        assert "cannot be searched" in answer.text
        assert message_id not in answer.text
    assert message_id not in (await operator.get("/find", q=search)).text
    beside = f"/messages/{message_id}?search="
    assert beside not in (await operator.get(f"/messages/{other_id}", search=search)).text


async def test_the_look_ends_with_its_button(ctx: context.Context, operator: Browser, theirs: accounts.Account) -> None:
    await view_account(operator, theirs)
    assert BANNER in (await operator.get("/messages")).text
    ended = await operator.post("/operator/view-as/end")
    assert ended.headers["location"] == f"/operator/accounts/{theirs.id}"
    page = await operator.get("/messages")
    assert BANNER not in page.text
    assert "Mine" in page.text
    # Ended twice, for example in another tab.
    assert (await operator.post("/operator/view-as/end")).headers["location"] == "/operator/accounts"


async def test_the_look_ends_after_an_hour(
    ctx: context.Context, clock: contexts.Clock, operator: Browser, theirs: accounts.Account
) -> None:
    await view_account(operator, theirs)
    clock.pass_seconds(3_599)
    assert BANNER in (await operator.get("/team")).text
    clock.pass_seconds(1)
    assert BANNER not in (await operator.get("/team")).text


async def test_the_look_ends_with_the_role_and_with_the_session(
    ctx: context.Context, operator: Browser, theirs: accounts.Account, mine: accounts.Account
) -> None:
    await view_account(operator, theirs)
    value = operator.client.cookies[cookies.VIEW_AS]
    other = await browser_client.person(ctx, mine.id, "other@mine.example", callers.Role.OWNER)
    await users.add_operator(ctx, other.email)
    assert operator.user is not None
    await users.remove_operator(ctx, operator.user.id)
    page = await operator.get("/")
    assert BANNER not in page.text
    assert "Mine" in page.text
    assert (await operator.post(f"/operator/accounts/{theirs.id}/view-as")).status_code == 403
    # Another operator cannot use what the first one's browser kept.
    session = await contexts.begin_session(ctx, other)
    operator.client.cookies.set(cookies.SESSION, session.token, domain="postroad.test")
    assert operator.client.cookies[cookies.VIEW_AS] == value
    assert BANNER not in (await operator.get("/")).text


async def test_a_look_needs_an_operator_a_form_of_ours_and_an_account(
    ctx: context.Context, operator: Browser, browser: Browser, theirs: accounts.Account
) -> None:
    path = f"/operator/accounts/{theirs.id}/view-as"
    assert (await browser.post(path)).status_code == 403
    assert (await operator.client.post(path, data={"csrf_token": browser.csrf_token})).status_code == 403
    assert (await operator.client.get(path)).status_code == 405
    evil = {"Origin": "https://evil.example"}
    answer = await operator.client.post(path, data={"csrf_token": operator.csrf_token}, headers=evil)
    assert answer.status_code == 403
    assert (await operator.post(f"/operator/accounts/acc_{'0' * 28}/view-as")).status_code == 404
    assert await told(ctx, theirs.id) == []
    assert (await operator.post(f"/messages/em_{'0' * 28}/view-as")).status_code == 404
    assert cookies.VIEW_AS not in operator.client.cookies


async def test_who_logs_out_while_looking_ends_their_own_session(
    ctx: context.Context, operator: Browser, theirs: accounts.Account
) -> None:
    await view_account(operator, theirs)
    assert (await operator.post("/logout")).headers["location"] == "/login"
    assert (await operator.get("/")).headers["location"] == "/login"


async def test_the_path_of_a_webhook_is_hidden(
    ctx: context.Context, mail: dev_inbox.Inbox, operator: Browser, stranger: Browser, theirs: accounts.Account
) -> None:
    things = await furnish(ctx, stranger, mail, domain="theirs.example")
    webhook = f"/webhooks/{things['webhook']}"
    assert webhook_rows.URL in (await stranger.get(webhook)).text
    await view_account(operator, theirs)
    own = (webhook, f"{webhook}/settings", f"{webhook}/secret", f"{webhook}/deliveries/{things['webhook_delivery']}")
    for page in ("/webhooks", "/welcome", *own):
        answer: httpx.Response = await operator.get(page)
        assert answer.status_code == 200
        assert webhook_rows.URL not in answer.text, page
        assert endpoints.host(webhook_rows.URL) in answer.text, page


async def test_pages_name_their_account_for_scripts_that_refresh_them(
    ctx: context.Context, operator: Browser, mine: accounts.Account, theirs: accounts.Account
) -> None:
    assert f'data-account="{mine.id}"' in (await operator.get("/messages")).text
    await view_account(operator, theirs)
    assert f'data-account="{theirs.id}"' in (await operator.get("/messages")).text


def test_every_download_is_refused_or_asked_for(routes: list[Route]) -> None:
    """A new download or a part of a message has to be in one of the two lists."""
    downloads = [
        route.path
        for route in routes
        if route.method == "GET" and (re.search(r"export|raw|csv|/request$|attachments|preview/html", route.path))
    ]
    assert set(downloads) <= REFUSED
