"""The page of sends that wait: who asked, what would be sent, and the decision."""

import re

import pytest

from postroad import context
from postroad.mail.accept import approval_limit, submit
from postroad.model.mail import send_request, statuses
from postroad.services import usage_limits
from postroad.services.messages import approvals
from postroad.services.people import api_keys
from tests import contexts
from tests.dashboard.browser_client import Browser
from tests.services.messages import test_approvals as waiting_sends


async def wait(ctx: context.Context, account_id: str, *names: str, key: str = "k") -> str:
    who = await waiting_sends.key_of(ctx, account_id)
    with pytest.raises(approval_limit.ApprovalRequired):
        await waiting_sends.ask(ctx, who, *names, key=key)
    return (await approvals.latest(ctx, account_id))[0].id


async def test_an_empty_page_teaches(browser: Browser) -> None:
    assert "Nothing to approve" in (await browser.get("/approvals")).text


async def test_the_menu_has_approvals_where_a_key_needs_them_or_one_waits(
    ctx: context.Context, browser: Browser, stranger: Browser, clock: contexts.Clock
) -> None:
    async def is_in_menu() -> bool:
        assert 'href="/approvals"' not in (await stranger.get("/team")).text
        return '<a href="/approvals">Approvals</a>' in (await browser.get("/team")).text

    assert not await is_in_menu()
    who = await waiting_sends.key_of(ctx, browser.account_id)
    assert who.key is not None
    assert await is_in_menu()
    with pytest.raises(approval_limit.ApprovalRequired):
        await waiting_sends.ask(ctx, who, "ada", "grace", key="k")
    await api_keys.revoke(ctx, browser.account_id, who.key.id)
    assert await is_in_menu()
    clock.pass_seconds(24 * 3600)
    assert not await is_in_menu()


async def test_the_page_shows_who_asks_and_what_for(ctx: context.Context, browser: Browser, reader: Browser) -> None:
    approval_id = await wait(ctx, browser.account_id, *(f"name{number}" for number in range(12)))
    text = (await browser.get("/approvals")).text
    assert approval_id in text, "the error that the caller got names it"
    assert "<strong>agent</strong> to 12 recipients" in text
    assert "name0@example.net, name1@example.net" in text
    assert "name9@example.net …" in text
    assert "name10@example.net" not in text
    assert "From shop@example.com, template welcome" in text
    assert "<strong>Hi name0</strong>" in text
    # A refusal of the send is shown where the button is.
    assert '<form method="post" action="/approvals/approve" class="inline" data-enhanced>' in text
    assert "/approvals/approve" not in (await reader.get("/approvals")).text


async def test_an_account_has_two_lists_at_a_time(ctx: context.Context, browser: Browser) -> None:
    await wait(ctx, browser.account_id, "ada", "grace")
    with (
        usage_limits.acquire(ctx, approvals.LISTS, browser.account_id),
        usage_limits.acquire(ctx, approvals.LISTS, browser.account_id),
    ):
        assert (await browser.get("/approvals")).status_code == 429
    assert (await browser.get("/approvals")).status_code == 200


async def test_a_click_sends_it_once(ctx: context.Context, browser: Browser) -> None:
    approval_id = await wait(ctx, browser.account_id, "ada", "grace")
    done = await browser.post("/approvals/approve", {"approval_id": approval_id})
    assert done.status_code == 303
    assert await waiting_sends.sent(ctx, browser.account_id) == 2
    again = await browser.post("/approvals/approve", {"approval_id": approval_id})
    assert again.status_code == 409
    text = (await browser.get("/approvals")).text
    assert "Approved" in text
    assert "/approvals/approve" not in text
    assert await waiting_sends.sent(ctx, browser.account_id) == 2


async def test_a_rejected_one_is_not_sent(ctx: context.Context, browser: Browser) -> None:
    approval_id = await wait(ctx, browser.account_id, "ada", "grace")
    assert (await browser.post("/approvals/reject", {"approval_id": approval_id})).status_code == 303
    assert "Rejected" in (await browser.get("/approvals")).text
    assert await waiting_sends.sent(ctx, browser.account_id) == 0


async def test_the_page_shows_what_most_recipients_see_and_has_the_rest(ctx: context.Context, browser: Browser) -> None:
    who = await waiting_sends.key_of(ctx, browser.account_id, above=0, only=())
    request = send_request.SendRequest(
        sender="shop@example.com",
        to=tuple(f"name{number}@example.net" for number in range(12)),
        subject="News",
        text="Dear customers",
        html="<b>Your password, please</b>",
    )
    with pytest.raises(approval_limit.ApprovalRequired):
        await submit.submit(ctx, who, request, request_id=waiting_sends.REQUEST, source=statuses.Source.API, key="k")
    text = (await browser.get("/approvals")).text
    assert "Dear customers" in text
    assert "Your password, please" in text
    (path,) = re.findall('href="(/approvals/[^"]+/request)"', text)
    whole = await browser.get(path)
    assert whole.headers["content-disposition"].startswith("attachment")
    assert "name11@example.net" in whole.text
    assert (await browser.get("/approvals/x/request")).status_code == 404
