"""The confirmation before sensitive actions: nothing happens without it, and everything goes on after it."""

from tests import contexts
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser
from tests.software_authenticator import SoftwareAuthenticator

LATER = 15 * 60
NEW = {"name": "shop"}


async def test_a_form_is_refused_until_the_person_has_confirmed_who_they_are(
    browser: Browser, clock: contexts.Clock
) -> None:
    clock.pass_seconds(LATER)
    refused = await browser.post("/credentials", NEW)
    assert refused.status_code == 403
    assert '<a href="/confirm">Confirm it’s you</a>' in refused.text
    assert ">shop<" not in (await browser.get("/credentials")).text
    page = await browser.get("/confirm")
    assert 'name="password"' in page.text
    assert "Confirmed." not in page.text
    wrong = await browser.post("/confirm", {"password": "not this one", "next": ""})
    assert (wrong.status_code, ">password: incorrect<" in wrong.text) == (400, True)
    assert (await browser.post("/credentials", NEW)).status_code == 403
    confirmed = await browser.post("/confirm", {"password": contexts.PASSWORD, "next": ""})
    assert confirmed.headers["location"] == "/confirm"
    page = await browser.follow(confirmed)
    assert ("Confirmed." in page.text, "submit the form again" in page.text) == (True, True)
    assert (await browser.post("/credentials", NEW)).status_code == 201
    clock.pass_seconds(LATER)
    assert (await browser.post("/credentials", NEW)).status_code == 403


async def test_a_script_learns_the_code_and_nothing_is_lost(browser: Browser, clock: contexts.Clock) -> None:
    clock.pass_seconds(LATER)
    refused = await browser.client.post(
        "/credentials", data={"csrf_token": browser.csrf_token, **NEW}, headers={"X-Enhanced": "form"}
    )
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert refused.headers["confirmation"] == "required"


async def test_a_download_leads_to_the_page_and_back(browser: Browser, clock: contexts.Clock) -> None:
    assert (await browser.get("/audit-log/export", actor="x")).status_code == 200
    clock.pass_seconds(LATER)
    refused = await browser.get("/audit-log/export", who="owner@mine.example")
    assert refused.status_code == 303
    where = refused.headers["location"]
    assert where.startswith("/confirm?next=/audit-log/export%3F")
    page = await browser.get(where)
    assert 'value="/audit-log/export?who=owner%40mine.example"' in page.text
    form = {"password": contexts.PASSWORD, "next": "/audit-log/export?who=owner%40mine.example"}
    page = await browser.follow(await browser.post("/confirm", form))
    assert 'href="/audit-log/export?who=owner%40mine.example">Continue' in page.text


async def test_the_page_leads_nowhere_else(browser: Browser) -> None:
    for path in ("https://evil.example", "//evil.example", "/\\evil.example"):
        page = await browser.get("/confirm", next=path)
        assert "evil.example" not in page.text


async def test_a_passkey_confirms(browser: Browser, clock: contexts.Clock) -> None:
    authenticator = SoftwareAuthenticator("http://localhost:8025")
    asked = await browser.post("/profile/passkeys/options")
    await browser.post("/profile/passkeys", {"name": "Laptop", "answer": authenticator.create(asked.json())})
    clock.pass_seconds(LATER)
    assert "Use a passkey" in (await browser.get("/confirm")).text
    asked = await browser.post("/confirm/passkey/options")
    assert len(asked.json()["allowCredentials"]) == 1
    answer = {"answer": authenticator.get(asked.json()), "next": ""}
    assert browser_client.location_of(await browser.post("/confirm/passkey", answer)) == "/confirm"
    assert (await browser.post("/credentials", NEW)).status_code == 201


async def test_an_operator_who_looks_confirms_before_the_content_of_a_message(
    operator: Browser, stranger: Browser, clock: contexts.Clock
) -> None:
    clock.pass_seconds(LATER)
    path = f"/operator/accounts/{stranger.account_id}/view-as"
    assert (await operator.post(path)).status_code == 403
    await operator.post("/confirm", {"password": contexts.PASSWORD, "next": ""})
    assert (await operator.post(path)).status_code == 303
    # Also while they look.
    assert (await operator.get("/confirm")).status_code == 200
