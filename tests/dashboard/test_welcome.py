"""`/welcome` over HTTP: the steps of a new owner, each with its state, read from the store."""

import dataclasses
import html
import re
from typing import Any

import msgspec
import pytest

from postroad import context
from postroad.dashboard.framework import site as sites
from postroad.model.bounces import disposition
from postroad.model.mail import statuses
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import dev_inbox, queue_inspection
from postroad.services.messages import lookup as messages
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.storage.mail import queue_views, webhooks
from tests import accepted_mail, webhook_rows
from tests.contexts import Clock
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser
from tests.services import claimed_mail

SENDER = f"hello@{accepted_mail.DOMAIN}"
TEST = {"to": "ada@example.net", "sender": SENDER}


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


async def sent_tests(ctx: context.Context, account_id: str) -> list[str]:
    wanted = messages.Filters(source=statuses.Source.TEST)
    return [one.id for one in (await messages.page(ctx, account_id, wanted, limit=10, cursor=None)).messages]


async def end(ctx: context.Context, verdict: disposition.Verdict, *, code: int, response: str) -> None:
    for claimed in await claimed_mail.claim_all(ctx, claimed_mail.WORKER):
        await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, verdict, code=code, response=response)])


async def test_a_test_takes_one_click_and_is_watched_until_it_is_delivered(
    ctx: context.Context, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    first = await browser.get("/welcome")
    assert first.status_code == 200
    assert 'value="owner@mine.example"' in first.text
    assert f'<option value="{SENDER}">' in first.text
    sent = await browser.post("/welcome/test", TEST)
    assert browser_client.location_of(sent) == "/welcome"
    assert browser_client.notice_of(sent) == "Test sent to ada@example.net."
    (message_id,) = await sent_tests(ctx, browser.account_id)
    page = await browser.get("/welcome")
    assert "Sending to ada@example.net" in page.text
    assert 'id="test-result" data-live' in page.text
    await end(ctx, disposition.Verdict.DELIVERED, code=250, response="2.0.0 taken")
    page = await browser.get("/welcome")
    assert "Delivered to ada@example.net" in page.text
    assert "Accepted by mx.example.net (192.0.2.1), over TLSv1.3" in page.text
    assert "2.0.0 taken" in page.text
    assert f'href="/messages/{message_id}"' in page.text
    assert 'href="/inbox"' in page.text


async def test_a_test_that_is_refused_is_explained(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await browser.post("/welcome/test", TEST)
    await end(ctx, disposition.Verdict.BOUNCED, code=550, response=sample_account.HOSTILE)
    page = await browser.get("/welcome")
    assert "Not delivered to ada@example.net" in page.text
    assert "Read the receiving server&#39;s reply." in page.text
    assert sample_account.HOSTILE not in page.text
    assert html.escape("<script>alert(1)</script>") in page.text


async def test_a_recipient_is_shown_with_its_own_reply(ctx: context.Context, clock: Clock, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    both = ("ada@example.net", "bob@example.net")
    message_id = await accepted_mail.accept(ctx, browser.account_id, source=statuses.Source.TEST, to=both)
    details = await messages.details(ctx, browser.account_id, message_id)
    names = {recipient.id: recipient.email for recipient in details.recipients}
    claims = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    for claimed in sorted(claims, key=lambda one: names[one.recipient_id]):
        clock.pass_seconds(1)
        verdict, code, response = {
            "ada@example.net": (disposition.Verdict.DELIVERED, 250, "2.0.0 queued"),
            "bob@example.net": (disposition.Verdict.BOUNCED, 550, "5.1.1 unknown"),
        }[names[claimed.recipient_id]]
        outcome = claimed_mail.outcome(ctx, claimed, verdict, code=code, response=response, recipient_count=2)
        await ctx.outcome_commits.submit([outcome])
    page = (await browser.get("/welcome")).text
    assert f"Delivered to {details.recipients[0].email}" in page
    assert "2.0.0 queued" in page
    assert "5.1.1 unknown" not in page


async def test_a_deferred_test_message_is_shown_as_retried_until_it_expires(
    ctx: context.Context, clock: Clock, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await browser.post("/welcome/test", TEST)
    await end(ctx, disposition.Verdict.RETRY, code=451, response="later")
    assert "It will be retried." in (await browser.get("/welcome")).text
    await queue_inspection.retry(ctx, [queue_views.Filter(account_id=browser.account_id)])
    await end(ctx, disposition.Verdict.FAILED, code=451, response="later")
    page = (await browser.get("/welcome")).text
    assert "Not delivered to ada@example.net" in page
    assert "It will be retried." not in page


async def test_the_first_test_can_be_sent_to_the_built_in_endpoint_at_once(
    ctx: context.Context, site: sites.Site, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    assert browser.user is not None
    # Only development may send to an endpoint without TLS, and this is not it.
    here = webhook_rows.URL.removesuffix("/hook")
    served = browser_client.serve(ctx, dataclasses.replace(site, base_url=here))
    async with browser_client.open_browser(ctx, served, browser.user, base_url=here) as newcomer:
        assert 'name="use_builtin_endpoint" value="true" checked' in (await newcomer.get("/welcome")).text
        sent = await newcomer.post("/welcome/test", {**TEST, "use_builtin_endpoint": "true"})
        page = (await newcomer.get("/welcome")).text
    assert browser_client.location_of(sent) == "/welcome"
    assert "The built-in endpoint is now the webhook of this account." in browser_client.notice_of(sent)
    webhook = await endpoints.find(ctx, browser.account_id)
    assert webhook is not None
    assert webhook.url.endswith(dev_inbox.WEBHOOK_PATH)
    assert "The webhook is sent as soon as the test has a final result." in page
    assert "create a new secret" in page
    assert 'name="use_builtin_endpoint"' not in page
    assert "whsec_" not in page


async def test_the_tick_of_an_old_page_leaves_a_webhook_as_it_is(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    before = await endpoints.find(ctx, browser.account_id)
    sent = await browser.post("/welcome/test", {**TEST, "use_builtin_endpoint": "true"})
    assert browser_client.notice_of(sent) == "Test sent to ada@example.net."
    assert await endpoints.find(ctx, browser.account_id) == before


async def test_without_a_domain_the_way_begins_with_one(browser: Browser) -> None:
    page = (await browser.get("/welcome")).text
    assert '<a class="button" href="/domains">Add a domain</a>' in page
    assert "Three steps to your application" in page
    assert re.findall(r'class="step-number" aria-hidden="true">(.)<', page) == ["1", "2", "+", "3"]
    assert 'action="/welcome/test"' not in page


@pytest.mark.parametrize(
    "fields, status, said",
    [
        ({"to": "nobody", "sender": SENDER}, 400, "to"),
        ({"to": "ada@example.net", "sender": "hello@theirs.example"}, 403, "theirs.example"),
        ({"to": "ada@example.net"}, 400, "sender"),
        ({"sender": SENDER}, 400, "to"),
    ],
)
async def test_what_cannot_be_sent_is_refused_with_a_sentence(
    ctx: context.Context, browser: Browser, fields: dict[str, str], status: int, said: str
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    refused = await browser.post("/welcome/test", fields)
    assert refused.status_code == status
    assert said in refused.text
    assert await sent_tests(ctx, browser.account_id) == []


async def test_a_new_webhook_shows_its_secret_once(ctx: context.Context, browser: Browser) -> None:
    saved = await browser.post("/welcome/webhook", {"url": webhook_rows.URL})
    assert saved.status_code == 201
    (secret,) = set(re.findall(r"whsec_[A-Za-z0-9+/=_-]+", saved.text))
    webhook = await endpoints.find(ctx, browser.account_id)
    assert webhook is not None
    assert webhook.url == webhook_rows.URL
    again = (await browser.get("/welcome")).text
    assert secret not in again
    assert "Events are sent to" in again


async def test_a_webhook_that_is_there_is_not_replaced(ctx: context.Context, browser: Browser) -> None:
    await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL, wanted=["email.bounced"], enabled=False)
    before = await endpoints.find(ctx, browser.account_id)
    answer = await browser.post("/welcome/webhook", {"url": f"{webhook_rows.URL}/other"})
    assert before is not None
    assert browser_client.location_of(answer) == f"/webhooks/{before.id}/settings"
    assert await endpoints.find(ctx, browser.account_id) == before


async def test_the_webhook_of_the_latest_test_is_shown_with_its_answer(
    ctx: context.Context, clock: Clock, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await browser.post("/welcome/test", TEST)
    clock.pass_seconds(1)
    await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    page = (await browser.get("/welcome")).text
    assert "No test has been sent since the webhook was created." in page
    assert "Send a test for the webhook" in page
    clock.pass_seconds(1)
    await browser.post("/welcome/test", TEST)
    assert "as soon as the test has a final result" in (await browser.get("/welcome")).text
    newest = (await sent_tests(ctx, browser.account_id))[0]
    delivery = await webhook_rows.put(
        ctx, browser.account_id, message_id=newest, state=webhooks.State.SUCCEEDED, ended_at=ctx.clock()
    )
    await webhook_rows.put_attempt(ctx, delivery, 1, status_code=202, response_body=sample_account.HOSTILE)
    page = (await browser.get("/welcome")).text
    assert "Your endpoint responded 202 in 12 ms." in words(page)
    assert f'href="/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"' in page
    assert sample_account.HOSTILE not in page


async def test_an_endpoint_that_is_unreachable_is_reported(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    await browser.post("/welcome/test", TEST)
    (message_id,) = await sent_tests(ctx, browser.account_id)
    delivery = await webhook_rows.put(ctx, browser.account_id, message_id=message_id)
    await webhook_rows.put_attempt(
        ctx, delivery, 1, status_code=None, response_body=None, error="the connection was refused"
    )
    assert "No response: the connection was refused" in words((await browser.get("/welcome")).text)


async def test_the_built_in_endpoint_is_offered_in_development_only(
    ctx: context.Context, site: sites.Site, browser: Browser
) -> None:
    assert f'value="{browser_client.BASE_URL}{dev_inbox.WEBHOOK_PATH}"' in (await browser.get("/welcome")).text
    served = browser_client.serve(ctx, dataclasses.replace(site, mail=None))
    assert browser.user is not None
    async with browser_client.open_browser(ctx, served, browser.user) as elsewhere:
        page = (await elsewhere.get("/welcome")).text
        await accepted_mail.allow_sending(ctx, browser.account_id)
        await elsewhere.post("/welcome/test", {**TEST, "use_builtin_endpoint": "true"})
        asked = (await elsewhere.get("/welcome")).text
    assert await endpoints.find(ctx, browser.account_id) is None
    assert 'name="use_builtin_endpoint"' not in asked
    assert dev_inbox.WEBHOOK_PATH not in page
    assert 'href="/inbox"' not in page


async def test_a_disabled_webhook_can_be_replaced_by_the_built_in_endpoint(
    ctx: context.Context, site: sites.Site, browser: Browser, clock: Clock
) -> None:
    """After `webhook listen` has ended: its webhook is disabled, and nothing listens at its URL."""
    await accepted_mail.allow_sending(ctx, browser.account_id)
    assert browser.user is not None
    here = webhook_rows.URL.removesuffix("/hook")
    await endpoints.save(ctx, browser.account_id, url=f"{here}/elsewhere", enabled=False)
    served = browser_client.serve(ctx, dataclasses.replace(site, base_url=here))
    endpoint = {"url": f"{here}{dev_inbox.WEBHOOK_PATH}"}
    async with browser_client.open_browser(ctx, served, browser.user, base_url=here) as newcomer:
        page = (await newcomer.get("/welcome")).text
        assert "The webhook is disabled. Enable it , then send a test. Use the built-in endpoint" in words(page)
        assert "Send a test for the webhook" not in page
        await newcomer.post("/welcome/test", TEST)
        await end(ctx, disposition.Verdict.DELIVERED, code=250, response="2.0.0 taken")
        page = (await newcomer.get("/welcome")).text
        assert "then send another test. Use the built-in endpoint" in words(page)
        clock.pass_seconds(1)
        saved = await newcomer.post("/welcome/webhook", endpoint)
        assert browser_client.location_of(saved) == "/welcome"
        assert browser_client.notice_of(saved) == "The built-in endpoint is now the webhook of this account."
        page = (await newcomer.get("/welcome")).text
        said = "The webhook was changed after the latest test. Send another test to see its event. Send another test"
        assert said in words(page)
        (webhook,) = await endpoints.of_account(ctx, browser.account_id)
        assert (webhook.url, webhook.enabled) == (endpoint["url"], 1)
        # One that is enabled is not replaced here.
        await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
        saved = await newcomer.post("/welcome/webhook", endpoint)
        assert browser_client.location_of(saved) == f"/webhooks/{webhook.id}/settings"
    (webhook,) = await endpoints.of_account(ctx, browser.account_id)
    assert webhook.url == webhook_rows.URL


async def test_where_no_verification_is_required_nothing_asks_for_it(
    ctx: context.Context, browser: Browser, reader: Browser
) -> None:
    strict = words((await browser.get("/welcome")).text)
    assert "The domain can send once the records are found." in strict
    assert "It needs a verified domain." in strict
    assert "add its records at your DNS provider" in words((await browser.get("/")).text)
    assert "to verify a domain." in words((await reader.get("/")).text)
    lax = msgspec.structs.replace(ctx.settings.domains, require_verified=False)
    msgspec.structs.force_setattr(ctx.settings, "domains", lax)
    page = words((await browser.get("/welcome")).text)
    assert "Add it here. You can send from it at once: this installation does not require verification." in page
    assert "It needs a domain." in page
    overview = words((await browser.get("/")).text)
    assert "To send mail, you need your own domain. Add a domain See the next steps" in overview
    assert "to add a domain." in words((await reader.get("/")).text)
    for text in (page, overview):
        assert "verified" not in text
        assert "once" not in text.replace("at once", "").replace("Once you have sent mail", "")


async def test_the_last_step_is_done_when_an_application_has_sent(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await browser.post("/welcome/test", TEST)
    assert "An application has sent mail" not in (await browser.get("/welcome")).text
    await accepted_mail.accept(ctx, browser.account_id)
    assert "An application has sent mail" in (await browser.get("/welcome")).text


async def test_there_is_code_to_copy_with_the_names_of_this_account(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    text = words((await browser.get("/welcome")).text)
    assert f"curl {browser_client.BASE_URL}/emails" in text
    assert SENDER in text


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"enabled": False}, "The webhook is disabled. Enable it , then send another test."),
        (
            {"mode": "test"},
            "This webhook only gets events for mail sent with test keys. Change its mode , then send another test.",
        ),
        (
            {"tags": ["vip"]},
            "This webhook only gets events for mail tagged vip, and a test has no tags. Change the filter",
        ),
        (
            {"sender_domains": ["second.example"]},
            "This webhook only gets events for mail sent from second.example. Send a test from that domain",
        ),
        (
            {"sender_domains": ["foreign.example"]},
            "only gets events for mail sent from foreign.example. Change the filter , then send",
        ),
        (
            {"events": ["email.bounced"]},
            "This webhook does not subscribe to email.delivered . Change its events , then",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
async def test_the_reason_is_said_when_no_webhook_is_sent(
    ctx: context.Context, clock: Clock, browser: Browser, changes: dict[str, Any], said: str
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    clock.pass_seconds(1)
    await domains.add(ctx, browser.account_id, "second.example", verified=True)
    saved = await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    await endpoints.change(ctx, browser.account_id, saved.webhook.id, endpoint_settings.Changes(**changes))
    await browser.post("/welcome/test", TEST)
    await end(ctx, disposition.Verdict.DELIVERED, code=250, response="2.0.0 taken")
    page = (await browser.get("/welcome")).text
    assert said in words(page)
    senders = re.findall(r'<option value="hello@([^"]*)">', page)
    assert senders[0] == ("second.example" if "second.example" in said else accepted_mail.DOMAIN)
