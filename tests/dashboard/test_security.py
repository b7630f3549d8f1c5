"""The page of one's second factors: every change asks for the password or a code, and secrets are shown once."""

import re

import pytest

from postroad import config, context, errors
from postroad.dashboard import application
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.services.accounts import account_registry
from postroad.services.people import authentication, logins, password_links, second_factors, users
from tests import contexts
from tests.contexts import Clock
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser
from tests.services.people import authenticator

PAGE = "/profile/security"
PROOF = {"proof": contexts.PASSWORD}
CODE = re.compile(r"\b(?:[2-9a-z]{4}-){3}[2-9a-z]{4}\b")


async def begin(browser: Browser) -> str:
    """Begin to set up an app: its secret, as the page shows it."""
    page = await browser.post(f"{PAGE}/totp", PROOF)
    assert page.status_code == 201
    found = re.search(r"<code>((?:[A-Z2-7]{4} ?){8})</code>", page.text)
    assert found is not None
    assert "<svg" in page.text
    return found[1].replace(" ", "")


async def set_up(browser: Browser, clock: Clock) -> tuple[str, list[str]]:
    secret = await begin(browser)
    page = await browser.post(f"{PAGE}/totp/confirm", {"code": authenticator.code(secret, clock)})
    assert page.status_code == 201
    return secret, list(dict.fromkeys(CODE.findall(page.text)))


async def has_factor(ctx: context.Context, browser: Browser) -> bool:
    assert browser.user is not None
    return (await second_factors.of_login(ctx, browser.user.login_id or "")).exist


async def test_an_app_is_set_up_with_its_first_code_and_recovery_codes_are_shown_once(
    ctx: context.Context, reader: Browser, clock: Clock
) -> None:
    assert "Set up an app" in (await reader.get(PAGE)).text
    secret = await begin(reader)
    assert not await has_factor(ctx, reader)
    wrong = await reader.post(f"{PAGE}/totp/confirm", {"code": authenticator.wrong(secret, clock)})
    assert wrong.status_code == 400
    page = await reader.post(f"{PAGE}/totp/confirm", {"code": authenticator.code(secret, clock)})
    codes = set(CODE.findall(page.text))
    assert (page.status_code, len(codes)) == (201, 10)
    assert await has_factor(ctx, reader)
    shown = (await reader.get(PAGE)).text
    assert "10 of 10 left" in shown
    assert not CODE.search(shown)
    assert secret not in shown.replace(" ", "")


@pytest.mark.parametrize("verb", ["totp", "totp/remove", "recovery-codes"])
@pytest.mark.parametrize("proof", [{}, {"proof": "wrong password"}])
async def test_a_stolen_session_changes_no_factor(
    ctx: context.Context, browser: Browser, clock: Clock, verb: str, proof: dict[str, str]
) -> None:
    if verb != "totp":
        await set_up(browser, clock)
    had = await has_factor(ctx, browser)
    answer = await browser.post(f"{PAGE}/{verb}", proof)
    assert answer.status_code == 400
    assert await has_factor(ctx, browser) == had
    assert not CODE.search(answer.text)


async def test_the_secret_is_on_no_page_that_can_be_opened_again(browser: Browser) -> None:
    """Otherwise a stolen session would find the secret that its owner is about to confirm."""
    secret = await begin(browser)
    assert secret not in (await browser.get(PAGE)).text.replace(" ", "")
    assert "<svg" not in (await browser.get(PAGE)).text.partition("<main")[2]
    # And it cannot confirm one of its own: there is one, which only the owner's app knows.
    assert (await browser.post(f"{PAGE}/totp/confirm", {"code": "000000"})).status_code == 400


async def test_the_app_is_removed_with_a_code_and_codes_are_renewed(
    ctx: context.Context, browser: Browser, clock: Clock
) -> None:
    secret, codes = await set_up(browser, clock)
    renewed = await browser.post(f"{PAGE}/recovery-codes", PROOF)
    later = set(CODE.findall(renewed.text))
    assert (renewed.status_code, len(later)) == (201, 10)
    assert not later & set(codes)
    clock.pass_seconds(60)
    removed = await browser.post(f"{PAGE}/totp/remove", {"proof": authenticator.code(secret, clock)})
    assert browser_client.notice_of(removed) == "Authenticator app removed."
    assert not await has_factor(ctx, browser)


async def test_whoever_has_no_required_factor_is_led_to_set_one_up_and_to_nothing_else(
    ctx: context.Context, browser: Browser, site: sites.Site, clock: Clock
) -> None:
    await account_registry.require_second_factor(ctx, browser.account_id, required=True)
    allowed = {"/confirm", "/logout", PAGE, f"{PAGE}/totp", f"{PAGE}/totp/confirm"}
    for route in application.routes(site):
        if route.permission is None or "{" in route.path or route.path in allowed or route.method != "GET":
            continue
        answer = await browser.get(route.path)
        assert answer.status_code in (303, 400, 403), route.path
        if answer.status_code == 303:
            assert answer.headers["location"] == PAGE, route.path
    allowed |= {"/switch", "/confirm/passkey/options", "/profile/passkeys/options"}
    for route in application.routes(site):
        if route.permission is None or route.method != "POST" or route.path in allowed:
            continue
        path = re.sub(r"\{\w+\}", "x", route.path)
        answer = await browser.post(path)
        assert answer.status_code in (303, 400, 403), path
        if answer.status_code == 303:
            assert answer.headers["location"] == PAGE, path
    refused = await browser.post("/team", {"email": "new@mine.example", "role": "developer"})
    assert refused.headers["location"] == PAGE
    page = await browser.get(PAGE)
    assert "This account requires two-factor authentication" in page.text
    await set_up(browser, clock)
    assert (await browser.get("/team")).status_code == 200


async def test_an_owner_requires_it_on_the_page_of_the_team(
    ctx: context.Context, browser: Browser, member: Browser, clock: Clock
) -> None:
    assert "0 of 2 users have set it up" in (await browser.get("/team")).text
    await set_up(browser, clock)
    page = (await browser.get("/team")).text
    assert "1 of 2 users have set it up" in page
    assert page.count(">yes<") == 1
    answer = await browser.post("/team/second-factor", {"required": "true"})
    assert browser_client.notice_of(answer) == "Two-factor authentication is now required."
    assert "Required for everybody" in (await browser.get("/team")).text
    assert (await member.get("/messages")).headers["location"] == PAGE
    answer = await browser.post("/team/second-factor", {"required": "false"})
    assert browser_client.notice_of(answer) == "Two-factor authentication is no longer required."
    assert (await member.get("/messages")).status_code == 200


async def test_a_token_of_the_profile_has_the_factor_of_its_session(
    ctx: context.Context, browser: Browser, clock: Clock
) -> None:
    before = await make_token(browser)
    await set_up(browser, clock)
    after = await make_token(browser)
    await account_registry.require_second_factor(ctx, browser.account_id, required=True)
    with pytest.raises(errors.Unauthorized):
        await authentication.authenticate(ctx, f"Bearer {before}", client_address="127.0.0.1")
    who = await authentication.authenticate(ctx, f"Bearer {after}", client_address="127.0.0.1")
    assert browser.user is not None
    assert who.user_id == browser.user.id


async def make_token(browser: Browser) -> str:
    made = await browser.post("/profile/token")
    return made.text.partition("Bearer ")[2].partition("&")[0]


class TestOperators:
    @pytest.fixture
    def settings(self, database_url: str) -> config.Settings:
        return config.load(
            environment={},
            overrides={
                "database": {"url": database_url},
                "security": {"installation_key": contexts.SECRET_KEY, "operator_second_factor": True},
            },
        )

    async def test_the_console_is_closed_until_an_operator_has_one(
        self, operator: Browser, reader: Browser, clock: Clock
    ) -> None:
        assert (await operator.get("/operator/accounts")).headers["location"] == PAGE
        assert (await reader.get("/messages")).status_code == 200
        assert "This installation requires two-factor authentication" in (await operator.get(PAGE)).text
        await set_up(operator, clock)
        assert (await operator.get("/operator/accounts")).status_code == 200


async def test_whoever_has_to_set_one_up_can_log_out_or_go_to_another_account(
    ctx: context.Context, browser: Browser, stranger: Browser
) -> None:
    assert browser.user is not None
    invited = await users.invite(ctx, stranger.account_id, email=browser.user.email, role=callers.Role.DEVELOPER)
    acting = logins.acting(ctx, client_address="127.0.0.1")
    await password_links.redeem(acting, invited.link_token, password=contexts.PASSWORD)
    await account_registry.require_second_factor(ctx, browser.account_id, required=True)
    assert (await browser.get("/messages")).headers["location"] == PAGE
    switched = await browser.post("/switch", {"account_id": stranger.account_id})
    assert switched.status_code == 303
    assert (await browser.get("/messages")).status_code == 200
    back = {"account_id": browser.account_id, "csrf_token": await csrf_token(browser, "/messages")}
    assert (await browser.client.post("/switch", data=back)).status_code == 303
    assert (await browser.get("/messages")).headers["location"] == PAGE
    out = await browser.client.post("/logout", data={"csrf_token": await csrf_token(browser, PAGE)})
    assert out.headers["location"] == "/login"


async def csrf_token(browser: Browser, path: str) -> str:
    """That of the session after a switch, as a page has it."""
    found = re.search(r'name="csrf_token" value="(\w+)"', (await browser.get(path)).text)
    assert found is not None
    return found[1]
