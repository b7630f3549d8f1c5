"""Sessions on the profile and on the page of a user: shown, and ended by whom they concern."""

import pytest

from postroad import context
from postroad.services.people import credentials, sessions
from tests import contexts
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser
from tests.services.audit_entries import as_user


async def test_the_profile_lists_sessions_and_ends_one(ctx: context.Context, browser: Browser) -> None:
    assert browser.user is not None
    assert browser.session is not None
    other = await contexts.begin_session(ctx, browser.user)
    page = (await browser.get("/profile")).text
    for row in (browser.session.row, other.row):
        assert f'action="/profile/sessions/{row.id}/end"' in page
    assert page.count("this session</span>") == 1
    done = await browser.post(f"/profile/sessions/{other.row.id}/end")
    assert browser_client.notice_of(done) == "Session ended."
    assert [one.id for one in await sessions.of_user(ctx, browser.user)] == [browser.session.row.id]


async def test_how_somebody_logged_in_is_told_in_words(ctx: context.Context, browser: Browser) -> None:
    assert browser.user is not None
    await contexts.begin_session(ctx, browser.user, methods="password totp")
    await contexts.begin_session(ctx, browser.user, methods="sso")
    page = (await browser.get("/profile")).text
    assert "· password, authenticator app" in page
    assert "· single sign-on" in page


async def test_all_others_are_ended_at_once(ctx: context.Context, browser: Browser) -> None:
    assert browser.user is not None
    for _ in range(3):
        await contexts.begin_session(ctx, browser.user)
    done = await browser.post("/profile/sessions/end-others")
    assert browser_client.notice_of(done) == "Other sessions and tokens ended: 3."
    assert (await browser.get("/profile")).status_code == 200


async def test_whoever_ends_the_session_in_use_is_logged_out(browser: Browser) -> None:
    assert browser.session is not None
    done = await browser.post(f"/profile/sessions/{browser.session.row.id}/end")
    assert browser_client.location_of(done) == "/login"
    assert browser_client.location_of(await browser.get("/profile")) == "/login"


@pytest.mark.parametrize(
    "fields, text",
    [
        ({"name": "nightly"}, "name: a token that outlives"),
        ({"name": "x", "expires_on": "2001-01-01"}, "expires_on: must be"),
    ],
)
async def test_a_token_needs_a_name_and_a_day_or_neither(browser: Browser, fields: dict[str, str], text: str) -> None:
    refused = await browser.post("/profile/token", fields)
    assert (refused.status_code, text in refused.text) == (400, True)


async def test_an_owner_sees_what_a_user_made_and_ends_their_session(
    ctx: context.Context, browser: Browser, member: Browser
) -> None:
    assert member.user is not None
    assert member.session is not None
    await credentials.create(as_user(ctx, member.user), member.account_id, "Oven")
    page = (await browser.get(f"/team/{member.user.id}")).text
    assert "Oven" in page
    done = await browser.post(f"/team/{member.user.id}/sessions/{member.session.row.id}/end")
    assert browser_client.notice_of(done) == "A session of member@mine.example is ended."
    assert browser_client.location_of(await member.get("/")) == "/login"
