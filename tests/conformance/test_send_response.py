"""The interface, "Send response (202)" and "Attachment metadata": every member, its type, and when it is there."""

from typing import Any

import pytest

from tests.conformance import live_service

ADDRESSES = {
    "from_": "Shop <shop@EXAMPLE.com>",
    "to": ["Ada <ada@example.org>", "BOB@example.org"],
    "cc": ["ada@example.org"],
    "bcc": ["eve@bücher.example"],
}
FULL: dict[str, Any] = {
    **ADDRESSES,
    "reply_to": "Help <help@example.com>",
    "subject": "Grüße ☃",
    "html": "<p>Hi",
    "headers": {"X-Campaign": "spring", "List-Unsubscribe": "<https://example.com/u>"},
    "tags": ["welcome", "büro"],
    "attachments": [
        {"filename": "a.txt", "content": "QUJD"},
        {"filename": "logo.png", "content": "QQ==", "content_type": "image/x-logo", "content_id": "logo"},
    ],
}


def test_id(service: live_service.Service) -> None:
    """Row `id`: the message id, required; it is what `GET /emails/{id}` takes."""
    accepted = service.accept()
    assert accepted["id"].startswith("em_")
    assert service.read(accepted["id"])["id"] == accepted["id"]


def test_status_and_source(service: live_service.Service) -> None:
    """Rows `status`, always `queued`, and `source`, always `api`."""
    for changes in ({}, FULL, {"template": "welcome", "variables": {"name": "Ada"}, "text": live_service.ABSENT}):
        accepted = service.accept(**changes)
        assert (accepted["status"], accepted["source"]) == ("queued", "api")


def test_request_id(service: live_service.Service) -> None:
    """Row `request_id`: required, and equal to the header."""
    response = service.post(live_service.message())
    assert response.json()["request_id"] == response.headers["x-request-id"]
    assert response.json()["request_id"].startswith("req_")


def test_from_to_cc_bcc(service: live_service.Service) -> None:
    """Rows `from` and `to, cc, bcc`: a string and arrays of strings, as they were written."""
    accepted = service.accept(**FULL)
    assert accepted["from"] == ADDRESSES["from_"]
    assert [accepted[name] for name in ("to", "cc", "bcc")] == [ADDRESSES[name] for name in ("to", "cc", "bcc")]


def test_lone_strings_come_back_as_arrays(service: live_service.Service) -> None:
    """Rows `to, cc, bcc` and `tags`: arrays, also when one string was given."""
    accepted = service.accept(to="a@example.org", cc="b@example.org", bcc="c@example.org", tags="one")
    assert [accepted[name] for name in ("to", "cc", "bcc", "tags")] == [
        ["a@example.org"],
        ["b@example.org"],
        ["c@example.org"],
        ["one"],
    ]


def test_reply_to(service: live_service.Service) -> None:
    """Row `reply_to`: a string, there when it was given and only then."""
    assert service.accept(**FULL)["reply_to"] == "Help <help@example.com>"
    assert "reply_to" not in service.accept()


def test_subject(service: live_service.Service) -> None:
    """Row `subject`: the one that is sent, also when a template supplied it."""
    assert service.accept(**FULL)["subject"] == "Grüße ☃"
    from_template = {"template": "welcome", "variables": {"name": "Ada"}, "text": live_service.ABSENT}
    assert service.accept(**from_template, subject=live_service.ABSENT)["subject"] == "Welcome Ada"


def test_billing(service: live_service.Service) -> None:
    """Rows `billing_status`, `recipient_count`, `credits_reserved`: one credit for each unique recipient."""
    accepted = service.accept(**FULL)
    assert (accepted["billing_status"], accepted["recipient_count"], accepted["credits_reserved"]) == ("reserved", 3, 3)


def test_headers_and_tags(service: live_service.Service) -> None:
    """Rows `headers`, an object of strings, and `tags`, an array of strings; repeated tags are one."""
    accepted = service.accept(**FULL | {"tags": ["b", "a", "b"]})
    assert accepted["headers"] == FULL["headers"]
    assert accepted["tags"] == ["b", "a"]


def test_attachment_metadata(service: live_service.Service) -> None:
    """Rows `filename`, `content_type`, `size`, `content_id`: what was understood; the size is the decoded one."""
    assert service.accept(**FULL)["attachments"] == [
        {"filename": "a.txt", "content_type": "text/plain", "size": 3},
        {"filename": "logo.png", "content_type": "image/x-logo", "size": 1, "content_id": "logo"},
    ]


def test_arrays_and_objects_are_there_when_empty(service: live_service.Service) -> None:
    """Rows `to, cc, bcc`, `tags`, `attachments`, `headers`: always there, empty when nothing was given."""
    accepted = service.accept()
    assert [accepted[name] for name in ("cc", "bcc", "tags", "attachments", "headers")] == [[], [], [], [], {}]


@pytest.mark.parametrize("changes", [{}, FULL], ids=["bare", "full"])
def test_no_member_is_missing_and_none_is_unknown(service: live_service.Service, changes: dict[str, Any]) -> None:
    """The table as a whole: these members, of these types, and no others."""
    accepted = service.accept(**changes)
    types = {
        "id": str,
        "status": str,
        "source": str,
        "request_id": str,
        "from": str,
        "to": list,
        "cc": list,
        "bcc": list,
        "reply_to": str,
        "subject": str,
        "billing_status": str,
        "recipient_count": int,
        "credits_reserved": int,
        "headers": dict,
        "tags": list,
        "attachments": list,
    }
    if not changes:
        del types["reply_to"]
    assert {name: type(value) for name, value in accepted.items()} == types
