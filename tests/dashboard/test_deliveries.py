"""The page of a webhook delivery: the request, every attempt in plain words, and sending it again."""

import pytest

from postroad import context
from postroad.dashboard.settings import webhooks
from postroad.model.units import times
from postroad.network.http import guarded_client as webhook_client
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage.mail import webhooks as mail_webhooks
from tests import contexts, webhook_rows
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser
from tests.webhook_rows import URL, State


async def put(
    ctx: context.Context, browser: Browser, state: mail_webhooks.State = State.FAILED
) -> mail_webhooks.Delivery:
    await endpoints.save(ctx, browser.account_id, url=URL)
    return await webhook_rows.put_ended(ctx, browser.account_id, state)


async def test_the_page_shows_the_request_and_the_way_to_the_message(ctx: context.Context, browser: Browser) -> None:
    delivery = await put(ctx, browser, State.SUCCEEDED)
    text = (await browser.get(f"/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}")).text
    assert f"<code>{URL}</code>" in text
    assert "Service-Webhook/1.0" in text
    assert "Service-Signature" in text
    assert f"&#34;id&#34;: &#34;{delivery.event_id}&#34;,\n" in text
    assert f'href="/messages/{delivery.message_id}"' in text
    assert "é☃" in text
    assert "<h3>200</h3>" in text
    assert "took 12 ms" in text
    assert "Accepted by your endpoint." in text
    assert "thanks" in text


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"email.delivered","data":{"to":["ada@example.net"]}}',
        b'{"type":"suppression.added","data":{"email":"ada@example.net"}}',
        b'{"RecordType":"Delivery","Recipient":"ada@example.net"}',
        b'{"RecordType":"Bounce","Email":"ada@example.net"}',
    ],
)
async def test_events_in_the_formats_of_other_services_are_shown(
    ctx: context.Context, browser: Browser, body: bytes
) -> None:
    saved = await endpoints.save(ctx, browser.account_id, url=URL)
    delivery = await webhook_rows.put(ctx, browser.account_id, body=body)
    for path in (f"/webhooks/{saved.webhook.id}", f"/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"):
        page = await browser.get(path)
        assert page.status_code == 200
        assert "ada@example.net" in page.text


async def test_every_attempt_is_shown_newest_first_as_text_alone(ctx: context.Context, browser: Browser) -> None:
    await endpoints.save(ctx, browser.account_id, url=f"{URL}?a=%3Cscript%3E")
    due_at = ctx.clock() + times.HOUR
    delivery = await webhook_rows.put(ctx, browser.account_id, state=State.WAITING, due_at=due_at, attempt_count=2)
    await webhook_rows.put_attempt(
        ctx, delivery, 1, status_code=403, response_body=f"{sample_account.HOSTILE}\x1b[31m\u202egnp\u2066"
    )
    error = f"tls_failure: the certificate of {sample_account.HOSTILE} has expired"
    await webhook_rows.put_attempt(ctx, delivery, 2, status_code=None, response_body=None, error=error)
    text = (await browser.get(f"/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}")).text
    assert text.index("Attempt 2,") < text.index("Attempt 1,")
    assert "TLS failure" in text
    assert "Renew it, and serve the full chain." in text
    assert "Check that it verifies the raw body with the current secret" in text.replace("&#39;", "'")
    assert f'Next attempt: <time datetime="{times.to_wire(due_at)}"' in text
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert not {"\x1b", "\u202e", "\u2066"} & set(text)


async def test_a_delivery_that_was_never_tried_says_so(ctx: context.Context, browser: Browser) -> None:
    await endpoints.save(ctx, browser.account_id, url=URL, enabled=False)
    delivery = await webhook_rows.put(ctx, browser.account_id, message_id=None, recipient_id=None)
    text = (await browser.get(f"/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}")).text
    assert "No attempts yet." in text
    assert "the webhook is disabled and this delivery is on hold" in text
    assert "/messages/em_" not in text


async def test_every_reason_has_its_plain_words(ctx: context.Context, browser: Browser) -> None:
    delivery = await put(ctx, browser)
    attempt = await webhook_rows.put_attempt(ctx, delivery, 2, status_code=None, error="strange: a sentence")
    assert webhooks.explain(attempt) == "a sentence"
    assert set(webhooks.ERROR_EXPLANATIONS) == set(webhook_client.FailureCode)
    for status, words in {204: "Accepted", 404: "Check the URL", 418: "2xx", 503: "server error"}.items():
        attempt = await webhook_rows.put_attempt(ctx, delivery, 1000 + status, status_code=status)
        assert words in webhooks.explain(attempt)


async def test_a_replay_is_a_delivery_of_its_own(ctx: context.Context, browser: Browser, clock: contexts.Clock) -> None:
    delivery = await put(ctx, browser)
    clock.pass_seconds(1)
    replayed = await browser.post(f"/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}/replay")
    assert browser_client.notice_of(replayed) == "Replaying the event. This is the new delivery."
    text = (await browser.follow(replayed)).text
    assert f'href="/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"' in text
    assert "Next attempt:" in text
    newest, old = (await delivery_log.page(ctx, browser.account_id, limit=10)).rows
    assert (newest.delivery.replay_of, newest.delivery.body) == (delivery.id, delivery.body)
    assert old.delivery.id == delivery.id


async def test_nothing_is_replayed_to_a_webhook_that_is_disabled(ctx: context.Context, browser: Browser) -> None:
    delivery = await put(ctx, browser)
    await endpoints.save(ctx, browser.account_id, url=URL, enabled=False)
    answer = await browser.post(f"/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}/replay")
    assert (answer.status_code, "The webhook is disabled; enable it" in answer.text) == (409, True)
    assert len((await delivery_log.page(ctx, browser.account_id, limit=10)).rows) == 1
