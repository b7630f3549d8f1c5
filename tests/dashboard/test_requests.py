"""The page of requests: what was refused, its filters, and a request with its body for those who may see content."""

import html

from postroad import context
from postroad.model.people import callers
from postroad.services.people import api_keys
from tests import contexts, logged_requests
from tests.dashboard.browser_client import Browser


async def test_without_requests_the_page_says_what_would_be_here(browser: Browser) -> None:
    text = (await browser.get("/requests")).text
    assert "No requests yet" in text


async def test_a_refused_request_is_listed_filtered_and_opened(
    ctx: context.Context, clock: contexts.Clock, browser: Browser, reader: Browser
) -> None:
    key, _ = await api_keys.create(
        ctx, browser.account_id, credential_id=None, name="shop <b>", scopes=frozenset({callers.Scope.SEND})
    )
    by_key = logged_requests.note(ctx, browser.account_id, key=key.id)
    clock.pass_seconds(1)
    other = logged_requests.note(ctx, browser.account_id)
    text = (await reader.get("/requests")).text
    assert text.index(f'href="/requests/{other}"') < text.index(f'href="/requests/{by_key}"')
    assert "403 <code>forbidden</code>" in text
    assert "the domain is not verified" in text
    text = (await reader.get("/requests", caller=key.id, status="refused")).text
    assert (f'href="/requests/{by_key}"' in text, f'href="/requests/{other}"' in text) == (True, False)
    assert f'selected value="{key.id}">shop &lt;b&gt;</option>' in text
    assert "No requests match" in (await reader.get("/requests", status="failed")).text
    assert f"/requests?caller={key.id}" in (await reader.get("/keys")).text
    shown = html.unescape((await reader.get(f"/requests/{by_key}")).text)
    assert '"subject": "Hello"' in shown
    assert '"password": "[secret]"' in shown
    assert "hunter2" not in shown


async def test_who_may_not_see_content_sees_no_body(ctx: context.Context, browser: Browser, analyst: Browser) -> None:
    request_id = logged_requests.note(ctx, browser.account_id)
    shown = (await analyst.get(f"/requests/{request_id}")).text
    assert "The body is hidden" in shown
    assert "Hello" not in shown


async def test_a_request_of_another_account_is_not_found(
    ctx: context.Context, browser: Browser, stranger: Browser
) -> None:
    request_id = logged_requests.note(ctx, browser.account_id)
    assert (await stranger.get(f"/requests/{request_id}")).status_code == 404
    listed = (await stranger.get("/requests")).text
    assert (f'href="/requests/{request_id}"' in listed, "POST /emails" in listed) == (False, False)
    assert f'href="/requests/{request_id}"' not in (await stranger.get("/find", q=request_id)).text
    assert f"/requests/{request_id}" in (await browser.get("/find", q=request_id)).text


async def test_the_page_of_a_refusal_leads_to_its_request(browser: Browser, reader: Browser) -> None:
    refused = await reader.post("/suppressions", {"email": "ada@example.net"})
    request_id = refused.headers["x-request-id"]
    assert (refused.status_code, f'href="/requests/{request_id}"' in refused.text) == (403, True)
    shown = (await browser.get(f"/requests/{request_id}")).text
    assert "POST /suppressions" in shown
    assert "reader@mine.example" in shown
    assert "ada@example.net" not in shown


async def test_what_a_person_can_correct_is_not_listed(browser: Browser) -> None:
    for path in ("/messages/em_0000000000000000000000000000", "/nowhere", "/requests?before=x"):
        refused = await browser.get(path)
        assert (refused.status_code in {400, 404}, "/requests/req_" in refused.text) == (True, False)
    assert "No requests yet" in (await browser.get("/requests")).text
