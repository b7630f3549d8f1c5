"""The page of a recipient: what was sent to it, the results, and the suppression list."""

import pytest

from postroad import context
from postroad.model.bounces import disposition
from postroad.services.messages import message_history
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import suppressions as stored_suppressions
from tests import accepted_mail, contexts
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser
from tests.services import claimed_mail

ADDRESS = "o'neil/x@example.net"
PATH = "/recipients/o%27neil%2Fx%40example.net"


async def send(ctx: context.Context, browser: Browser, verdict: disposition.Verdict, **fields: object) -> str:
    message_id, (claim,) = await claimed_mail.another(ctx, browser.account_id, ADDRESS, **fields)
    response = f"{verdict} <b>x</b>"
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, verdict, code=550, response=response)])
    return message_id


async def test_a_recipient_has_its_messages_newest_first_with_results_and_counts(
    ctx: context.Context, browser: Browser, clock: contexts.Clock, stranger: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    first = await send(ctx, browser, disposition.Verdict.DELIVERED, subject="One")
    clock.pass_seconds(60)
    second = await send(ctx, browser, disposition.Verdict.BOUNCED, subject="Two <i>")
    clock.pass_seconds(60)
    await accepted_mail.accept(ctx, browser.account_id, to=("other@example.net",), subject="Three")
    text = (await browser.get(PATH)).text
    assert "o&#39;neil/x@example.net" in text
    assert text.index(f'href="/messages/{second}">Two &lt;i&gt;') < text.index(f'href="/messages/{first}">One')
    assert "550 bounced &lt;b&gt;x&lt;/b&gt;" in text
    card = text.partition('<section class="verdict outcome"')[2].partition("</section>")[0]
    assert f'href="/messages/{second}"' in card
    assert "Unrecognized reason. Read the receiving server&#39;s reply." in card
    assert "of 2 messages" in text
    assert "Three" not in text
    shown = await message_history.of_address(ctx, browser.account_id, ADDRESS.upper())
    assert (shown.counts, shown.has_more) == ({"bounced": 1, "delivered": 1}, False)
    assert shown.sent[0].created_at - (shown.first_at or 0) == 60 * contexts.SECOND
    message = (await browser.get(f"/messages/{first}")).text
    assert f'href="{PATH}"' in message
    assert (await stranger.get(PATH)).status_code == 404


async def test_a_long_history_is_bounded_and_leads_to_the_search(
    ctx: context.Context, browser: Browser, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_history, "MAX_MESSAGES", 2)
    await accepted_mail.allow_sending(ctx, browser.account_id)
    begun = clock.now
    for _ in range(3):
        await send(ctx, browser, disposition.Verdict.DELIVERED)
        clock.pass_seconds(1)
    shown = await message_history.of_address(ctx, browser.account_id, ADDRESS)
    assert (len(shown.sent), shown.has_more, shown.first_at) == (2, True, begun)
    text = (await browser.get(PATH)).text
    assert "of the last 2 messages" in text
    assert "/messages?search=to%3Ao%27neil%2Fx%40example.net" in text


async def test_an_address_is_suppressed_and_removed_with_one_click(
    ctx: context.Context, browser: Browser, reader: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser, disposition.Verdict.FAILED)
    assert "/suppress" not in (await reader.get(PATH)).text.partition("<main")[2]
    answer = await browser.post(f"{PATH}/suppress")
    assert browser_client.location_of(answer) == PATH
    text = (await browser.follow(answer)).text
    assert "Suppressed: added by your team" in text
    assert f'href="{PATH}"' in (await browser.get("/suppressions")).text
    removed = await browser.post(f"{PATH}/remove")
    assert "is no longer suppressed." in (await browser.follow(removed)).text
    assert (await browser.post(f"{PATH}/remove")).status_code == 409


async def test_who_complained_is_removed_only_when_that_is_confirmed(ctx: context.Context, browser: Browser) -> None:
    source = stored_suppressions.Source.COMPLAINT
    await suppressions.add(ctx, browser.account_id, "eve@example.net", reason="spam", source=source)
    page = "/recipients/eve%40example.net"
    text = (await browser.get(page)).text
    assert "Suppressed: spam complaint" in text
    assert "has not sent to this address" in text
    assert (await browser.post(f"{page}/remove")).status_code == 409
    assert (await browser.post(f"{page}/remove", {"confirmed": "yes"})).status_code == 303
    # Neither suppressed nor sent to: it is unknown now.
    assert (await browser.get(page)).status_code == 404
