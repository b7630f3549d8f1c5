"""What operators pause and hold is seen wherever somebody looks for the mail that waits."""

from postroad import context
from postroad.services.accounts import account_registry as accounts
from postroad.services.operations import destinations
from postroad.services.queue import holds
from tests import accepted_mail
from tests.dashboard.browser_client import Browser

HELD = "Mail to example.net is held by the operator"
PAUSED = "Mail to Google is paused by the operator"


async def test_a_pause_shows_on_the_overview_messages_the_recipient_and_health(
    ctx: context.Context, browser: Browser, stranger: Browser, operator: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id)
    lists, details = ("/", "/messages"), (f"/messages/{message_id}", "/recipients/ada@example.net")
    for path in lists:
        assert "by the operator" not in (await browser.get(path)).text
    await destinations.pause(ctx, "google", reason="<b>secret", until=None)
    await holds.hold(ctx, domain="example.net", account_id=browser.account_id, reason="secret")
    for path in lists:
        text = (await browser.get(path)).text
        assert HELD in text, path
        assert PAUSED in text, path
        assert "secret" not in text, path
        other = (await stranger.get(path)).text
        assert (HELD in other, PAUSED in other) == (False, True), path
    for path in details:
        assert "Held by the operator of this service." in (await browser.get(path)).text, path
    health = (await operator.get("/operator")).text
    assert "Google is paused" in health
    assert "Mail to example.net of account Mine is held" in health
    assert "&lt;b&gt;secret" in health
    await destinations.resume(ctx, "google")
    await holds.release_named(ctx, account_id=browser.account_id, domain="example.net", duplicates_accepted=False)
    for path in (*lists, *details):
        assert "by the operator" not in (await browser.get(path)).text, path


async def test_changed_limits_and_a_suspended_account_show_on_health(ctx: context.Context, operator: Browser) -> None:
    await destinations.set_limits(ctx, "google", {"connections": 4}, reason="Rate limited", until=None)
    await accounts.suspend(ctx, (await accounts.create(ctx, "Bakery")).id, reason="spam")
    health = (await operator.get("/operator")).text
    assert "The limits of Google are changed</strong> since <time" in health
    assert "Rate limited" in health
    assert "<strong>An account is suspended</strong>. Bakery" in health
