"""What every page has in common: where a change may come from, what answers carry, and how refusals look."""

import dataclasses
import re
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from postroad import config, context
from postroad.dashboard import application as error_pages
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.services.people import logins
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.people import accounts as stored_accounts
from tests import contexts
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser

ADD = {"email": "somebody@example.net"}
SECURE_URL = "https://mail.example"


@pytest_asyncio.fixture
async def secured(
    ctx: context.Context, site: sites.Site, mine: stored_accounts.Account
) -> AsyncIterator[tuple[browser_client.Served, Browser]]:
    """The dashboard as users reach it over TLS, and an owner's browser there."""
    served = browser_client.serve(ctx, dataclasses.replace(site, base_url=SECURE_URL))
    user = await browser_client.person(ctx, mine.id, "secure@mine.example", callers.Role.OWNER)
    async with browser_client.open_browser(ctx, served, user, base_url=SECURE_URL) as browser:
        yield served, browser


async def on_the_list(ctx: context.Context, account_id: str) -> list[str]:
    return [row.email_key for row in await suppressions.page(ctx, account_id, after="", limit=10)]


def cookie_fields(response: httpx.Response) -> list[str]:
    return response.headers.get_list("set-cookie")


# Where a change may come from


@pytest.mark.parametrize("csrf_token", [None, "", "0" * 64, "é", "\ud7ff"])
async def test_a_form_without_the_right_word_changes_nothing(
    ctx: context.Context, browser: Browser, csrf_token: str | None
) -> None:
    fields = ADD if csrf_token is None else {**ADD, "csrf_token": csrf_token}
    refused = await browser.client.post("/suppressions", data=fields)
    assert refused.status_code == 403
    assert "form has expired" in refused.text
    assert await on_the_list(ctx, browser.account_id) == []


async def test_the_word_of_another_session_is_worth_nothing(
    ctx: context.Context, served: browser_client.Served, browser: Browser, stranger: Browser
) -> None:
    assert browser.user is not None
    async with browser_client.open_browser(ctx, served, browser.user) as second:
        assert second.csrf_token != browser.csrf_token
        for csrf_token in (second.csrf_token, stranger.csrf_token):
            refused = await browser.client.post("/suppressions", data={**ADD, "csrf_token": csrf_token})
            assert refused.status_code == 403
    assert await on_the_list(ctx, browser.account_id) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "null"},
        {"Origin": "null", "Sec-Fetch-Site": "none"},
        {"Origin": "null", "Sec-Fetch-Site": "same-site"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://postroad.test.evil.example"},
        {"Origin": "http://postroad.test:8080"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://postroad.test"},
    ],
    ids=str,
)
async def test_what_another_site_has_started_changes_nothing_though_it_knew_the_word(
    ctx: context.Context, browser: Browser, headers: dict[str, str]
) -> None:
    refused = await browser.client.post(
        "/suppressions", data={**ADD, "csrf_token": browser.csrf_token}, headers=headers
    )
    assert refused.status_code == 403
    assert "ross-site request refused" in refused.text
    assert await on_the_list(ctx, browser.account_id) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://postroad.test"},
        {"Origin": "HTTP://Postroad.test", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "https://postroad.test", "Sec-Fetch-Site": "same-origin"},
        # A form of a page whose Referrer-Policy is `no-referrer`, sent without scripts (Fetch, "append a request
        # Origin").
        {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    ],
    ids=str,
)
async def test_a_page_of_ours_says_so_and_is_heard(
    ctx: context.Context, browser: Browser, headers: dict[str, str]
) -> None:
    done = await browser.client.post("/suppressions", data={**ADD, "csrf_token": browser.csrf_token}, headers=headers)
    assert done.status_code == 303
    assert len(await on_the_list(ctx, browser.account_id)) == 1


# Credentials of one listener are refused by the others


# What answers carry


async def test_a_notice_is_shown_once_and_is_only_text(browser: Browser) -> None:
    done = await browser.post("/suppressions", ADD)
    (field,) = cookie_fields(done)
    assert re.fullmatch(r"postroad_notice=good![\w%.~-]+![\w.-]+; Path=/; Max-Age=60; HttpOnly; SameSite=Lax", field)
    page = await browser.follow(done)
    assert browser_client.notice_of(done) in page.text
    assert "Max-Age=0" in cookie_fields(page)[0]
    assert browser_client.notice_of(done) not in (await browser.get("/suppressions")).text
    browser.client.cookies.set("postroad_notice", "%3Cscript%3Ealert(1)%3C/script%3E", domain="postroad.test")
    assert "<script>alert" not in (await browser.get("/suppressions")).text


async def test_a_notice_looks_as_good_as_it_is(browser: Browser) -> None:
    for value, shown in (
        ("bad!Lost.", '<p class="notice bad" role="alert" tabindex="-1">Lost.</p>'),
        ("warn!Half.", '<p class="notice warn" role="status" tabindex="-1">Half.</p>'),
        ("good%20x!Done.", '<p class="notice good" role="status" tabindex="-1">Done.</p>'),
    ):
        browser.client.cookies.set("postroad_notice", value, domain="postroad.test", path="/")
        assert shown in (await browser.get("/suppressions")).text


async def test_a_browser_over_tls_gets_cookies_that_never_leave_it(
    secured: tuple[browser_client.Served, Browser],
) -> None:
    served, browser = secured
    page = await browser.get("/profile")
    assert page.status_code == 200
    assert page.headers["strict-transport-security"] == "max-age=31536000"
    (notice,) = cookie_fields(await browser.post("/suppressions", ADD))
    assert notice.startswith("__Host-postroad_notice=")
    assert notice.endswith("; HttpOnly; SameSite=Lax; Secure")
    async with browser_client.open_client(served, base_url=SECURE_URL) as client:
        login = {"email": "secure@mine.example", "password": contexts.PASSWORD}
        (session,) = cookie_fields(await client.post("/login", data=login))
        assert session.startswith("__Host-postroad=")
        assert session.endswith("; HttpOnly; SameSite=Lax; Secure")
        # The cookie's other name does not count here: a neighbouring host could have set it.
        bare = {"Cookie": session.partition(";")[0].removeprefix("__Host-")}
        client.cookies.clear()
        assert (await client.get("/profile", headers=bare)).status_code == 303


async def test_the_configured_address_is_an_origin_of_ours_whatever_the_host(
    ctx: context.Context, secured: tuple[browser_client.Served, Browser]
) -> None:
    _, browser = secured
    fields = {**ADD, "csrf_token": browser.csrf_token}
    headers = {"Origin": SECURE_URL, "Host": "inside:8080"}
    assert (await browser.client.post("/suppressions", data=fields, headers=headers)).status_code == 303
    assert len(await on_the_list(ctx, browser.account_id)) == 1


# Refusals


async def test_a_refusal_is_a_page_with_its_request_id(browser: Browser) -> None:
    missing = await browser.get("/nothing/here")
    assert missing.status_code == 404
    assert missing.headers["content-type"] == "text/html; charset=utf-8"
    assert missing.headers["content-security-policy"] == browser_client.PAGE_POLICY
    assert missing.headers["x-request-id"] in missing.text
    assert "not_found" in missing.text
    wrong = await browser.post("/suppressions", {"email": "<b>nobody</b>"})
    assert wrong.status_code == 400
    assert wrong.headers["x-request-id"] in wrong.text
    assert "<b>nobody" not in wrong.text


async def test_what_a_handler_refuses_has_the_menu_of_its_reader(browser: Browser, operator: Browser) -> None:
    missing = await browser.get("/messages/em_0000000000000000000000000000")
    assert missing.status_code == 404
    assert missing.headers["x-request-id"] in missing.text
    assert 'aria-label="Pages"' in missing.text
    assert "owner@mine.example" in missing.text
    inside = await operator.get("/operator/accounts/acc_0")
    assert (inside.status_code, ">Source addresses</a>" in inside.text) == (404, True)


async def test_what_no_handler_refuses_has_the_menu_of_whoever_is_logged_in(
    browser: Browser, operator: Browser, nobody: Browser
) -> None:
    for path, status in (("/nothing/here", 404), ("/operator/nothing", 404), ("/operator", 403)):
        refused = await browser.get(path)
        assert (refused.status_code, 'aria-label="Pages"' in refused.text) == (status, True)
        assert "owner@mine.example" in refused.text
        assert ">Source addresses</a>" not in refused.text
    assert ">Source addresses</a>" in (await operator.get("/operator/nothing")).text
    stranger = await nobody.get("/nothing/here")
    assert (stranger.status_code, 'aria-label="Pages"' in stranger.text) == (404, False)


async def test_a_form_from_elsewhere_is_refused_with_the_menu_of_its_reader(browser: Browser) -> None:
    fields = {**ADD, "csrf_token": browser.csrf_token}
    refused = await browser.client.post("/suppressions", data=fields, headers={"Sec-Fetch-Site": "cross-site"})
    assert (refused.status_code, 'aria-label="Pages"' in refused.text) == (403, True)


async def test_a_missing_page_is_explained_in_html(browser: Browser) -> None:
    missing = await browser.get("/nothing/here")
    assert "There is no page at this address." in missing.text
    again = await browser.get("/domains/dom_1/check")
    assert (again.status_code, again.headers["allow"]) == (405, "POST")
    assert "This address only accepts form submissions" in again.text
    assert '<a href="/domains">Domains</a>' in again.text


async def test_a_form_that_is_refused_says_that_nothing_is_lost(browser: Browser) -> None:
    wrong = await browser.post("/suppressions", {"email": "nobody"})
    assert "Nothing was changed. Go back" in wrong.text
    assert '<a href="/suppressions">Suppressions</a>' in wrong.text
    for path in ("/domains/dom_1/remove", "/nothing/here"):
        assert "Nothing was changed" not in (await browser.post(path)).text
    assert "Nothing was changed" not in (await browser.get("/messages", search="nothing:here", before="x")).text


async def test_where_a_refusal_leads_there_is_a_page(operator: Browser) -> None:
    menu = (await operator.get("/")).text
    for path, name in error_pages.SECTIONS.values():
        page = await operator.get(path)
        if path == "/login":
            assert page.status_code == 303
            continue
        assert page.status_code == 200
        assert f">{name}</a>" in menu or path == "/profile"


async def test_fields_of_forms_keep_what_was_typed_on_the_way_back(browser: Browser) -> None:
    """Browsers forget what stands in a field with autocomplete="off", so only boxes for searching may have it."""
    for path in (
        "/domains",
        "/suppressions",
        "/credentials",
        "/keys",
        "/template/new/blank",
        "/webhooks",
        "/team",
        "/profile",
    ):
        page = (await browser.get(path)).text
        fields = re.findall(r"<(?:input|textarea|select)[^>]*>", page)
        assert fields
        searching = ('type="search"', 'role="combobox"')
        others = [field for field in fields if not any(mark in field for mark in searching)]
        assert [field for field in others if 'autocomplete="off"' in field] == []


async def test_programs_and_scripts_of_ours_get_a_refusal_as_an_object(browser: Browser, nobody: Browser) -> None:
    for headers in ({"Accept": "application/json"}, {"Accept": "*/*"}, {"X-Enhanced": "form"}):
        missing = await browser.client.get("/nothing/here", headers=headers)
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
        assert missing.json()["request_id"] == missing.headers["x-request-id"]
        unknown = await nobody.client.get("/profile", headers=headers)
        assert (unknown.status_code, unknown.json()["code"]) == (401, "unauthorized")


async def test_a_script_of_ours_gets_the_redirect_target(browser: Browser) -> None:
    fields = {**ADD, "csrf_token": browser.csrf_token}
    done = await browser.client.post("/suppressions", data=fields, headers={"X-Enhanced": "form"})
    assert (done.status_code, done.headers["go-to"], done.content) == (204, "/suppressions", b"")
    assert "location" not in done.headers


async def test_an_internal_error_is_a_page_without_details(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("the password of the store is open sesame")

    monkeypatch.setattr(logins, "me", broken)
    answer = await browser.get("/profile")
    assert answer.status_code == 500
    assert answer.headers["x-request-id"] in answer.text
    assert "sesame" not in answer.text
    # The menu needs what is broken.
    assert 'aria-label="Pages"' not in answer.text


async def test_a_suspended_account_sees_it_on_every_page(ctx: context.Context, browser: Browser) -> None:
    async with ctx.store.transaction() as tx:
        await stored_accounts.suspend(tx, browser.account_id, reason="spam & more", by=stored_accounts.OPERATOR, now=1)
    banner = "The operator suspended it: spam &amp; more. Ask the operator to resume it."
    assert banner in (await browser.get("/profile")).text
    reason = "bounce guard: 9 of the last 90 recipients do not exist. Sending resumes on 2026-02-01 at 12:00 UTC"
    async with ctx.store.transaction() as tx:
        await stored_accounts.suspend(tx, browser.account_id, reason=reason, by=stored_accounts.BOUNCE_GUARD, now=1)
    page = (await browser.get("/")).text
    assert f"cannot send.</strong> B{reason[1:]}.</p>" in page
    assert "The bounce guard suspended" not in page  # the same in another banner
    assert "The operator suspended" not in page


def test_the_settings_have_no_address_unless_it_is_written() -> None:
    settings = config.load(environment={}, overrides={})
    assert not browser_client.build_site(settings).is_secure
