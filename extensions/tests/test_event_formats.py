"""The formats of other services: what our events become there, in literal bytes, and in the examples of the docs."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postroad.model.bounces import reasons
from postroad.model.events import events
from postroad_postmark import event_format
from postroad_resend import event_format as resend

Kind = events.EventType
FORMATS = {"resend": resend.FORMAT, "postmark": event_format.FORMAT}
DOCS = Path(__file__).parents[2] / "docs"
AT = 1_769_860_803_811_000
CREATED_AT = "2026-01-31T12:00:03.811Z"
MESSAGE_ID = "<1042@shop.example>"
MEMBERS: dict[str, Any] = {
    "email_id": "em_06604ca58ccca61dc35061804060",
    "recipient_id": "rcp_06604ca58ccca63c75c8211311be",
    "to": "ada@example.net",
    "sender": "bounces+1@example.com",
    "subject": "Your order",
    "response": "5.1.1 <ada@example.net>: Recipient address rejected: user unknown in virtual mailbox table",
    "smtp_code": 550,
    "tags": ("orders", "paid"),
    "metadata": {"order": "1042"},
    "cause": "unknown_address",
    "header_from": "shop@example.com",
    "next_attempt_at": CREATED_AT,
    "feedback_type": "abuse",
    "source": "bounce",
}


def event(kind: Kind, *, is_scheduled: bool = False, is_suppressed: bool = True, **changes: Any) -> events.EmailEvent:
    data = events.recipient(kind=kind, version=events.V2, **(MEMBERS | changes))
    assert isinstance(data, events.DataV2)
    return events.EmailEvent(
        kind=kind,
        at=AT,
        data=data,
        is_scheduled=is_scheduled,
        is_suppressed=is_suppressed,
        message_id=MESSAGE_ID,
    )


def translated(name: str, happened: events.EmailEvent) -> dict[str, Any]:
    body = FORMATS[name].body(happened, wanted=FORMATS[name].sources)
    assert body is not None
    return msgspec.json.decode(body)  # type: ignore[no-any-return]


RESEND = {
    "created_at": "2026-01-31T12:00:03.730598Z",
    "email_id": "em_06604ca58ccca61dc35061804060",
    "message_id": MESSAGE_ID,
    "from": "shop@example.com",
    "to": ["ada@example.net"],
    "subject": "Your order",
    "tags": {"order": "1042"},
}
BOUNCE = {
    "message": "The recipient's mail server sent a bounce message: 550 5.1.1 <ada@example.net>: Recipient address "
    "rejected: user unknown in virtual mailbox table",
    "subType": "General",
    "type": "Permanent",
}
SUPPRESSED = {
    "message": "The address is on the suppression list, so the message was not sent to it.",
    "type": "OnAccountSuppressionList",
}


@pytest.mark.parametrize(
    "happened, name, own",
    [
        (event(Kind.ACCEPTED), "email.sent", {}),
        (event(Kind.ACCEPTED, is_scheduled=True), "email.scheduled", {}),
        (event(Kind.DELIVERED, is_scheduled=True), "email.delivered", {}),
        (event(Kind.DEFERRED), "email.delivery_delayed", {}),
        (event(Kind.COMPLAINED), "email.complained", {}),
        (event(Kind.BOUNCED), "email.bounced", {"bounce": BOUNCE}),
        (event(Kind.BOUNCED_LATER), "email.bounced", {"bounce": BOUNCE}),
        (event(Kind.BOUNCED, cause="mailbox_full"), "email.bounced", {"bounce": BOUNCE | {"subType": "MailboxFull"}}),
        (event(Kind.BOUNCED, cause="suppressed"), "email.suppressed", {"suppressed": SUPPRESSED}),
        (event(Kind.FAILED, cause="greylisted"), "email.failed", {"failed": {"reason": "greylisted"}}),
        (
            event(Kind.EXPIRED, cause="", smtp_code=None, response="not attempted before it expired"),
            "email.failed",
            {"failed": {"reason": "not attempted before it expired"}},
        ),
    ],
)
def test_events_of_resend(happened: events.EmailEvent, name: str, own: dict[str, Any]) -> None:
    body = translated("resend", happened)
    body["data"]["created_at"] = RESEND["created_at"]
    assert body == {"type": name, "created_at": CREATED_AT, "data": RESEND | own}
    assert FORMATS["resend"].body(happened, wanted=["email.opened"]) is None


@pytest.mark.parametrize(
    "source, origin", [("bounce", "bounce"), ("late_bounce", "bounce"), ("complaint", "complaint")]
)
def test_an_address_that_is_suppressed_in_the_words_of_both(source: str, origin: str) -> None:
    happened = event(Kind.SUPPRESSED, source=source)
    assert translated("resend", happened) == {
        "type": "suppression.added",
        "created_at": CREATED_AT,
        "data": {
            "id": "ada@example.net",
            "email": "ada@example.net",
            "origin": origin,
            "source_id": "em_06604ca58ccca61dc35061804060",
            "created_at": CREATED_AT,
        },
    }
    assert translated("postmark", happened) == POSTMARK | {
        "RecordType": "SubscriptionChange",
        "Recipient": "ada@example.net",
        "ChangedAt": CREATED_AT,
        "Origin": "Recipient",
        "SuppressSending": True,
        "SuppressionReason": "SpamComplaint" if source == "complaint" else "HardBounce",
    }


POSTMARK = {
    "MessageID": "em_06604ca58ccca61dc35061804060",
    "ServerID": 0,
    "MessageStream": "outbound",
    "Tag": "orders",
    "Metadata": {"order": "1042"},
}
REPLY = "550 5.1.1 <ada@example.net>: Recipient address rejected: user unknown in virtual mailbox table"
BOUNCED = {
    "RecordType": "Bounce",
    "ID": 1_794_732_171_512_998,
    "Type": "HardBounce",
    "TypeCode": 1,
    "Name": "Hard bounce",
    "Description": "The mailbox does not exist, or the server refused the message for good.",
    "Details": REPLY,
    "Email": "ada@example.net",
    "From": "shop@example.com",
    "BouncedAt": CREATED_AT,
    "DumpAvailable": True,
    "Inactive": True,
    "CanActivate": True,
    "Subject": "Your order",
}
COMPLAINT = {
    "RecordType": "SpamComplaint",
    "Type": "SpamComplaint",
    "TypeCode": 100001,
    "Name": "Spam complaint",
    "Description": "The recipient reported the message as spam.",
    "CanActivate": False,
    "DumpAvailable": False,
}


@pytest.mark.parametrize(
    "happened, own",
    [
        (
            event(Kind.DELIVERED),
            {"RecordType": "Delivery", "Recipient": "ada@example.net", "DeliveredAt": CREATED_AT, "Details": REPLY},
        ),
        (event(Kind.BOUNCED), BOUNCED),
        (event(Kind.BOUNCED, is_suppressed=False), BOUNCED | {"Inactive": False, "CanActivate": False}),
        # `/bounces` does not have these two.
        (event(Kind.BOUNCED_LATER), BOUNCED | {"DumpAvailable": False, "CanActivate": False}),
        (event(Kind.COMPLAINED), BOUNCED | COMPLAINT),
        (
            event(Kind.FAILED, cause="mailbox_full", is_suppressed=False),
            BOUNCED
            | {
                "Type": "SoftBounce",
                "TypeCode": 4096,
                "Name": "Soft bounce",
                "Description": "The mailbox is full or not available for a while.",
                "Inactive": False,
                "CanActivate": False,
            },
        ),
    ],
)
def test_events_of_postmark(happened: events.EmailEvent, own: dict[str, Any]) -> None:
    assert translated("postmark", happened) == POSTMARK | own


def test_the_message_stream_of_postmark_is_not_shown_as_metadata() -> None:
    body = translated("postmark", event(Kind.DELIVERED, metadata={"order": "1042", "postmark-stream": "broadcast"}))
    assert (body["MessageStream"], body["Metadata"]) == ("broadcast", {"order": "1042"})


def test_a_message_without_tags_and_metadata_has_empty_ones() -> None:
    happened = event(Kind.DELIVERED, tags=(), metadata={})
    assert translated("resend", happened)["data"]["tags"] == {}
    body = translated("postmark", happened)
    assert (body["Tag"], body["Metadata"]) == ("", {})


@pytest.mark.parametrize(
    "cause, name",
    [
        ("unknown_address", "HardBounce"),
        ("bad_address", "BadEmailAddress"),
        ("domain_not_found", "DnsError"),
        ("suppressed", "ManuallyDeactivated"),
        ("spam_suspected", "SpamNotification"),
        ("malware_suspected", "VirusNotification"),
        ("not_authenticated", "DMARCPolicy"),
        ("ip_blocked", "Blocked"),
        ("connection_refused", "Transient"),
        ("login_required", "Unknown"),
        ("", "Unknown"),
        ("a name of another version", "Unknown"),
    ],
)
def test_bounces_have_the_types_of_postmark(cause: str, name: str) -> None:
    assert event_format.bounce_type(cause).name == name


def test_every_reason_has_a_type() -> None:
    assert all(event_format.bounce_type(cause).code for cause in reasons.REASONS)


@pytest.mark.parametrize("name", ["resend", "postmark"])
def test_every_event_of_ours_becomes_one_that_is_listed_and_no_other_is_asked_for(name: str) -> None:
    wanted = list(FORMATS[name].sources)
    kinds = FORMATS[name].kinds(wanted)
    assert "email.received" in kinds  # see test_received_formats.py
    for kind in kinds:
        if kind == Kind.RECEIVED:
            continue
        body = translated(name, event(Kind(kind)))
        assert body.get("type", body.get("RecordType")) in wanted
    assert "email.canceled" not in kinds
    assert FORMATS["resend"].kinds(["email.suppressed", "email.sent"]) == ["email.bounced", "email.accepted"]


@pytest.mark.parametrize(
    "name, body",
    [
        ("resend", {"type": "webhook.test", "created_at": CREATED_AT}),
        ("postmark", {"RecordType": "Test", "Subject": "Postroad webhook test", "CreatedAt": CREATED_AT}),
    ],
)
def test_a_test_event_has_the_shape_of_the_format(name: str, body: dict[str, Any]) -> None:
    sent = msgspec.json.decode(FORMATS[name].ping(AT))
    data = sent.pop("data", None)
    assert sent == body
    assert data in (None, {"subject": "Postroad webhook test", "test": True})


@pytest.mark.parametrize("name", ["resend", "postmark"])
def test_the_example_in_the_docs_is_what_is_sent(name: str) -> None:
    marked = (
        (DOCS / "webhook-events.md").read_text().partition(f"<!-- format: {name} -->\n```json\n")[2].partition("```")[0]
    )
    assert json.loads(marked) == translated(name, event(Kind.BOUNCED))


@pytest.mark.parametrize("vendor", ["resend", "postmark"])
def test_the_events_that_are_sent_here_are_listed(vendor: str) -> None:
    section = (DOCS / "webhooks.md").read_text().partition(f"\n`{vendor}`: ")[2]
    rows = section.partition("|---|---|\n")[2].partition("\n\n")[0]
    assert re.findall(r"(?m)^\| `([^`]+)` \|", rows) == list(FORMATS[vendor].sources)
