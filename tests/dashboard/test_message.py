"""The page of one message: what became of it for each recipient, why, and trying again."""

import asyncio
import re

import msgspec
import pytest

from postroad import context
from postroad.model.bounces import disposition
from postroad.services.messages import lookup as messages
from postroad.services.messages import queue_inspection
from postroad.services.webhooks import delivery_log, endpoint_settings, endpoints
from postroad.storage.mail import attempts, webhooks
from postroad.storage.mail import messages as recipients
from postroad.storage.operations import retention
from tests import accepted_mail, contexts, queue_steps, webhook_rows
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser
from tests.services import claimed_mail

HOSTILE = sample_account.HOSTILE + "\u202egnp"


async def deferred(ctx: context.Context, browser: Browser) -> str:
    """A message whose one recipient waits for its next attempt."""
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id)
    (key,) = await queue_steps.claim(ctx, browser.account_id)
    await queue_steps.defer(ctx, key)
    return message_id


async def states(ctx: context.Context, account_id: str, message_id: str) -> list[str]:
    lines = await queue_inspection.entries_of_message(ctx, account_id, message_id)
    return [line.waiting.state for line in lines.values()]


async def test_a_message_shows_what_was_sent(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(
        ctx,
        browser.account_id,
        sender="Shop <shop@example.com>",
        to=("Ada <ada@example.net>",),
        cc=("cee@example.net",),
        bcc=("hidden@example.net",),
        reply_to=("help@example.com", "Sales <sales@example.com>"),
        tags=('black "friday"',),
        metadata={"order": '10"42', "none": "", "long": "x" * 500},
    )
    text = (await browser.get(f"/messages/{message_id}")).text
    for part in ("Your order", "Shop &lt;shop@example.com&gt;", "Ada &lt;ada@example.net&gt;", "cee@example.net"):
        assert part in text
    for part in (
        "hidden@example.net",
        "help@example.com, Sales &lt;sales@example.com&gt;",
        "3 (reserved until delivered)",
        message_id,
        "req_" + "0" * 28,
    ):
        assert part in text
    assert 'data-copy="' + message_id in text
    assert "3 recipients" in text
    assert "Accepted for 3 recipients (HTTP API)" in text
    assert "/messages?search=tag%3A%22black+%22%22friday%22%22%22" in text
    assert (await browser.get("/messages", search='tag:"black ""friday"""')).text.count(message_id) == 1
    assert "/messages?search=metadata.order%3A10%2242" in text
    assert (await browser.get("/messages", search='metadata.order:"10""42"')).text.count(message_id) == 1
    assert "none: " in text
    assert "long: " + "x" * 500 in text


async def test_pages_that_one_account_opens_keep_no_other_from_its_own(
    ctx: context.Context, browser: Browser, stranger: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {}
    for one, domain in ((browser, "one.example"), (stranger, "other.example")):
        await accepted_mail.allow_sending(ctx, one.account_id, domain=domain)
        shown[one.account_id] = await accepted_mail.accept(ctx, one.account_id, sender=f"shop@{domain}")
    in_memory, end, read = [], asyncio.Event(), messages.raw

    async def held(ctx: context.Context, account_id: str, message_id: str) -> bytes:
        if account_id == browser.account_id:
            in_memory.append(message_id)
            await end.wait()
        return await read(ctx, account_id, message_id)

    monkeypatch.setattr(messages, "raw", held)
    page = f"/messages/{shown[browser.account_id]}"
    async with asyncio.timeout(60):
        opened = [asyncio.create_task(browser.get(page)) for _ in range(20)]
        while len(in_memory) < 7:
            await asyncio.sleep(0.01)
        assert (await stranger.get(f"/messages/{shown[stranger.account_id]}")).status_code == 200
        assert len(in_memory) == 7
        end.set()
        assert {response.status_code for response in await asyncio.gather(*opened)} == {200}


async def test_an_attempt_is_shown_in_plain_words_with_host_reply_and_fault(
    ctx: context.Context, browser: Browser
) -> None:
    message_id = await deferred(ctx, browser)
    text = (await browser.get(f"/messages/{message_id}")).text
    for part in ("mx.example.net", "192.0.2.1", "TLSv1.3", "451", queue_steps.RESPONSE, "250 ms", "rate limit"):
        assert part in text
    assert disposition.explain("greylisted").replace("'", "&#39;") in text
    assert '<td class="reply" data-label="Result"><span class="status status-deferred">deferred</span>' in text
    assert "Next attempt: ada@example.net" in text
    assert "Google asked us to try later (4.7.1). The next attempt is in 4 minutes, at <time datetime=" in text
    assert 'id="timeline" data-live' in text


async def test_a_page_that_was_read_while_a_result_came_in_stays_live_until_it_shows_it(
    ctx: context.Context, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    message_id, (claimed,) = await claimed_mail.accepted(ctx, browser.account_id, "ada@example.net")
    read = messages.details

    async def read_before_the_result(ctx: context.Context, account_id: str, message_id: str) -> messages.Details:
        found = await read(ctx, account_id, message_id)
        await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, disposition.Verdict.DELIVERED)])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(messages, "details", read_before_the_result)
        text = (await browser.get(f"/messages/{message_id}")).text
        assert "Delivered: ada@example.net" not in text
        assert 'id="recipients" data-live' in text
    text = (await browser.get(f"/messages/{message_id}")).text
    assert "Delivered: ada@example.net" in text
    assert 'id="recipients" data-live' not in text


async def test_a_worker_is_never_named(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id)
    await queue_steps.claim(ctx, browser.account_id)
    text = (await browser.get(f"/messages/{message_id}")).text
    assert "Being sent." in text
    assert queue_steps.WORKER.partition(":")[0] not in text
    assert "Retry now" not in text


async def test_what_waits_can_be_tried_now(ctx: context.Context, browser: Browser, clock: contexts.Clock) -> None:
    message_id = await deferred(ctx, browser)
    soon = await browser.post(f"/messages/{message_id}/retry")
    assert (soon.status_code, soon.headers["retry-after"]) == (429, "31")
    assert "attempted a moment ago" in soon.text
    assert await states(ctx, browser.account_id, message_id) == ["waiting"]
    clock.pass_seconds(31)
    answer = await browser.post(f"/messages/{message_id}/retry")
    assert browser_client.location_of(answer) == f"/messages/{message_id}"
    assert "1 recipient now." in (await browser.follow(answer)).text
    assert await states(ctx, browser.account_id, message_id) == ["ready"]
    again = await browser.post(f"/messages/{message_id}/retry")
    assert again.status_code == 409
    assert "o recipient is waiting" in again.text


async def test_one_recipient_can_be_tried_now(ctx: context.Context, browser: Browser, clock: contexts.Clock) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id, to=("ada@example.net", "bob@example.net"))
    for key in await queue_steps.claim(ctx, browser.account_id, most=2):
        await queue_steps.defer(ctx, key)
    clock.pass_seconds(31)
    text = (await browser.get(f"/messages/{message_id}")).text
    assert "Retry all 2 now" in text
    assert 'aria-label="Retry now: bob@example.net"' in text
    async with ctx.store.reading() as tx:
        first, _ = await recipients.recipients(tx, browser.account_id, message_id)
    unknown = await browser.post(f"/messages/{message_id}/retry", {"recipient_id": "rcp_" + "0" * 28})
    assert unknown.status_code == 404
    assert await states(ctx, browser.account_id, message_id) == ["waiting", "waiting"]
    await browser.post(f"/messages/{message_id}/retry", {"recipient_id": first.id})
    assert sorted(await states(ctx, browser.account_id, message_id)) == ["ready", "waiting"]


async def test_a_final_message_is_not_live_and_says_what_the_destination_said(
    ctx: context.Context, browser: Browser
) -> None:
    message_id, claimed = await claimed_mail.accepted(ctx, browser.account_id, "ada@example.net", "bob@example.net")
    verdicts = (disposition.Verdict.DELIVERED, disposition.Verdict.BOUNCED)
    for one, verdict in zip(claimed, verdicts, strict=True):
        reported = claimed_mail.outcome(
            ctx, one, verdict, recipient_count=2, response="no such user", fault=disposition.Fault.ADDRESS
        )
        await ctx.outcome_commits.submit([reported])
    text = (await browser.get(f"/messages/{message_id}")).text
    assert "Delivered: ada@example.net" in text
    assert "Bounced: bob@example.net" in text
    assert "no such user" in text
    assert "Category: address" in text
    assert "status-partial" in text
    assert "data-live>" not in text.partition('id="content"')[2]
    assert "Retry now" not in text


async def test_everything_that_others_said_is_only_text(ctx: context.Context, browser: Browser) -> None:
    things = await sample_account.create_sample_data(ctx, browser.account_id, domain="mine.example")
    await webhook_rows.put_attempt(
        ctx,
        await webhook_rows.put(ctx, browser.account_id, message_id=things["message"]),
        1,
        status_code=None,
        error=HOSTILE,
    )
    async with ctx.store.transaction() as tx:
        report = attempts.AsyncBounce(
            browser.account_id, things["message"], things["recipient"], ctx.clock(), HOSTILE, HOSTILE, "", HOSTILE
        )
        await attempts.insert_async_bounces(tx, [report])
    for view in ("html", "text", "headers", "source"):
        text = (await browser.get(f"/messages/{things['message']}", view=view)).text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        assert "Asynchronous bounce:" in text
        for raw in ("<script>alert", "<img src=x", "\u202e"):
            assert raw not in text


async def test_the_webhook_deliveries_of_a_message_are_linked(ctx: context.Context, browser: Browser) -> None:
    message_id = await deferred(ctx, browser)
    await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    failed = webhooks.State.FAILED
    delivery = await webhook_rows.put_ended(ctx, browser.account_id, failed, message_id=message_id)
    text = (await browser.get(f"/messages/{message_id}")).text
    assert f'href="/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"' in text
    assert "Webhook failed: email.delivered" in text
    assert "Last response: 500. It will not be retried." in text


async def test_why_there_is_no_webhook_delivery_is_said(
    ctx: context.Context, browser: Browser, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    message_id, (claimed,) = await claimed_mail.accepted(ctx, browser.account_id, "ada@example.net", tags=("order",))

    async def reason() -> str:
        text = (await browser.get(f"/messages/{message_id}")).text
        return text.partition("No webhook deliveries. ")[2].partition(" <a")[0]

    async def change(**changes: object) -> None:
        webhook = await endpoints.find(ctx, browser.account_id)
        assert webhook is not None
        await endpoints.change(ctx, browser.account_id, webhook.id, endpoint_settings.Changes(**changes))  # type: ignore[arg-type]

    assert await reason() == "You have no webhook yet."
    await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    assert await reason() == "Your webhook at 127.0.0.2 gets an event as soon as there is a result."
    await change(enabled=False)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, disposition.Verdict.DELIVERED)])
    assert await reason() == "Your webhook at 127.0.0.2 is disabled."
    await change(enabled=True)
    assert await reason() == "Your webhook at 127.0.0.2 was created or changed after this message."
    await change(events=["email.bounced"])
    assert await reason() == "Your webhook at 127.0.0.2 does not subscribe to email.delivered."
    await change(sender_domains=["other.example"])
    assert await reason() == "Your webhook at 127.0.0.2 only gets events for mail from other.example."
    await change(tags=["a", "b"])
    assert await reason() == "Your webhook at 127.0.0.2 only gets events for mail tagged a or b."
    await change(mode="test")
    assert await reason() == "Your webhook at 127.0.0.2 only gets events for test mail."
    monkeypatch.setattr(delivery_log, "LOG_SECONDS", 60)
    clock.pass_seconds(61)
    assert await reason() == "Webhook deliveries are kept for 7 days, and this message is older."


async def test_the_card_on_top_says_why_and_what_to_do(ctx: context.Context, browser: Browser) -> None:
    names = ("ada@example.net", "bob@example.net", "cee@example.net", "dan@example.net")
    message_id, claimed = await claimed_mail.accepted(ctx, browser.account_id, *names)
    reasons = ("unknown_address", "unknown_address", "not_authenticated", None)
    for one, reason in zip(claimed, reasons, strict=True):
        verdict = disposition.Verdict.BOUNCED if reason else disposition.Verdict.DELIVERED
        response = f"because <b>{reason}"
        outcome = claimed_mail.outcome(
            ctx, one, verdict, recipient_count=4, code=550, response=response, reason=reason or "delivered"
        )
        await ctx.outcome_commits.submit([outcome])
    text = (await browser.get(f"/messages/{message_id}")).text
    card = text.partition('<section class="verdict outcome"')[2].partition("</section>")[0]
    titles = re.findall(r'<p class="verdict-([a-z]+)"><strong>([^<]*)</strong>', card)
    assert sorted(titles) == [("bad", "Not authenticated"), ("bad", "Unknown address"), ("good", "Delivered")]
    assert "Check the spelling. If it is right, remove it from your list." in card
    assert '<a href="/domains">Check the domain</a>' in card
    assert "550 because &lt;b&gt;unknown_address" in card
    assert re.search(r'<div class="small">[a-z]{3}@example.net, [a-z]{3}@example.net</div>', card)
    assert "Resend to 3 failed" in card
    assert "Content checks: <a href=" in card


async def test_a_body_that_is_not_kept_any_more_is_said_to_be_gone(ctx: context.Context, browser: Browser) -> None:
    message_id, (claimed,) = await claimed_mail.accepted(ctx, browser.account_id, "ada@example.net")
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, disposition.Verdict.DELIVERED)])
    async with ctx.store.transaction() as tx:
        assert await retention.remove_bodies(tx, ended_before=ctx.clock() + contexts.SECOND) == 1
    answer = await browser.get(f"/messages/{message_id}")
    assert answer.status_code == 200
    assert "was deleted after the retention period" in answer.text
    assert "Delivered: ada@example.net" in answer.text
    assert "<iframe" not in answer.text
    assert (await browser.get(f"/messages/{message_id}/raw")).status_code == 404


async def test_a_script_that_looks_for_results_gets_them_without_the_preview(
    ctx: context.Context, browser: Browser
) -> None:
    message_id = await deferred(ctx, browser)
    answer = await browser.client.get(f"/messages/{message_id}", headers={"X-Refreshed": "page"})
    assert "Next attempt: ada@example.net" in answer.text
    assert "It is on its way." not in answer.text
    assert "It is on its way." in (await browser.get(f"/messages/{message_id}")).text


async def test_who_did_not_get_it_comes_first(ctx: context.Context, browser: Browser) -> None:
    names = ("ada@example.net", "bob@example.net", "cee@example.net")
    message_id, claimed = await claimed_mail.accepted(ctx, browser.account_id, *names)
    verdicts = (disposition.Verdict.DELIVERED, disposition.Verdict.RETRY, disposition.Verdict.BOUNCED)
    for one, verdict in zip(claimed, verdicts, strict=True):
        await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, one, verdict, recipient_count=3)])
    listed = (await browser.get(f"/messages/{message_id}")).text.partition('id="recipients"')[2]
    places = [listed.index(f"<strong>{one.email_key}</strong>") for one in claimed]
    assert places == sorted(places, reverse=True)


async def test_many_addresses_are_folded_and_a_long_subject_can_be_read_whole(
    ctx: context.Context, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    many = tuple(f"ada-{number}@example.net" for number in range(6))
    subject = "Long " * 80 + "end"
    text = (
        await browser.get(f"/messages/{await accepted_mail.accept(ctx, browser.account_id, to=many, subject=subject)}")
    ).text
    facts = text.partition('<dl class="facts">')[2].partition("</dl>")[0]
    folded = facts.partition("<dt>To</dt>")[2].partition("</details>")[0]
    assert "ada-3@example.net and 2 more</summary>" in folded
    assert "ada-5@example.net" in folded.partition("</summary>")[2]
    assert "All 403 characters</summary>" in facts
    assert subject in facts
    few = (await browser.get(f"/messages/{await accepted_mail.accept(ctx, browser.account_id, to=many[:5])}")).text
    assert "<dt>To</dt><dd>ada-0@example.net, ada-1@example.net" in few
    assert "characters</summary>" not in few


async def test_the_conversation_of_a_failed_attempt_is_folded_and_only_text(
    ctx: context.Context, browser: Browser
) -> None:
    message_id, (claimed,) = await claimed_mail.accepted(ctx, browser.account_id, "ada@example.net")
    said = f"C: RCPT TO:<ada@example.net>\nS: 550 {HOSTILE}"
    outcome = claimed_mail.outcome(ctx, claimed, disposition.Verdict.BOUNCED, code=550)
    await ctx.outcome_commits.submit([msgspec.structs.replace(outcome, conversation=said)])
    text = (await browser.get(f"/messages/{message_id}")).text
    folded = text.partition("<summary>SMTP conversation</summary>")[2].partition("</details>")[0]
    assert "C: RCPT TO:&lt;ada@example.net&gt;\nS: 550 &lt;script&gt;alert(1)&lt;/script&gt;" in folded
    for raw in ("<script>alert", "<img src=x", "\u202e"):
        assert raw not in text
