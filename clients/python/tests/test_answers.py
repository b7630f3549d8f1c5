"""Receipts and messages: what is read, what is left empty, and what cannot come from Postroad."""

from datetime import UTC, datetime
from typing import Any

import pytest

from postroad_client import answers

RECIPIENT = {
    "id": "rcp_1", "email": "ada@example.net", "status": "bounced", "billing_status": "released", "attempt_count": 2,
    "last_smtp_code": 550, "last_smtp_response": "5.1.1", "delivered_at": None, "bounced_at": "2026-01-31T12:00:01.5Z",
}  # fmt: skip


def test_a_receipt_with_everything() -> None:
    receipt = answers.receipt({
        "id": "em_1", "status": "queued", "source": "api", "request_id": "req_1", "from": "a@example.com",
        "to": ["b@example.com"], "cc": [], "reply_to": "c@example.com", "subject": "S", "billing_status": "reserved",
        "recipient_count": 1, "credits_reserved": 1, "headers": {"X-A": "b"}, "tags": ["t"], "new": {"member": 1},
        "attachments": [{"filename": "a", "content_type": "text/plain", "size": 3, "content_id": "c", "new": 1}],
    })  # fmt: skip
    assert (receipt.id, receipt.sender, receipt.to, receipt.cc) == ("em_1", "a@example.com", ("b@example.com",), ())
    assert (receipt.headers, receipt.tags, receipt.recipient_count) == ({"X-A": "b"}, ("t",), 1)
    assert receipt.attachments == (
        answers.AttachmentInfo(filename="a", content_type="text/plain", size=3, content_id="c"),
    )


@pytest.mark.parametrize("given, read", [
    ("c@example.com", "c@example.com"), (["c@example.com", "d@example.com"], ("c@example.com", "d@example.com")),
])  # fmt: skip
def test_replies_go_to_one_address_or_several(given: object, read: object) -> None:
    assert answers.receipt({"id": "em_1", "reply_to": given}).reply_to == read


def test_a_receipt_with_an_id_only() -> None:
    receipt = answers.receipt({"id": "em_1"})
    assert (receipt.status, receipt.to, receipt.headers, receipt.attachments) == (None, (), {}, ())


def test_a_message_has_times() -> None:
    created = {"created_at": "2026-01-31T13:00:00.123456789+01:00", "recipients": [RECIPIENT]}
    message = answers.message({"id": "em_1", "status": "a new word", **created})
    assert message.status == "a new word"
    assert message.created_at == datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
    assert message.recipients[0].bounced_at == datetime(2026, 1, 31, 12, 0, 1, 500000, tzinfo=UTC)
    assert message.recipients[0].delivered_at is None


@pytest.mark.parametrize("members", [
    {"id": None}, {"id": ""}, {"id": 7}, {"status": None}, {"status": True}, {"from": []}, {"recipient_count": "1"},
    {"recipient_count": True}, {"recipient_count": 1.5}, {"created_at": 0}, {"created_at": "yesterday"},
    {"created_at": "2026-01-31T12:00:00"}, {"recipients": {}}, {"recipients": [None]},
])  # fmt: skip
def test_a_member_of_a_wrong_type_is_not_of_postroad(members: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=repr(next(iter(members)))):
        answers.message({"id": "em_1", "status": "queued", **members})


@pytest.mark.parametrize("members", [
    {"to": "b@example.com"}, {"to": [1]}, {"reply_to": [1]}, {"reply_to": 1},
    {"headers": []}, {"headers": {"a": 1}}, {"attachments": ["a"]},
])  # fmt: skip
def test_so_it_is_in_a_receipt(members: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=repr(next(iter(members)))):
        answers.receipt({"id": "em_1", **members})


@pytest.mark.parametrize("statuses, is_final", [
    ([], False), (["queued"], False), (["delivered", "deferred"], False), (["delivered", "a new word"], False),
    ([None], False), (["delivered"], True), (["delivered", "bounced", "failed"], True), (["canceled", "expired"], True),
])  # fmt: skip
def test_a_message_is_final_when_every_recipient_is(statuses: list[str | None], *, is_final: bool) -> None:
    recipients = [{"status": status} for status in statuses]
    assert answers.message({"id": "em_1", "status": "x", "recipients": recipients}).is_final is is_final


@pytest.mark.parametrize("text, microsecond", [
    ("2026-01-31T12:00:00Z", 0), ("2026-01-31t12:00:00.5z", 500000), ("2026-01-31 12:00:00.123456789+00:00", 123456),
    ("2026-01-31T11:30:00.1-00:30", 100000),
])  # fmt: skip
def test_times_are_those_of_rfc_3339(text: str, microsecond: int) -> None:
    message = answers.message({"id": "em_1", "status": "x", "created_at": text})
    assert message.created_at == datetime(2026, 1, 31, 12, 0, 0, microsecond, tzinfo=UTC)


def test_values_take_names_only_and_do_not_change() -> None:
    with pytest.raises(TypeError):
        answers.AttachmentInfo("a", "text/plain", 3, "c")  # type: ignore[call-arg]
    info = answers.AttachmentInfo(filename="a", content_type=None, size=3, content_id=None)
    with pytest.raises(AttributeError):
        info.filename = "b"  # type: ignore[misc]


def test_so_it_is_in_a_recipient() -> None:
    with pytest.raises(ValueError, match="'attempt_count'"):
        answers.message({"id": "em_1", "status": "queued", "recipients": [{**RECIPIENT, "attempt_count": "2"}]})
