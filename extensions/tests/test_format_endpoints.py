"""Endpoints in the format of another service: what they get, what can be changed of them, and what others see."""

import msgspec
import pytest

from postroad import context, errors
from postroad.mail.accept import submit_mime
from postroad.model.bounces import disposition
from postroad.model.mail import statuses
from postroad.services.operations import operator_jobs
from postroad.services.webhooks import endpoint_settings, endpoints, signed_requests
from postroad.storage.people import accounts
from tests import accepted_mail, webhook_endpoints
from tests.services import claimed_mail

Changes = endpoint_settings.Changes
URL = "https://8.8.8.8/hooks"


async def test_an_endpoint_gets_the_events_of_its_format_and_is_never_the_first(
    ctx: context.Context, account: accounts.Account
) -> None:
    resend = await endpoints.create(
        ctx, account.id, Changes(url=URL, format_events=["email.suppressed", "email.sent"]), of_format="resend"
    )
    postmark = await endpoints.create(
        ctx, account.id, Changes(url=URL, format_events=["Delivery"]), of_format="postmark"
    )
    assert await endpoints.find(ctx, account.id) is None
    assert resend.webhook.events == "email.bounced email.accepted"
    assert resend.webhook.format_events == "email.sent email.suppressed"
    message_id, (one,) = await claimed_mail.accepted(ctx, account.id, "ada@example.net")
    _, (two,) = await claimed_mail.another(ctx, account.id, "bo@example.net")
    verdict = disposition.Verdict
    ends = [claimed_mail.outcome(ctx, one, verdict.DELIVERED), claimed_mail.outcome(ctx, two, verdict.BOUNCED)]
    assert (await ctx.outcome_commits.submit(ends)).events == 1
    sent = [msgspec.json.decode(row.body) for row in await webhook_endpoints.deliveries_for(ctx, resend.webhook)]
    assert [one["type"] for one in sent] == ["email.sent", "email.sent"]  # and not the bounce, which has an attempt
    assert sorted(one["data"]["to"][0] for one in sent) == ["ada@example.net", "bo@example.net"]
    [row] = await webhook_endpoints.deliveries_for(ctx, postmark.webhook)
    delivered = msgspec.json.decode(row.body)
    assert (row.event_type, delivered["RecordType"], delivered["Recipient"]) == (
        "email.delivered",
        "Delivery",
        "ada@example.net",
    )
    assert delivered["MessageID"] == message_id
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_an_event_has_the_message_id_of_the_mail_and_says_whether_its_address_is_suppressed(
    ctx: context.Context, account: accounts.Account
) -> None:
    resend = await endpoints.create(ctx, account.id, Changes(url=URL, format_events=["email.sent"]), of_format="resend")
    postmark = await endpoints.create(ctx, account.id, Changes(url=URL, format_events=["Bounce"]), of_format="postmark")
    await accepted_mail.allow_sending(ctx, account.id)
    composed = await accepted_mail.accept(ctx, account.id, sender="Shop <shop@example.com>")
    who = accepted_mail.caller_of(account.id)
    given = b"From: shop@example.com\r\nTo: bo@example.net\r\nMessage-ID:\r\n <1042@shop.example>\r\n\r\nHi\r\n"
    raw = statuses.RawMessage("shop@example.com", ("bo@example.net",), given, "by mx.example.com; now")
    await submit_mime.submit_mime(ctx, who, raw, request_id="req_1")
    sent = [msgspec.json.decode(row.body) for row in await webhook_endpoints.deliveries_for(ctx, resend.webhook)]
    assert sorted(one["data"]["message_id"] for one in sent) == ["<1042@shop.example>", f"<{composed}@example.com>"]
    ada, bo = sorted(await claimed_mail.claim_all(ctx, claimed_mail.WORKER), key=lambda claimed: claimed.email)
    bounced = disposition.Verdict.BOUNCED
    ends = [
        claimed_mail.outcome(ctx, ada, bounced, code=550, suppress=True),
        claimed_mail.outcome(ctx, bo, bounced, code=550),
    ]
    await ctx.outcome_commits.submit(ends)
    told = [msgspec.json.decode(row.body) for row in await webhook_endpoints.deliveries_for(ctx, postmark.webhook)]
    assert sorted((event["Email"], event["Inactive"], event["CanActivate"]) for event in told) == [
        ("ada@example.net", True, True),
        ("bo@example.net", False, False),
    ]


async def test_its_own_settings_change_and_ours_are_refused(ctx: context.Context, account: accounts.Account) -> None:
    fields = [signed_requests.basic_authentication("shop", "s3cret")]
    created = await endpoints.create(
        ctx,
        account.id,
        Changes(url=URL, format_events=["Bounce"], request_headers=fields),
        of_format="postmark",
    )
    webhook_id = created.webhook.id
    assert b"s3cret" not in (created.webhook.request_headers or b"")
    kept = await endpoints.change(ctx, account.id, webhook_id, Changes(description="Bounces", tags=["invoice"]))
    assert signed_requests.decrypt_headers(ctx, kept) == fields
    changed = await endpoints.change(
        ctx, account.id, webhook_id, Changes(format_events=["Delivery", "Bounce"], request_headers=[])
    )
    assert (changed.format_events, changed.request_headers, changed.tags) == ("Delivery Bounce", None, "invoice")
    assert changed == await endpoints.get(ctx, account.id, webhook_id)
    for refused in (Changes(events=["email.failed"]), Changes(version=2), Changes(standard_signature=True)):
        with pytest.raises(errors.InvalidRequest, match=r"format of another service \(postmark\)"):
            await endpoints.change(ctx, account.id, webhook_id, refused)
    for wanted in ([], ["Open"], ["email.sent"]):
        with pytest.raises(errors.InvalidRequest, match="Delivery, Bounce, SpamComplaint, SubscriptionChange"):
            await endpoints.change(ctx, account.id, webhook_id, Changes(format_events=wanted))
    assert changed == await endpoints.get(ctx, account.id, webhook_id)


@pytest.mark.parametrize(
    "url, is_kept",
    [
        ("https://hooks.example.com/another?path=1", True),
        ("https://hooks.example.com?path=1", True),
        ("https://hooks.example.com:8443/", False),
        ("https://hooks.example.com.elsewhere.example/", False),
        ("https://elsewhere.example/hooks.example.com", False),
    ],
)
async def test_header_fields_are_not_sent_to_another_host(
    ctx: context.Context,
    account: accounts.Account,
    url: str,
    is_kept: bool,  # noqa: FBT001
) -> None:
    fields = [signed_requests.basic_authentication("shop", "s3cret")]
    changes = Changes(
        url="https://hooks.example.com/postmark", enabled=False, format_events=["Bounce"], request_headers=fields
    )
    saved = await endpoints.create(ctx, account.id, changes, of_format="postmark")
    changed = await endpoints.change(ctx, account.id, saved.webhook.id, Changes(url=url))
    assert signed_requests.decrypt_headers(ctx, changed) == (fields if is_kept else [])
    again = await endpoints.change(ctx, account.id, saved.webhook.id, Changes(url=URL, request_headers=fields))
    assert signed_requests.decrypt_headers(ctx, again) == fields
