"""How a session begins and ends, and the link by which somebody chooses a password."""

import httpx
import pytest

from postroad import context
from postroad.dashboard.people import login
from postroad.model.people import callers
from postroad.services.accounts import account_registry
from postroad.services.people import logins, users
from tests import contexts
from tests.dashboard.browser_client import Browser

LOGIN = {"email": "owner@mine.example", "password": contexts.PASSWORD}
HOUR = 3_600
ELSEWHERE = [
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "javascript:alert(1)",
    "/\r\nSet-Cookie: x=y",
    "/\t/evil.example",
    "evil.example",
    "/é",
    " //evil.example",
]


async def is_in(browser: Browser) -> bool:
    answer = await browser.get("/profile")
    assert answer.status_code in (200, 303)
    return answer.status_code == 200


def session_fields(response: httpx.Response) -> list[str]:
    return [field for field in response.headers.get_list("set-cookie") if field.startswith("postroad=")]


async def test_the_right_password_opens_a_session_in_a_cookie_that_scripts_cannot_read(
    browser: Browser, nobody: Browser
) -> None:
    answer = await nobody.client.post("/login", data=LOGIN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    (field,) = session_fields(answer)
    assert field.endswith(f"; Path=/; Max-Age={12 * HOUR}; HttpOnly; SameSite=Lax")
    assert await is_in(nobody)


@pytest.mark.parametrize(
    "changes",
    [
        {"password": "wrong"},
        {"password": ""},
        {"email": "<script>alert(1)</script>"},
    ],
    ids=str,
)
async def test_a_wrong_password_is_a_page_with_the_sentence(
    browser: Browser, nobody: Browser, changes: dict[str, str]
) -> None:
    answer = await nobody.client.post("/login", data=LOGIN | changes)
    assert answer.status_code in (400, 401)
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["x-request-id"] in answer.text
    assert not answer.headers.get_list("set-cookie")
    assert "<script>alert" not in answer.text


async def test_a_closed_account_is_named_as_the_reason_once_the_password_is_right(
    ctx: context.Context, browser: Browser, nobody: Browser
) -> None:
    await account_registry.close(ctx, browser.account_id)
    assert not await is_in(browser)
    answer = await nobody.client.post("/login", data=LOGIN)
    assert answer.status_code == 401
    assert "The account is closed; contact the operator" in answer.text
    wrong = await nobody.client.post("/login", data=LOGIN | {"password": "another password"})
    assert "is closed" not in wrong.text


async def test_an_unknown_email_and_a_wrong_password_look_the_same(browser: Browser, nobody: Browser) -> None:
    texts = set()
    for changes in ({"password": "wrong wrong"}, {"email": "nobody@mine.example"}):
        answer = await nobody.client.post("/login", data=LOGIN | changes)
        texts.add(answer.text.replace(answer.headers["x-request-id"], ""))
    assert len(texts) == 1


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}], ids=str
)
async def test_another_site_cannot_log_anybody_in(browser: Browser, nobody: Browser, headers: dict[str, str]) -> None:
    answer = await nobody.client.post("/login", data=LOGIN, headers=headers)
    assert answer.status_code == 403
    assert not answer.headers.get_list("set-cookie")


async def test_a_log_in_leads_where_somebody_wanted_to_go(browser: Browser, nobody: Browser) -> None:
    asked = await nobody.get("/suppressions")
    assert asked.headers["location"] == "/login?next=/suppressions"
    page = await nobody.follow(asked)
    assert 'name="next" value="/suppressions"' in page.text
    answer = await nobody.client.post("/login", data={**LOGIN, "next": "/suppressions"})
    assert answer.headers["location"] == "/suppressions"


async def test_a_log_in_leads_to_what_was_searched_for(browser: Browser, nobody: Browser) -> None:
    wanted = "/messages?search=status%3Afailed%20to%3Aada%26co"
    page = await nobody.follow(await nobody.client.get(wanted))
    assert f'name="next" value="{wanted}"' in page.text
    answer = await nobody.client.post("/login", data={**LOGIN, "next": wanted})
    assert answer.headers["location"] == wanted


@pytest.mark.parametrize("path", [f"/messages?search={'x' * 1_000}", f"/messages/{'x' * 1_000}", "/?period=7d\\x"])
async def test_what_is_too_long_or_strange_to_come_back_to_is_left_out(nobody: Browser, path: str) -> None:
    asked = await nobody.client.get(path)
    assert asked.status_code in (303, 404)
    assert len(asked.headers.get("location", "")) < 100


async def test_a_form_whose_session_is_over_says_why_it_was_not_done(nobody: Browser) -> None:
    refused = await nobody.post("/suppressions", {"email": "somebody@example.net"})
    assert refused.headers["location"] == "/login?session_expired=true"
    assert "Your session has expired" in (await nobody.follow(refused)).text
    assert "Your session has expired" not in (await nobody.get("/login")).text


@pytest.mark.parametrize("following", ELSEWHERE)
async def test_a_log_in_leads_nowhere_else(browser: Browser, nobody: Browser, following: str) -> None:
    assert login.local_path(following) == "/"
    answer = await nobody.client.post("/login", data={**LOGIN, "next": following})
    assert answer.headers["location"] == "/"
    assert (await browser.get("/login", next=following)).headers["location"] == "/"


async def test_who_is_in_need_not_log_in_again(browser: Browser) -> None:
    answer = await browser.get("/login", next="/team")
    assert (answer.status_code, answer.headers["location"]) == (303, "/team")


async def test_a_session_is_not_made_anew_with_every_look(clock: contexts.Clock, browser: Browser) -> None:
    clock.pass_seconds(HOUR)
    assert not session_fields(await browser.get("/profile"))
    clock.pass_seconds(HOUR)
    assert session_fields(await browser.get("/profile"))


async def test_the_words_of_forms_stay_good_when_a_session_is_made_anew(
    clock: contexts.Clock, browser: Browser
) -> None:
    clock.pass_seconds(6 * HOUR)
    assert await is_in(browser)
    assert (await browser.post("/suppressions", {"email": "somebody@example.net"})).status_code == 303


async def test_a_log_out_ends_the_session_and_all_tokens_it_had(
    ctx: context.Context, clock: contexts.Clock, browser: Browser
) -> None:
    assert browser.session is not None
    clock.pass_seconds(6 * HOUR)
    (renewed,) = session_fields(await browser.get("/profile"))
    answer = await browser.post("/logout")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert "Max-Age=0" in session_fields(answer)[0]
    for token in (browser.session.token, renewed.partition(";")[0].removeprefix("postroad=")):
        browser.client.cookies.clear()
        browser.client.cookies.set("postroad", token, domain="postroad.test")
        assert not await is_in(browser)


async def set_password(ctx: context.Context, account_id: str, user_id: str) -> None:
    await users.set_password(ctx, account_id, user_id, password="another sentence")


async def test_an_invited_user_chooses_a_password_and_is_in(
    ctx: context.Context, browser: Browser, nobody: Browser
) -> None:
    invited = await users.invite(ctx, browser.account_id, email="new@mine.example", role=callers.Role.DEVELOPER)
    path = f"/password/{invited.link_token}"
    page = await nobody.get(path)
    assert (page.status_code, "Welcome to Postroad" in page.text) == (200, True)
    assert "new@mine.example" in page.text
    short = await nobody.client.post(path, data={"password": "short"})
    assert short.status_code == 400
    answer = await nobody.client.post(path, data={"password": contexts.PASSWORD})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert await is_in(nobody)
    await logins.log_in(ctx, "new@mine.example", contexts.PASSWORD, client_address="127.0.0.1")


async def test_another_site_cannot_use_a_link(ctx: context.Context, browser: Browser, nobody: Browser) -> None:
    assert browser.user is not None
    made = await users.create_password_link(ctx, browser.account_id, browser.user.id)
    evil = {"Origin": "https://evil.example"}
    refused = await nobody.client.post(f"/password/{made.token}", data={"password": "of somebody"}, headers=evil)
    assert refused.status_code == 403
    await logins.log_in(ctx, "owner@mine.example", contexts.PASSWORD, client_address="127.0.0.1")
