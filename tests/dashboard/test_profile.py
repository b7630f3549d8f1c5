"""One's own page: the password and a token for the API."""

import re

from postroad import context
from postroad.services.people import authentication, logins
from tests import contexts
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser

CHANGE = {"current_password": contexts.PASSWORD, "new_password": "a new sentence for you"}


async def test_the_page_shows_who_one_is(browser: Browser, reader: Browser) -> None:
    page = await browser.get("/profile")
    assert page.status_code == 200
    assert "owner@mine.example" in page.text
    assert browser.account_id in page.text
    assert (await reader.get("/profile")).status_code == 200


async def test_a_token_is_shown_once_and_opens_the_api(ctx: context.Context, reader: Browser) -> None:
    made = await reader.post("/profile/token")
    assert made.status_code == 201
    token = made.text.partition("Bearer ")[2].partition("&")[0]
    who = await authentication.authenticate(ctx, f"Bearer {token}", client_address="127.0.0.1")
    assert reader.user is not None
    assert who.user_id == reader.user.id
    assert token not in (await reader.get("/profile")).text


async def test_a_new_password_keeps_this_session_and_ends_the_others(
    ctx: context.Context, served: browser_client.Served, clock: contexts.Clock, browser: Browser
) -> None:
    assert browser.user is not None
    clock.pass_seconds(1)
    async with browser_client.open_browser(ctx, served, browser.user) as elsewhere:
        changed = await browser.post("/profile/password", CHANGE)
        assert (changed.status_code, browser_client.location_of(changed)) == (303, "/profile")
        assert "Password changed" in (await browser.follow(changed)).text
        assert (await elsewhere.get("/profile")).headers["location"].startswith("/login")
    await logins.log_in(ctx, "owner@mine.example", CHANGE["new_password"], client_address="127.0.0.1")


async def test_a_wrong_password_names_its_field(browser: Browser) -> None:
    """The script of forms finds the field's label by it."""
    answer = await browser.post("/profile/password", CHANGE | {"current_password": "not this one"})
    assert ">current_password: incorrect<" in answer.text
    page = (await browser.get("/profile")).text
    assert '<label for="field-current_password">Current password</label>' in page


async def test_the_time_zone_is_chosen_once_for_every_page(ctx: context.Context, browser: Browser) -> None:
    page = (await browser.get("/profile")).text
    assert 'times in <a href="/profile#time-zone">UTC</a>' in page
    assert "data-zone-offer" in page
    chosen = await browser.post("/profile/time-zone", {"time_zone": "Asia/Kolkata"})
    assert "Times are shown in Asia/Kolkata." in (await browser.follow(chosen)).text
    page = (await browser.get("/audit-log")).text
    assert 'times in <a href="/profile#time-zone">Asia/Kolkata</a>' in page
    assert "data-zone-offer" not in page
    assert re.search(
        r'title="[-0-9]+ [:0-9]+ Asia/Kolkata \(UTC\+05:30\)">[-0-9]+ [0-9]{2}:[0-9]{2}:[0-9]{2}</time>', page
    )
    assert "changed the time zone of" in page
    assert '<option value="Asia/Kolkata" selected>' in (await browser.get("/profile")).text


async def test_an_unknown_time_zone_changes_nothing(browser: Browser) -> None:
    refused = await browser.post("/profile/time-zone", {"time_zone": "Europe/Nowhere"})
    assert refused.status_code == 400
    assert "time_zone: unknown" in refused.text
    assert "data-zone-offer" in (await browser.get("/profile")).text


async def test_an_old_name_that_a_browser_offers_stays_chosen(browser: Browser) -> None:
    await browser.post("/profile/time-zone", {"time_zone": "Etc/GMT+5"})
    assert '<option value="Etc/GMT+5" selected>' in (await browser.get("/profile")).text
