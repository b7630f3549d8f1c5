"""The link in a notice that ends mail of its kind, and the choices on the profile."""

from postroad import context
from postroad.mail import notice_kinds
from postroad.services import audit_log
from postroad.services.operations.notices import choices
from postroad.services.people import users
from tests.contexts import Clock
from tests.dashboard.browser_client import Browser


async def test_a_mail_program_ends_a_kind_with_one_request(
    ctx: context.Context, browser: Browser, nobody: Browser, clock: Clock
) -> None:
    assert browser.user is not None
    clock.pass_seconds(1)
    link = "/notices/" + choices.unsubscribe_url(ctx, browser.user.id, notice_kinds.CREDITS_LOW).rpartition("/")[2]
    asked = await nobody.get(link)
    assert (asked.status_code, "Stop emails of this kind to" in asked.text) == (200, True)
    assert (await choices.of_user(ctx, browser.user))[notice_kinds.CREDITS_LOW] is notice_kinds.Choice.NOW
    # From a server of a mailbox provider, without our cookies and from no page.
    done = await nobody.client.post(
        link, data={"List-Unsubscribe": "One-Click"}, headers={"Origin": "https://x.example"}
    )
    assert (done.status_code, "no longer gets emails of this kind: Credits are low." in done.text) == (200, True)
    chosen = await choices.of_user(ctx, browser.user)
    assert [kind for kind, choice in chosen.items() if choice is notice_kinds.Choice.OFF] == [notice_kinds.CREDITS_LOW]
    (entry, *_) = await audit_log.page(ctx, browser.account_id, before=None, limit=1)
    assert (entry.actor, audit_log.text(entry)) == (
        "owner@mine.example",
        "changed what owner@mine.example gets by email (credits.low to off)",
    )


async def test_another_kind_or_another_person_needs_another_link(
    ctx: context.Context, browser: Browser, stranger: Browser, nobody: Browser
) -> None:
    assert browser.user is not None
    assert stranger.user is not None
    url = choices.unsubscribe_url(ctx, browser.user.id, notice_kinds.CREDITS_LOW).rpartition("/")[2]
    security = choices.unsubscribe_url(ctx, browser.user.id, notice_kinds.NEW_NETWORK).rpartition("/")[2]
    for token in (
        url.replace(notice_kinds.CREDITS_LOW, notice_kinds.DOMAIN_FAILING),
        url.replace(browser.user.id, stranger.user.id),
        url[:-1],
        url.replace("credits", "no"),
        "x",
    ):
        assert (await nobody.get(f"/notices/{token}")).status_code == 404
        assert (await nobody.client.post(f"/notices/{token}")).status_code == 404
    assert (await nobody.client.post(f"/notices/{security}")).status_code == 400


async def test_the_profile_offers_what_one_may_get(ctx: context.Context, browser: Browser, reader: Browser) -> None:
    assert browser.user is not None
    page = (await browser.get("/profile")).text
    assert "Credits are low" in page
    assert "A check of the installation fails" not in page
    assert "Notifications</h2>" not in (await reader.get("/profile")).text
    await users.add_operator(ctx, browser.user.email)
    assert "A check of the installation fails" in (await browser.get("/profile")).text
    changed = await browser.post("/profile/notices", {"credits_low": "digest"})
    page = (await browser.follow(changed)).text
    assert "Saved." in page
    assert 'value="digest" aria-label="Credits are low: Daily" checked' in page
    assert (await choices.of_user(ctx, browser.user))[notice_kinds.CREDITS_LOW] is notice_kinds.Choice.DIGEST


async def test_mail_about_security_is_not_offered_and_cannot_be_chosen(browser: Browser) -> None:
    assert "A login from a new network" not in (await browser.get("/profile")).text
    for kind in ("login_new_network", "nothing"):
        refused = await browser.post("/profile/notices", {kind: "off"})
        assert (refused.status_code, kind in refused.text) == (400, True)
