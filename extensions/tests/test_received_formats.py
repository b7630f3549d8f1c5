"""Received mail in the formats of other services: what arrives over SMTP, and what receivers make of it."""

import sys
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from postmarker import core

from postroad import config, context
from postroad.mail import outbox
from postroad.model.events import event_formats, events
from postroad.model.units import identifiers
from postroad.services.inbound import routes
from postroad.services.messages import received_mail as reading
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.storage.mail import webhooks
from postroad.storage.people import accounts
from postroad_postmark import event_format as postmark
from postroad_resend import event_format as resend
from tests import accepted_mail, dns_server, webhook_endpoints
from tests.compat import package_runner
from tests.inbound import received_mail
from tests.services import domain_zones

TO = "support+1042@in.example.com"
MAIL = (
    b"X-Spam-Status: No, forged\r\nReceived-SPF: pass forged\r\n"
    b'From: "Doe, Anna" <anna@example.net>\r\nTo: Help <support+1042@in.example.com>\r\n'
    b"Cc: bob@example.net\r\nReply-To: Anna <replies@example.net>\r\nSubject: My order\r\n"
    b"Message-ID: <1@example.net>\r\nDate: Fri, 15 Jan 2027 08:00:00 +0000\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    b"--b\r\nContent-Type: text/plain\r\n\r\nWhere is it?\r\n"
    b'--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename="order.csv"\r\n\r\n'
    b"id,due\r\n1042,monday\r\n"
    b"--b\r\nContent-Type: image/png\r\nContent-ID: <logo>\r\nContent-Disposition: inline; filename=logo.png\r\n"
    b"Content-Transfer-Encoding: base64\r\n\r\naGk=\r\n--b--\r\n"
)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[dns_server.DnsServer]:
    async with dns_server.running({"example.net": {"TXT": ['"v=spf1 ip4:127.0.0.1 -all"']}}) as running:
        yield running


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    return domain_zones.settings(database_url, server)


async def subscribe(ctx: context.Context, account_id: str, of_format: str, *names: str) -> webhooks.Webhook:
    changes = endpoint_settings.Changes(url="https://8.8.8.8/hooks", format_events=names)
    return (await endpoints.create(ctx, account_id, changes, of_format=of_format)).webhook


async def told(ctx: context.Context, endpoint: webhooks.Webhook) -> list[dict[str, Any]]:
    return [msgspec.json.decode(row.body) for row in await webhook_endpoints.deliveries_for(ctx, endpoint)]


async def receive(ctx: context.Context, account_id: str, content: bytes = MAIL, *, to: str = TO) -> None:
    await accepted_mail.allow_sending(ctx, account_id)
    await routes.add(ctx, account_id, "*@in.example.com")
    async with received_mail.connected(ctx) as client:
        assert await received_mail.send(client, content, to=to) == "250 2.0.0"


async def test_a_mail_becomes_the_event_of_resend(ctx: context.Context, account: accounts.Account) -> None:
    wanting = await subscribe(ctx, account.id, "resend", "email.received")
    other = await subscribe(ctx, account.id, "resend", "email.delivered")
    await receive(ctx, account.id)
    (mail,) = await received_mail.stored(ctx, account.id)
    (event,) = await told(ctx, wanting)
    assert await told(ctx, other) == []
    assert event == {
        "type": "email.received",
        "created_at": "2027-01-15T08:00:00.000Z",
        "data": {
            "email_id": mail.id,
            "created_at": "2027-01-15T08:00:00.000Z",
            "from": '"Doe, Anna" <anna@example.net>',
            "to": [TO],
            "bcc": [],
            "cc": ["bob@example.net"],
            "message_id": "<1@example.net>",
            "subject": "My order",
            "received_for": [TO],
            "attachments": [
                {
                    "id": f"{mail.id}_1",
                    "filename": "order.csv",
                    "content_type": "text/csv",
                    "content_disposition": "attachment",
                    "content_id": None,
                },
                {
                    "id": f"{mail.id}_2",
                    "filename": "logo.png",
                    "content_type": "image/png",
                    "content_disposition": "inline",
                    "content_id": "logo",
                },
            ],
        },
    }


async def test_a_mail_becomes_the_inbound_json_of_postmark(ctx: context.Context, account: accounts.Account) -> None:
    endpoint = await subscribe(ctx, account.id, "postmark", "Inbound")
    await receive(ctx, account.id)
    (mail,) = await received_mail.stored(ctx, account.id)
    (event,) = await told(ctx, endpoint)
    headers = [(field["Name"], field["Value"]) for field in event.pop("Headers")]
    assert [name for name, _ in headers] == [
        "Return-Path",
        "Received-SPF",
        "Received",
        "Authentication-Results",
        "Message-ID",
        "MIME-Version",
    ]
    assert headers[0][1] == "<anna@example.net>"
    assert headers[1][1] == "Pass"
    assert event == {
        "FromName": "Doe, Anna",
        "MessageStream": "inbound",
        "From": "anna@example.net",
        "FromFull": {"Email": "anna@example.net", "Name": "Doe, Anna", "MailboxHash": ""},
        "To": f"Help <{TO}>",
        "ToFull": [{"Email": TO, "Name": "Help", "MailboxHash": "1042"}],
        "Cc": "bob@example.net",
        "CcFull": [{"Email": "bob@example.net", "Name": "", "MailboxHash": ""}],
        "Bcc": "",
        "BccFull": [],
        "OriginalRecipient": TO,
        "Subject": "My order",
        "MessageID": mail.id,
        "ReplyTo": "Anna <replies@example.net>",
        "MailboxHash": "1042",
        "Date": "Fri, 15 Jan 2027 08:00:00 +0000",
        "TextBody": "Where is it?",
        "HtmlBody": "",
        "StrippedTextReply": "",
        "Tag": "",
        "Attachments": [
            {
                "Name": "order.csv",
                "ContentType": "text/csv",
                "ContentLength": 19,
                "Content": "aWQsZHVlDQoxMDQyLG1vbmRheQ==",
            },
            {
                "Name": "logo.png",
                "ContentType": "image/png",
                "ContentLength": 2,
                "Content": "aGk=",
                "ContentID": "logo",
            },
        ],
    }


async def test_packages_for_postmark_read_the_mail_and_its_files(
    ctx: context.Context, account: accounts.Account
) -> None:
    endpoint = await subscribe(ctx, account.id, "postmark", "Inbound")
    await receive(ctx, account.id, to="sales@in.example.com")
    (event,) = await told(ctx, endpoint)
    message = core.PostmarkClient(server_token="x").messages.inbound.InboundMessage(msgspec.json.encode(event))
    assert [file.decoded for file in message.Attachments] == [b"id,due\r\n1042,monday", b"hi"]
    given = {"view": "anymail.webhooks.postmark.PostmarkInboundWebhookView", "event": event}
    assert await package_runner.run(sys.executable, "anymail_inbound.py", given) == {
        "envelope_sender": "anna@example.net",
        "envelope_recipient": "sales@in.example.com",
        "from": "anna@example.net",
        "to": [TO],
        "bcc": "sales@in.example.com",
        "subject": "My order",
        "date": "2027-01-15T08:00:00+00:00",
        "reply_to": "Anna <replies@example.net>",
        "text": "Where is it?",
        "attachments": {"order.csv": "id,due\r\n1042,monday"},
        "inline": ["logo"],
        "spam_detected": False,
    }


async def test_a_file_that_is_too_large_for_an_event_of_postmark_is_a_link(
    ctx: context.Context, account: accounts.Account
) -> None:
    endpoint = await subscribe(ctx, account.id, "postmark", "Inbound")
    line = b"x" * 900 + b"\r\n"
    large = line * (reading.MAX_CONTENT_BYTES // len(line) + 1)
    await receive(ctx, account.id, MAIL.replace(b"id,due\r\n1042,monday\r\n", large))
    ((first, second),) = [event["Attachments"] for event in await told(ctx, endpoint)]
    assert first["ContentLength"] == len(large) - 2
    assert "Content" not in first
    assert "/v1/inbound/attachments/" in first["Url"]
    assert second.keys() & {"Content", "Url"} == {"Url"}


async def test_the_event_waits_for_an_extension_that_is_not_installed(
    ctx: context.Context, account: accounts.Account
) -> None:
    endpoint = await subscribe(ctx, account.id, "postmark", "Inbound")
    await receive(ctx, account.id)
    (expected,) = await webhook_endpoints.deliveries_for(ctx, endpoint)
    data = received()
    without = outbox.Outbox(return_path_key=b"", return_path_domain="", entropy=ctx.entropy)
    happened = events.AccountEvent(account.id, events.EventType.RECEIVED, ctx.clock(), data, (b"hi", None))
    async with ctx.store.transaction() as tx:
        assert await without.write_account(tx, [happened]) == 1
    waiting = next(row for row in await webhook_endpoints.deliveries_for(ctx, endpoint) if row.id != expected.id)
    event = event_formats.read_untranslated(waiting.body)
    assert event == events.ReceivedEvent(at=ctx.clock(), data=data, files=(b"hi", None))
    body = postmark.FORMAT.body(event, wanted=["Inbound"])
    assert body is not None
    assert [file.get("Content") for file in msgspec.json.decode(body)["Attachments"]] == ["aGk=", None]
    assert resend.FORMAT.body(event, wanted=["email.sent"]) is None


def received(**changes: Any) -> events.ReceivedData:
    unknown = events.AuthenticationResult("none")
    files = tuple(
        events.ReceivedFile(
            filename=name,
            content_type="text/plain",
            size=2,
            disposition="attachment",
            sha256="",
            url=f"https://x/{name}",
        )
        for name in ("a.txt", "b.txt")
    )
    values: dict[str, Any] = {
        "inbound_id": identifiers.make(identifiers.RECEIVED, now=0, entropy=bytes(identifiers.ENTROPY_BYTES)),
        "route_id": "rt_1",
        "route": "*@in.example.com",
        "to": TO,
        "addresses": events.ReceivedAddresses(),
        "authentication": events.Authentication(unknown, (), unknown, unknown),
        "attachments": files,
        "size": 1,
    }
    return events.ReceivedData(**values | changes)


def test_a_mail_with_nothing_in_its_header_is_still_an_event() -> None:
    event = events.ReceivedEvent(at=0, data=received(attachments=()), files=())
    name, body = resend.translate_received(event)
    data = msgspec.json.decode(body)["data"]
    assert (name, data["from"], data["to"], data["message_id"]) == ("email.received", "", [TO], "")
    name, body = postmark.translate_received(event)
    members = msgspec.json.decode(body)
    assert (name, members["From"], members["ToFull"], members["Bcc"]) == ("Inbound", "", [], TO)
    assert members["Headers"] == [{"Name": "Received-SPF", "Value": "None"}]


def test_the_verdict_of_the_spam_filter_has_the_names_of_postmark() -> None:
    spam = events.ReceivedSpam(score=7.5, required=5.0, is_spam=True)
    data = received(attachments=(), spam=spam, headers=(events.ReceivedHeader("X-Spam-Score", "0"),))
    members = msgspec.json.decode(postmark.translate_received(events.ReceivedEvent(at=0, data=data, files=()))[1])
    assert [(field["Name"], field["Value"]) for field in members["Headers"]] == [
        ("Received-SPF", "None"),
        ("X-Spam-Status", "Yes"),
        ("X-Spam-Score", "7.5"),
    ]


@pytest.mark.parametrize(
    "address, name, text",
    [
        ("ada@example.net", "", "ada@example.net"),
        ("ada@example.net", "Ada Lovelace", "Ada Lovelace <ada@example.net>"),
        ("ada@example.net", "Lovelace, Ada", '"Lovelace, Ada" <ada@example.net>'),
        ("eve@example.net", 'Ada" <ada@example.net>', r'"Ada\" <ada@example.net>" <eve@example.net>'),
        ("", "undisclosed", "undisclosed"),
    ],
)
def test_an_address_is_written_as_in_a_header_field(address: str, name: str, text: str) -> None:
    assert str(events.ReceivedAddress(address, name)) == text
