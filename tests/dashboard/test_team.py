"""The page of the team, as every user sees it and as owners change it."""

import re

import msgspec
import pytest

from postroad import config, context, errors
from postroad.model.people import callers
from postroad.services.people import logins
from postroad.services.people import users as account_users
from postroad.storage.people import users
from tests import accepted_mail, contexts
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser

NEW = {"email": "new@mine.example", "role": "developer"}


def row_of(text: str, email: str) -> str:
    """The row of a user."""
    return next(row for row in text.split("<tr>") if f'<td class="address">{email}' in row)


def link_in(text: str) -> str:
    found = re.search(r"http://[^\s<]+(/password/[A-Za-z0-9]+)", text)
    assert found is not None
    return found[1]


async def person(ctx: context.Context, browser: Browser, email: str) -> users.User:
    return next(user for user in await account_users.of_account(ctx, browser.account_id) if user.email == email)


async def test_every_user_sees_the_team_and_what_the_roles_mean(
    ctx: context.Context, browser: Browser, reader: Browser
) -> None:
    await account_users.invite(ctx, browser.account_id, email="late@mine.example", role=callers.Role.DEVELOPER)
    await browser_client.person(ctx, browser.account_id, "gone@mine.example", callers.Role.DEVELOPER)
    await account_users.disable(ctx, browser.account_id, (await person(ctx, browser, "gone@mine.example")).id)
    text = (await reader.get("/team")).text
    assert "active" in row_of(text, "owner@mine.example")
    assert "(you)" in row_of(text, "reader@mine.example")
    assert ">invited<" in row_of(text, "late@mine.example")
    assert ">disabled<" in row_of(text, "gone@mine.example")
    assert "Roles" in text
    assert "Only owners and admins can invite users" in text


async def test_an_invitation_is_a_link_that_is_shown_once(
    ctx: context.Context, browser: Browser, nobody: Browser
) -> None:
    made = await browser.post("/team", NEW)
    assert made.status_code == 201
    path = link_in(made.text)
    assert "Invitation link for new@mine.example" in made.text
    assert ">invited<" in row_of(made.text, "new@mine.example")
    assert path not in (await browser.get("/team")).text
    joined = await nobody.client.post(path, data={"password": contexts.PASSWORD})
    assert joined.status_code == 303
    assert (await nobody.get("/team")).status_code == 200
    assert (await person(ctx, browser, "new@mine.example")).role == callers.Role.DEVELOPER


class TestMailedInvitations:
    """An installation that sends notices, once the domain of their sender is verified."""

    @pytest.fixture
    def settings(self, settings: config.Settings) -> config.Settings:
        operator = msgspec.structs.replace(settings.operator, sender=f"postmaster@{accepted_mail.DOMAIN}")
        return msgspec.structs.replace(settings, operator=operator)

    async def test_mail_is_promised_only_when_it_can_be_sent(self, ctx: context.Context, browser: Browser) -> None:
        assert "Postroad does not email it" in (await browser.post("/team", NEW)).text
        await accepted_mail.allow_sending(ctx, browser.account_id)
        made = await browser.post("/team", {**NEW, "email": "other@mine.example"})
        assert "It is also sent to other@mine.example by email." in made.text


async def test_the_link_leads_to_the_configured_address_whatever_the_host_says(browser: Browser) -> None:
    fields = {**NEW, "csrf_token": browser.csrf_token}
    made = await browser.client.post("/team", data=fields, headers={"Host": "evil.example"})
    assert made.status_code == 201
    assert "evil.example/password" not in made.text


@pytest.mark.parametrize(
    "fields",
    [
        {"email": "", "role": "developer"},
        {"email": "new@mine.example", "role": "god"},
    ],
    ids=str,
)
async def test_a_wrong_invitation_is_refused_with_a_sentence(
    ctx: context.Context, browser: Browser, fields: dict[str, str]
) -> None:
    refused = await browser.post("/team", fields)
    assert refused.status_code == 400
    assert "email:" in refused.text or "role:" in refused.text
    assert len(await account_users.of_account(ctx, browser.account_id)) == 1


async def test_whoever_is_invited_the_answer_does_not_tell_whether_they_belong_to_another_account(
    ctx: context.Context, browser: Browser, stranger: Browser
) -> None:
    assert stranger.user is not None
    assert browser.user is not None
    answers = []
    for email in (stranger.user.email, "nobody@elsewhere.example"):
        answer = await browser.post("/team", {"email": email, "role": "developer"})
        (user_id,) = {*re.findall(r"usr_[0-9a-f]{28}", answer.text)} - {browser.user.id}
        text = answer.text.replace(email, "EMAIL").replace(user_id, "ID")
        text = re.sub(r"/password/\w{43}", "/password/TOKEN", re.sub(r'csrf_token" value="\w+"', "CSRF", text))
        lines = sorted(text.splitlines())  # ids of one moment
        answers.append((answer.status_code, lines))
        await account_users.remove(ctx, browser.account_id, user_id)
    assert answers[0] == answers[1]
    assert answers[0][0] == 201


async def test_a_role_is_changed(ctx: context.Context, browser: Browser, member: Browser) -> None:
    assert member.user is not None
    for role, words in (
        ("owner", "an owner"),
        ("read_only", "read only"),
        ("developer", "a developer"),
        ("admin", "an admin"),
        ("analyst", "an analyst"),
    ):
        done = await browser.post(f"/team/{member.user.id}/role", {"role": role})
        assert browser_client.notice_of(done) == f"member@mine.example is now {words}."
        assert (await person(ctx, browser, "member@mine.example")).role == role


async def test_a_user_is_disabled_and_enabled_again(ctx: context.Context, browser: Browser, member: Browser) -> None:
    assert member.user is not None
    done = await browser.post(f"/team/{member.user.id}/disable")
    assert browser_client.notice_of(done) == "member@mine.example is disabled."
    assert (await member.get("/team")).headers["location"].startswith("/login")
    assert ">disabled<" in row_of((await browser.follow(done)).text, "member@mine.example")
    assert "Enable member@mine.example" in (await browser.get(f"/team/{member.user.id}")).text
    refused = await browser.post(f"/team/{member.user.id}/link")
    assert refused.status_code == 409
    done = await browser.post(f"/team/{member.user.id}/enable")
    assert browser_client.notice_of(done) == "member@mine.example is enabled and can log in again."
    await logins.log_in(ctx, "member@mine.example", contexts.PASSWORD, client_address="127.0.0.1")


async def test_what_a_user_created_is_shown_and_stops_or_is_handed_over(
    ctx: context.Context, browser: Browser, member: Browser
) -> None:
    assert member.user is not None
    assert browser.user is not None
    page = f"/team/{member.user.id}"
    assert "member@mine.example has no active API keys or SMTP credentials." in (await browser.get(page)).text
    await member.post("/credentials", {"name": "Web shop"})
    text = (await browser.get("/credentials")).text
    assert "by member@mine.example" in text
    assert "because member@mine.example is disabled" not in text
    text = (await browser.get(page)).text
    assert "<strong>Web shop</strong>" in text
    assert 'name="hand_over"' in text
    await browser.post(f"{page}/disable")
    text = (await browser.get("/credentials")).text
    assert "status-disabled" in text
    assert "because member@mine.example is disabled" in text
    text = (await browser.get(page)).text
    assert "which do not work while they are disabled" in text
    assert 'value="revoke" checked' in text
    # Without scripts, the question is a page, whose form has the field as the first one had it.
    asked = await browser.post(f"{page}/disable", {"hand_over": "true", "question": "Hand over?", "verb": "Hand over"})
    assert '<input type="hidden" name="hand_over" value="true">' in asked.text
    done = await browser.post(f"{page}/disable", {"hand_over": "true"})
    assert browser_client.notice_of(done) == (
        "member@mine.example is disabled. Their API keys and SMTP credentials are now yours and keep working."
    )
    text = (await browser.get("/credentials")).text
    assert "by owner@mine.example" in text
    assert "status-active" in text


async def test_a_link_for_a_new_password_is_shown_once(
    ctx: context.Context, browser: Browser, member: Browser, nobody: Browser
) -> None:
    assert member.user is not None
    made = await browser.post(f"/team/{member.user.id}/link")
    assert (made.status_code, "Password reset link for member@mine.example" in made.text) == (201, True)
    path = link_in(made.text)
    assert path not in (await browser.get("/team")).text
    assert (await nobody.client.post(path, data={"password": "another sentence"})).status_code == 303
    await logins.log_in(ctx, "member@mine.example", "another sentence", client_address="127.0.0.1")


async def test_a_user_is_removed(ctx: context.Context, browser: Browser, member: Browser) -> None:
    assert member.user is not None
    done = await browser.post(f"/team/{member.user.id}/remove")
    assert browser_client.notice_of(done) == "member@mine.example is removed from the team."
    assert (await member.get("/team")).status_code == 303
    with pytest.raises(errors.NotFound):
        await account_users.find(ctx, browser.account_id, member.user.id)
