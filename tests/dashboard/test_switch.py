"""Switching between accounts: one session, one login, one account at a time."""

import pytest_asyncio

from postroad import context
from postroad.model.people import callers
from postroad.services.people import logins, password_links
from postroad.services.people import users as account_users
from postroad.storage.people import users
from tests import contexts
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser


@pytest_asyncio.fixture
async def joined(ctx: context.Context, browser: Browser, stranger: Browser) -> users.User:
    """The owner of this account as a reader of the other one, with the same login."""
    assert browser.user is not None
    invited = await account_users.invite(
        ctx, stranger.account_id, email=browser.user.email, role=callers.Role.READ_ONLY
    )
    acting = logins.acting(ctx, client_address="192.0.2.1")
    return await password_links.redeem(acting, invited.link_token, password=contexts.PASSWORD)


async def test_the_menu_offers_the_other_accounts_and_switches(
    browser: Browser, stranger: Browser, joined: users.User
) -> None:
    page = (await browser.get("/")).text
    assert f'name="account_id" value="{stranger.account_id}">Theirs</button>' in page
    before = browser.client.cookies["postroad"]
    done = await browser.post("/switch", {"account_id": stranger.account_id})
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert browser_client.notice_of(done) == "You are now in the account Theirs."
    after = (await browser.get("/profile")).text
    assert stranger.account_id in after
    assert "<dd>read only</dd>" in after.lower()
    assert f'name="account_id" value="{browser.account_id}">Mine</button>' in after
    # The token of the account before is worth nothing any more.
    browser.client.cookies.clear()
    stale = await browser.client.get("/profile", headers={"Cookie": f"postroad={before}"})
    assert browser_client.location_of(stale) == "/login"


async def test_nobody_switches_to_an_account_that_is_not_theirs(browser: Browser, stranger: Browser) -> None:
    assert "Switch account" not in (await browser.get("/")).text
    for account_id in (stranger.account_id, "acc_1"):
        refused = await browser.post("/switch", {"account_id": account_id})
        assert refused.status_code == 403, account_id
    assert browser.account_id in (await browser.get("/profile")).text


async def test_the_account_used_last_is_entered_next(
    ctx: context.Context, clock: contexts.Clock, browser: Browser, stranger: Browser, joined: users.User
) -> None:
    clock.pass_seconds(1)
    await browser.post("/switch", {"account_id": stranger.account_id})
    acting = logins.acting(ctx, client_address="192.0.2.1")
    checked = await logins.check_password(acting, joined.email, contexts.PASSWORD)
    assert (await logins.finish(acting, checked, methods="password")).user.id == joined.id
