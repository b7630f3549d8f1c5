"""The page of a message that is sent later: what it says, moving it, and canceling it."""

from typing import Any

from postroad import context
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.messages import lookup as messages
from tests import accepted_mail, queue_steps
from tests.contexts import SECOND, Clock
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser

HOUR = 3_600 * SECOND


async def scheduled(ctx: context.Context, browser: Browser, **fields: Any) -> str:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    send_at = times.to_wire(ctx.clock() + HOUR)
    return await accepted_mail.accept(ctx, browser.account_id, send_at=send_at, **fields)


async def test_it_says_when_it_is_sent_and_when_it_expires(ctx: context.Context, browser: Browser) -> None:
    message_id = await scheduled(ctx, browser, expires_in=90)
    text = (await browser.get(f"/messages/{message_id}")).text
    reason = "<p>Scheduled by the sender. The next attempt is in 1 hour, at "
    for part in ("Scheduled for ", "Expires ", "in 1 h", "Scheduled: ada@example.net", reason):
        assert part in text, part
    assert f'action="/messages/{message_id}/cancel"' in text
    overview = (await browser.get("/")).text
    assert "scheduled for" in overview


async def test_it_is_moved_and_sent_now(ctx: context.Context, browser: Browser, clock: Clock) -> None:
    message_id = await scheduled(ctx, browser)
    path = f"/messages/{message_id}"
    wanted = times.to_wire(clock.now + 48 * HOUR)[:16]
    assert f'value="{times.to_wire(clock.now + HOUR)[:16]}"' in (await browser.get(path)).text
    moved = await browser.post(f"{path}/schedule", {"send_at": wanted})
    assert browser_client.notice_of(moved) == f"Scheduled for {wanted.replace('T', ' ')} UTC."
    for bad, status in (("2001-01-01T00:00", 400), ("tomorrow", 400)):
        refused = await browser.post(f"{path}/schedule", {"send_at": bad})
        assert refused.status_code == status
        assert "send_at: " in refused.text
    message, _ = await messages.find(ctx, browser.account_id, message_id)
    assert message.send_at == times.parse(f"{wanted}:00Z")
    assert browser_client.notice_of(await browser.post(f"{path}/schedule")) == "Sending now."
    assert len(await queue_steps.claim(ctx, browser.account_id)) == 1
    late = await browser.post(f"{path}/schedule")
    assert late.status_code == 409
    assert "An attempt has begun" in late.text
    assert "/schedule" not in (await browser.get(path)).text
    assert [one.action for one in await audit_log.page(ctx, browser.account_id, before=None, limit=50)].count(
        "message.rescheduled"
    ) == 2


async def test_the_typed_time_is_in_the_zone_of_the_user(ctx: context.Context, browser: Browser) -> None:
    """The clock says 2027-01-15 08:00 in UTC, which is 13:30 in Kolkata."""
    path = f"/messages/{await scheduled(ctx, browser)}"
    await browser.post("/profile/time-zone", {"time_zone": "Asia/Kolkata"})
    page = (await browser.get(path)).text
    assert "Send at (Asia/Kolkata)" in page
    assert 'value="2027-01-15T14:30"' in page
    moved = await browser.post(f"{path}/schedule", {"send_at": "2027-01-16T09:00"})
    assert browser_client.notice_of(moved) == "Scheduled for 2027-01-16 09:00 Asia/Kolkata."
    message, _ = await messages.find(ctx, browser.account_id, path.rpartition("/")[2])
    assert message.send_at == times.parse("2027-01-16T03:30:00Z")
    refused = await browser.post(f"{path}/schedule", {"send_at": "2027-01-16T09:00Z"})
    assert refused.status_code == 400
    assert "send_at: write the time as 2026-01-31T09:30, in Asia/Kolkata" in refused.text


async def test_it_is_canceled_as_far_as_possible(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    to = ("ada@example.net", "bob@example.org")
    message_id = await accepted_mail.accept(ctx, browser.account_id, to=to)
    await queue_steps.claim(ctx, browser.account_id)
    path = f"/messages/{message_id}"
    assert "Cancel 1 of 2" in (await browser.get(path)).text
    answer = await browser.post(f"{path}/cancel")
    assert browser_client.notice_of(answer) == "Canceled: 1 of 2 recipients."
    text = (await browser.get(path)).text
    assert "Canceled: bob@example.org" in text
    assert "Not sent: canceled by the sender" in text
    assert f'action="{path}/cancel"' not in text


async def test_what_is_being_sent_is_not_canceled_and_the_page_says_so(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id)
    await queue_steps.claim(ctx, browser.account_id)
    answer = await browser.post(f"/messages/{message_id}/cancel")
    assert browser_client.notice_of(answer) == "Not canceled: attempts have begun for all recipients."
