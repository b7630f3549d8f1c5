"""The interface, "Attachment": each row of the table, and what becomes of the files in the message."""

import base64
from email.message import EmailMessage
from typing import Any

import pytest

from tests.conformance import live_service
from tests.conformance.live_service import ABSENT

OCTETS = bytes(range(256)) * 3
FILE = {"filename": "a.bin", "content": base64.b64encode(OCTETS).decode()}
IMAGE = {"filename": "logo.png", "content": "iVBORw0KGgo=", "content_id": "logo"}


def sent_file(service: live_service.Service, **changes: Any) -> EmailMessage:
    """The one attached file of a message, as a mail program finds it."""
    file = {name: value for name, value in (FILE | changes).items() if value is not ABSENT}
    (part,) = service.sent(attachments=[file]).iter_attachments()
    return part


def refuse_file(service: live_service.Service, **changes: Any) -> str:
    file = {name: value for name, value in (FILE | changes).items() if value is not ABSENT}
    return service.refuse(attachments=[FILE, file])


@pytest.mark.parametrize(
    "name",
    [
        "a.txt",
        "x",
        "x" * 255,
        "Rechnung März.pdf",
        "請求書" * 30 + ".pdf",
        "ü" * 255,
        'say "hi"; no.txt',
        ".profile",
        "a b.c",
    ],
)
def test_filename_reaches_the_message(service: live_service.Service, name: str) -> None:
    """Row `filename`: required, a file name."""
    part = sent_file(service, filename=name)
    assert part.get_filename() == name
    assert part.get_content_disposition() == "attachment"


@pytest.mark.parametrize(
    "name",
    [
        ABSENT,
        None,
        "",
        "x" * 256,
        "a/b",
        "/etc/passwd",
        "../../etc/cron.d/x",
        "C:\\x",
        "..",
        "a\0b",
        "a\nb",
        "a\u202eb",
        7,
    ],
)
def test_filename_is_without_a_path(service: live_service.Service, name: object) -> None:
    """Row `filename`: without a path, and without what deceives a reader."""
    assert refuse_file(service, filename=name).startswith("attachments[1].filename: ")


@pytest.mark.parametrize("octets", [b"", b"A", b"AB", b"ABC", OCTETS, b"PK\x03\x04" + bytes(100)])
def test_content_is_base64(service: live_service.Service, octets: bytes) -> None:
    """Row `content`: required, base64; the same octets come out, unopened."""
    part = sent_file(service, content=base64.b64encode(octets).decode())
    assert part.get_payload(decode=True) == octets


def test_content_may_be_broken_into_lines(service: live_service.Service) -> None:
    """Row `content`: base64 as common encoders write it."""
    for text in (base64.encodebytes(OCTETS).decode(), base64.encodebytes(OCTETS).decode().replace("\n", "\r\n")):
        assert sent_file(service, content=text).get_payload(decode=True) == OCTETS


@pytest.mark.parametrize(
    "text", [ABSENT, None, "Q", "QQ", "QQ=", "QQ===", "Q Q=", "Q-_Q", "QQ==QQ==", "é", "\0", 7, ["QQ=="]]
)
def test_content_is_nothing_else(service: live_service.Service, text: object) -> None:
    """Row `content`: strict base64, so that a damaged file is not sent."""
    assert refuse_file(service, content=text).startswith("attachments[1].content: ")


@pytest.mark.parametrize(
    "name, kind",
    [
        ("a.pdf", "application/pdf"),
        ("a.PNG", "image/png"),
        ("a.csv", "text/csv"),
        ("a.txt", "text/plain"),
        ("a", "application/octet-stream"),
        ("a.no-such-extension", "application/octet-stream"),
    ],
)
def test_content_type_is_derived_from_the_extension(service: live_service.Service, name: str, kind: str) -> None:
    """Row `content_type`: by default from the file extension, otherwise application/octet-stream."""
    accepted = service.accept(attachments=[FILE | {"filename": name}])
    assert accepted["attachments"][0]["content_type"] == kind
    (part,) = live_service.parse(service.raw(accepted["id"])).iter_attachments()
    assert part.get_content_type() == kind


def test_content_type_may_be_given(service: live_service.Service) -> None:
    """Row `content_type`: a string, with parameters if wanted."""
    part = sent_file(service, filename="a.pdf", content_type="text/csv; charset=utf-8; header=present")
    assert part.get_content_type() == "text/csv"
    assert part["Content-Type"].params == {"charset": "utf-8", "header": "present"}


@pytest.mark.parametrize("kind", ["", "text", "text/", "text/plain\r\nX: y", "multipart/mixed", "message/rfc822", 7])
def test_content_type_is_that_of_a_file(service: live_service.Service, kind: object) -> None:
    """Row `content_type`: type and subtype."""
    assert refuse_file(service, content_type=kind).startswith("attachments[1].content_type: ")


def test_content_id_marks_an_inline_image(service: live_service.Service) -> None:
    """Row `content_id`: the image stands beside the html that shows it, in multipart/related."""
    parsed = service.sent(text="Hi", html='<img src="cid:logo">', attachments=[IMAGE, FILE])
    assert parsed.get_content_type() == "multipart/mixed"
    (related,) = [part for part in parsed.walk() if part.get_content_type() == "multipart/related"]
    assert isinstance(related, EmailMessage)
    html, image = related.iter_parts()
    assert html.get_content_type() == "text/html"
    assert "cid:logo" in html.get_content()
    assert (image["Content-ID"], image.get_content_disposition()) == ("<logo>", "inline")
    assert image.get_content_type() == "image/png"
    assert [part.get_filename() for part in parsed.iter_attachments()] == ["a.bin"]


@pytest.mark.parametrize("content_id", ["", "<logo>", "a b", "x" * 129, "lögo", "a\r\nX: y", "a\n", 7])
def test_content_id_is_a_word(service: live_service.Service, content_id: object) -> None:
    """Row `content_id`: what `cid:` can name."""
    assert refuse_file(service, content_id=content_id).startswith("attachments[1].content_id: ")


def test_content_id_is_unique(service: live_service.Service) -> None:
    """Row `content_id`: names one image."""
    sentence = service.refuse(html="<p>", attachments=[IMAGE, IMAGE | {"filename": "b.png"}])
    assert sentence.startswith("attachments[1].content_id: ")
    service.accept(html="<p>", attachments=[IMAGE, IMAGE | {"content_id": "other"}])


@pytest.mark.parametrize("name", ["url", "path", "Filename", "disposition"])
def test_unknown_members_are_refused_by_name(service: live_service.Service, name: str) -> None:
    """The table as a whole: a member that is not in it is refused; a file is never fetched from somewhere."""
    assert "unknown member" in refuse_file(service, **{name: "https://example.com/a.txt"})


def test_null_means_the_same_as_leaving_out(service: live_service.Service) -> None:
    """The column "Required": `content_type` and `content_id` may be absent or null."""
    part = sent_file(service, content_type=None, content_id=None)
    assert (part.get_content_disposition(), part["Content-ID"]) == ("attachment", None)
