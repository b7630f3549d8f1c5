"""What an email is on the wire."""

import collections
import datetime as dt
import decimal
import json
import types
import uuid
from pathlib import Path
from typing import Any

import pytest

from postroad_client import Attachment, Email, emails


def sent(**members: Any) -> dict[str, Any]:
    encoded: dict[str, Any] = json.loads(emails.encode(Email(sender="a@example.com", to="b@example.com", **members)))
    return encoded


def test_members_that_were_not_given_are_not_sent() -> None:
    assert sent() == {"from": "a@example.com", "to": "b@example.com"}


def test_members_that_were_given_are_sent_even_if_empty() -> None:
    assert sent(cc=[], text="")["cc"] == []
    assert sent(cc=[], text="")["text"] == ""


def test_every_member_has_its_name_in_the_interface() -> None:
    members = {
        "cc": ["c@example.com"], "bcc": "d@example.com", "reply_to": ["e@example.com", "f@example.com"],
        "subject": "S", "text": "T", "html": "<p>", "template": "welcome",
        "variables": {"first_name": "Ada", "nested": {"Ü": [1, None, True]}},
        "headers": {"List-Unsubscribe": "<https://example.com>"}, "tags": ["receipt"],
        "unsubscribe": {"list": "news"},
    }  # fmt: skip
    assert sent(**members) == {"from": "a@example.com", "to": "b@example.com", **members}


def test_sequences_and_mappings_may_be_of_any_kind() -> None:
    assert sent(cc=("c@example.com",), tags=collections.deque(["t"]))["tags"] == ["t"]
    assert sent(headers=types.MappingProxyType({"X-A": "b"}))["headers"] == {"X-A": "b"}


def test_an_attachment_of_bytes_is_base64_without_line_breaks() -> None:
    image = Attachment(filename="a.png", content=bytes(range(256)), content_type="image/png", content_id="logo")
    (attachment,) = sent(attachments=[image])["attachments"]
    assert attachment.keys() == {"filename", "content", "content_type", "content_id"}
    assert len(attachment["content"]) == 344
    assert "\n" not in attachment["content"]


def test_an_attachment_of_a_file_is_named_like_the_file(tmp_path: Path) -> None:
    path = tmp_path / "receipt.txt"
    path.write_bytes(b"Total: 42.00\n")
    assert Attachment.from_file(path) == Attachment(filename="receipt.txt", content=b"Total: 42.00\n")
    assert Attachment.from_file(str(path), filename="r.txt", content_id="r").filename == "r.txt"


@pytest.mark.parametrize("value, text", [
    (decimal.Decimal("42.10"), "42.10"), (dt.date(2026, 1, 31), "2026-01-31"),
    (dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), "2026-01-31T12:00:00+00:00"),
    (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
])  # fmt: skip
def test_amounts_dates_and_uuids_are_sent_as_strings(value: object, text: str) -> None:
    assert sent(variables={"name": value, "list": [value]})["variables"] == {"name": text, "list": [text]}


def test_a_dict_is_no_email() -> None:
    with pytest.raises(TypeError, match=r"Email\(sender=…, to=…, …\); this is of the type dict"):
        emails.encode({"from": "a@example.com", "to": "b@example.com"})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [b"bytes", object(), {1, 2}])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be sent"):
        sent(variables={"name": value})


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        sent(variables={"name": float("nan")})


def test_printing_an_attachment_does_not_show_all_of_it() -> None:
    assert repr(Attachment(filename="a", content=b"secret")).startswith("Attachment(filename='a', content_type=None")
