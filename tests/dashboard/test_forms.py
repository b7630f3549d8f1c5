"""Whether a request that changes something comes from a page of ours, as browsers say it."""

import pytest

from tests.dashboard.browser_client import BASE_URL, Browser

OURS: list[dict[str, str]] = [
    {},
    {"Origin": BASE_URL},
    {"Origin": BASE_URL, "Sec-Fetch-Site": "same-origin"},
    # A form of a page whose Referrer-Policy is `no-referrer`, sent without scripts (Fetch, "append a request Origin").
    {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
]
FOREIGN: list[dict[str, str]] = [
    {"Origin": "null"},
    {"Origin": "null", "Sec-Fetch-Site": "none"},
    {"Origin": "null", "Sec-Fetch-Site": "same-site"},
    {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "cross-site"},
]


async def token_status(browser: Browser, headers: dict[str, str]) -> int:
    answer = await browser.client.post("/profile/token", data={"csrf_token": browser.csrf_token}, headers=headers)
    return answer.status_code


@pytest.mark.parametrize("headers", OURS)
async def test_a_form_of_our_own_pages_is_taken(browser: Browser, headers: dict[str, str]) -> None:
    assert await token_status(browser, headers) == 201


@pytest.mark.parametrize("headers", FOREIGN)
async def test_a_form_of_anybody_else_is_refused(browser: Browser, headers: dict[str, str]) -> None:
    assert await token_status(browser, headers) == 403
