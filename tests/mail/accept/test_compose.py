"""From a checked send to what is stored. The standard library's parser checks the MIME; the receipt is read back."""

import email
import email.policy
import email.utils
from email.message import EmailMessage
from typing import Any

import msgspec
import pytest

from postroad import errors
from postroad.mail import return_path
from postroad.mail.accept import compose, transaction, validation
from postroad.model.mail import limits, send_request, statuses

NOW = 1_800_000_000_000_000
REQUEST = send_request.SendRequest(
    sender="Shop <shop@example.com>",
    to=("Ada <ada@example.org>", "bob@example.org"),
    cc=("ada@example.org",),
    bcc=("Eve <eve@bücher.example>",),
    reply_to="help@example.com",
    subject="Grüße",
    text="Hällo",
    html="<p>Hällo",
    headers={"X-Campaign": "spring", "List-Unsubscribe": "<https://example.com/u>"},
    tags=("welcome", "büro"),
    attachments=(
        send_request.Attachment("a.txt", "QUJD"),
        send_request.Attachment("logo.png", "QQ==", content_id="logo"),
    ),
)
KEY = transaction.Key("cred_1", "order-1", b"h" * 32)


def identity(count: int = 3) -> compose.MessageIdentity:
    return compose.MessageIdentity(
        message_id="em_1",
        recipient_ids=tuple(f"rcp_{number}" for number in range(count)),
        ledger_id="led_1",
        account_id="acc_1",
        credential_id="cred_1",
        request_id="req_1",
        source=statuses.Source.API,
        key=KEY,
        now=NOW,
    )


def composed(**changes: Any) -> transaction.Submission:
    checked = validation.check(msgspec.structs.replace(REQUEST, **changes))
    return compose.compose(checked, identity(len(checked.recipients)))


def parsed(submission: transaction.Submission) -> EmailMessage:
    return email.message_from_bytes(submission.message.mime, policy=email.policy.default)


def receipt(submission: transaction.Submission) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(submission.message.response)
    return decoded


def test_the_headers_say_who_and_what() -> None:
    message = parsed(composed())
    assert message["From"] == "Shop <shop@example.com>"
    assert message["To"] == "Ada <ada@example.org>, bob@example.org"
    assert message["Cc"] == "ada@example.org"
    assert message["Reply-To"] == "help@example.com"
    assert message["Subject"] == "Grüße"
    assert message["Message-ID"] == "<em_1@example.com>"
    assert email.utils.parsedate_to_datetime(message["Date"]).timestamp() == NOW // 1_000_000
    assert message["X-Campaign"] == "spring"
    assert message["List-Unsubscribe"] == "<https://example.com/u>"
    assert message.get_all("X-Service-Tag") == ["welcome", "büro"]
    assert [part.get_content_type() for part in message.walk()] == [
        *("multipart/mixed", "multipart/alternative", "text/plain", "multipart/related", "text/html"),
        *("image/png", "text/plain"),
    ]


@pytest.mark.parametrize(
    "tags, value",
    [
        ((), "transactional:acc_1::postroad"),
        (("order-2.eu_1", "eu"), "transactional:acc_1:order-2.eu_1:postroad"),
        (("büro",), "transactional:acc_1::postroad"),
        (("a:b",), "transactional:acc_1::postroad"),
        (("two words",), "transactional:acc_1::postroad"),
        (("x" * 65,), "transactional:acc_1::postroad"),
    ],
)
def test_gmail_can_count_complaints_by_account_and_first_tag(tags: tuple[str, ...], value: str) -> None:
    assert parsed(composed(tags=tags)).get_all("Feedback-ID") == [value]


def test_gmail_can_count_complaints_by_list() -> None:
    names = {
        "product-news": "product-news",
        "Product news": "Product-news",
        "a:b, für alle": "a-b-f-r-alle",
        "x" * 65: "x" * 64,
        "ニュース": "-",
    }
    for name, group in names.items():
        made = composed(to="ada@example.org", cc=(), bcc=(), headers={}, unsubscribe=send_request.Unsubscribe(name))
        assert parsed(made)["Feedback-ID"] == f"{group}:acc_1:welcome:postroad"


def test_a_feedback_id_of_the_sender_is_kept() -> None:
    made = composed(headers={"FEEDBACK-ID": "spring:shop:a:myshop"})
    assert parsed(made).get_all("Feedback-ID") == ["spring:shop:a:myshop"]
    assert receipt(made)["headers"] == {"FEEDBACK-ID": "spring:shop:a:myshop"}


RETURN_PATH_KEY = b"k" * 32
MESSAGE_ID = "em_0123456789abcdef0123456789ab"


def complaint_addresses(domain: str, **changes: Any) -> list[str]:
    given: dict[str, Any] = {"to": "ada@example.org", "cc": (), "bcc": ()}
    checked = validation.check(msgspec.structs.replace(REQUEST, **(given | changes)))
    who = msgspec.structs.replace(
        identity(len(checked.recipients)),
        message_id=MESSAGE_ID,
        recipient_ids=[f"rcp_{number}123456789abcdef0123456789abcdef" for number in range(len(checked.recipients))],
        complaint_domain=domain,
        return_path_key=RETURN_PATH_KEY,
    )
    return parsed(compose.compose(checked, who)).get_all("CFBL-Address", [])


@pytest.mark.parametrize("domain", ["example.com", "bounces.example.com", "a.b.example.com"])
def test_complaints_about_a_message_to_one_recipient_come_to_its_return_path(domain: str) -> None:
    """RFC 9477 sections 3.1.1 and 3.1.2: at the domain of `From`, which signs, or below it."""
    (value,) = complaint_addresses(domain)
    where, _, kind = value.partition("; ")
    assert kind == "report=arf"
    assert where.endswith(f"@{domain}")
    named = return_path.read(RETURN_PATH_KEY, where)
    assert named is not None
    assert named.message_id == "em_0123456789abcdef0123456789ab"
    assert named.recipient(["rcp_0123456789abcdef0123456789abcdef"]) == "rcp_0123456789abcdef0123456789abcdef"


def test_complaints_need_an_address_that_the_signature_of_the_sender_covers() -> None:
    """Another domain would have to sign too (section 3.1.3)."""
    assert complaint_addresses("") == []
    assert complaint_addresses("mail.example.net") == []
    assert complaint_addresses("badexample.com") == []
    assert complaint_addresses("com") == []


def test_no_recipient_learns_the_token_of_another() -> None:
    assert complaint_addresses("example.com", to=("ada@example.org", "bob@example.org")) == []
    assert complaint_addresses("example.com", bcc="bob@example.org") == []


def test_an_address_for_complaints_of_the_sender_is_kept() -> None:
    given = {"cfbl-address": "fbl@example.com; report=arf"}
    assert complaint_addresses("example.com", headers=given) == ["fbl@example.com; report=arf"]


def test_who_gets_a_blind_copy_stands_nowhere_in_the_message() -> None:
    mime = composed().message.mime
    assert b"bcc" not in mime.lower()
    assert b"eve" not in mime.lower()
    assert b"bcher" not in mime.lower()


def test_each_unique_address_is_one_recipient_as_written_and_in_its_normal_form() -> None:
    submission = composed()
    assert [(one.id, one.email, one.email_key, one.domain) for one in submission.recipients] == [
        ("rcp_0", "ada@example.org", "ada@example.org", "example.org"),
        ("rcp_1", "bob@example.org", "bob@example.org", "example.org"),
        ("rcp_2", "eve@bücher.example", "eve@xn--bcher-kva.example", "xn--bcher-kva.example"),
    ]
    assert {(one.message_id, one.account_id) for one in submission.recipients} == {("em_1", "acc_1")}
    assert submission.message.recipient_count == 3


def test_the_row_of_the_message_has_what_lists_and_filters_need() -> None:
    submission = composed(sender="Shop <SHOP@Example.com>")
    message = submission.message
    assert (message.id, message.account_id, message.credential_id) == ("em_1", "acc_1", "cred_1")
    assert (message.sender, message.sender_key) == ("Shop <SHOP@Example.com>", "shop@example.com")
    assert (message.subject, message.source, message.request_id) == ("Grüße", "api", "req_1")
    assert (message.size, message.created_at, message.tags) == (len(message.mime), NOW, ("welcome", "büro"))
    assert (submission.key, submission.ledger_id) == (KEY, "led_1")


def test_the_receipt_gives_back_what_was_written() -> None:
    assert receipt(composed()) == {
        "id": "em_1",
        "status": "queued",
        "source": "api",
        "request_id": "req_1",
        "from": "Shop <shop@example.com>",
        "to": ["Ada <ada@example.org>", "bob@example.org"],
        "cc": ["ada@example.org"],
        "bcc": ["Eve <eve@bücher.example>"],
        "reply_to": "help@example.com",
        "subject": "Grüße",
        "billing_status": "reserved",
        "recipient_count": 3,
        "credits_reserved": 3,
        "headers": {"X-Campaign": "spring", "List-Unsubscribe": "<https://example.com/u>"},
        "tags": ["welcome", "büro"],
        "attachments": [
            {"filename": "a.txt", "content_type": "text/plain", "size": 3},
            {"filename": "logo.png", "content_type": "image/png", "size": 1, "content_id": "logo"},
        ],
    }


def test_several_addresses_for_replies_are_one_header_and_a_list() -> None:
    made = composed(reply_to=("Help <help@example.com>", "sales@bücher.example"))
    assert parsed(made).get_all("Reply-To") == ["Help <help@example.com>, sales@xn--bcher-kva.example"]
    assert receipt(made)["reply_to"] == ["Help <help@example.com>", "sales@bücher.example"]


def test_what_was_not_given_is_empty_in_the_receipt() -> None:
    bare = receipt(composed(cc=(), bcc=(), reply_to=None, headers={}, tags=(), attachments=()))
    assert [bare[name] for name in ("cc", "bcc", "headers", "tags", "attachments")] == [[], [], {}, [], []]
    assert "reply_to" not in bare


def _shape(part: EmailMessage) -> str:
    if not part.is_multipart():
        return part.get_content_type()
    return f"{part.get_content_type()}[{' '.join(_shape(inner) for inner in part.iter_parts())}]"  # type: ignore[arg-type]


def test_ten_mebibytes_are_the_limit_of_the_assembled_message() -> None:
    overhead = composed(text="x\r\n", html=None, attachments=()).message.size - 3
    room = limits.MIME_BYTES - overhead
    lines = "x" * 62 + "\r\n"
    text = lines * (room // 64)
    text += "y" * (room - len(text) - 2) + "\r\n"
    assert composed(text=text, html=None, attachments=()).message.size == limits.MIME_BYTES
    with pytest.raises(errors.PayloadTooLarge, match=f"{limits.MIME_BYTES + 1} bytes"):
        composed(text="z" + text, html=None, attachments=())


def test_what_the_builder_refuses_is_an_invalid_request() -> None:
    checked = validation.check(REQUEST)
    with pytest.raises(errors.InvalidRequest, match="subject: line breaks"):
        compose.compose(msgspec.structs.replace(checked, subject="a\r\nBcc: eve@example.net"), identity())
    with pytest.raises(errors.InvalidRequest, match="text: "):
        compose.compose(msgspec.structs.replace(checked, text="a\0b"), identity())
