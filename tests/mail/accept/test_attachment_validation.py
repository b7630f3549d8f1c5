"""The rules of attachments: names that are only names, types that are only types, content that is base64 and fits."""

import base64

import pytest

from postroad import errors
from postroad.mail.accept import validation
from postroad.model.mail import send_request
from postroad.protocol.mime import builder

LINE_BREAKS = ["\r\nBcc: eve@example.net", "\n", "\r", "\0", "\x0b", "\x1c", "\x85", "\u2028", "\u2029"]
ENCODED_WORD = "=?utf-8?q?=0D=0ABcc:_eve?="
MEBIBYTE = 1024 * 1024


def file(
    filename: str = "a.txt", content: str = "QQ==", content_type: str | None = None, content_id: str | None = None
) -> send_request.Attachment:
    return send_request.Attachment(filename, content, content_type, content_id)


def check(*files: send_request.Attachment) -> tuple[builder.Attachment, ...]:
    return validation.check_attachments(files)


def refusal(*files: send_request.Attachment) -> str:
    with pytest.raises(errors.InvalidRequest) as refused:
        check(*files)
    return refused.value.message


def test_20_files_pass_and_one_more_does_not() -> None:
    assert len(check(*[file()] * 20)) == 20
    assert refusal(*[file()] * 21) == "attachments: 21 files; at most 20 are allowed"


@pytest.mark.parametrize(
    "name", ["a.txt", "x", "x" * 255, "Rechnung März.pdf", "請求書.pdf", 'say "hi".txt', ".profile"]
)
def test_a_file_name_is_kept_as_given(name: str) -> None:
    assert check(file(name))[0].filename == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 256,
        "../../etc/cron.d/x",
        "/etc/passwd",
        "a/b",
        "C:\\x",
        "..",
        ".",
        "a\tb",
        "\x7f",
        "gpj.\u202eexe",
        "\udcff",
        *(f"a{evil}.txt" for evil in LINE_BREAKS),
        ENCODED_WORD,
    ],
)
def test_what_is_not_the_plain_name_of_a_file_is_refused(name: str) -> None:
    assert refusal(file(), file(name)).startswith("attachments[1].filename: ")


@pytest.mark.parametrize(
    "text, octets",
    [
        ("", b""),
        ("QQ==", b"A"),
        ("QUI=", b"AB"),
        ("QUJD", b"ABC"),
        ("QU\r\nJD\n", b"ABC"),
        ("+/+/", b"\xfb\xff\xbf"),
    ],
)
def test_content_is_decoded(text: str, octets: bytes) -> None:
    assert check(file(content=text))[0].content == octets


@pytest.mark.parametrize(
    "text", ["Q", "QQ", "QQ=", "QQ===", "Q=Q=", "QQ==QQ==", "QQ ==", "Q-_Q", "é", "QQ==\0", "\udcff"]
)
def test_content_that_is_not_base64_is_refused(text: str) -> None:
    assert refusal(file(content=text)).startswith("attachments[0].content: ")


@pytest.mark.parametrize(
    "name, kind",
    [
        ("a.txt", "text/plain"),
        ("a.PDF", "application/pdf"),
        ("photo.jpeg", "image/jpeg"),
        ("a.unknown-extension", "application/octet-stream"),
        ("README", "application/octet-stream"),
        ("mail.eml", "message/rfc822"),
    ],
)
def test_a_type_is_derived_from_the_extension(name: str, kind: str) -> None:
    assert check(file(name))[0].content_type == kind


@pytest.mark.parametrize("kind", ["image/png", "text/csv; charset=utf-8", 'text/plain; name="a b"', "X-a/x.y+z"])
def test_a_given_type_wins(kind: str) -> None:
    assert check(file("a.pdf", content_type=kind))[0].content_type == kind


def encoded(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


@pytest.mark.parametrize(
    "octets",
    ["Subject: Grüße\r\n\r\n".encode(), b"Subject: x\r\n\r\n\0", b"Subject: x\r\n\r\n" + b"x" * 999],
)
def test_a_message_that_needs_an_encoding_is_not_sent_as_one(octets: bytes) -> None:
    """No encoding is allowed for it; a type that only the file name suggests gives way."""
    for kind in ("message/rfc822", "Message/RFC822; a=b"):
        assert refusal(file("mail.eml", encoded(octets), kind)) == (
            "attachments[0].content_type: a message/rfc822 file must be ASCII with lines of at most 998 characters, "
            "because mail allows no encoding for it; use 'application/octet-stream'"
        )
    (checked,) = check(file("mail.eml", encoded(octets)))
    assert (checked.content_type, checked.content) == ("application/octet-stream", octets)


def test_a_message_in_ascii_may_be_attached() -> None:
    octets = b"Subject: x\n\n" + b"x" * 998
    for kind in (None, "message/rfc822"):
        (checked,) = check(file("mail.eml", encoded(octets), kind))
        assert (checked.content_type, checked.content) == ("message/rfc822", octets)


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text",
        "text/",
        "/plain",
        "text/plain;",
        "text/plain; charset",
        "text /plain",
        "multipart/mixed; boundary=x",
        "message/partial",
        "text/plain; a=" + 255 * "x",
        *(f"text/plain{evil}" for evil in LINE_BREAKS),
        *(f'text/plain; name="{evil}"' for evil in LINE_BREAKS),
        f"text/plain; a={ENCODED_WORD}",
        "text/plain; a=é",
    ],
)
def test_what_is_not_a_type_of_a_file_is_refused(kind: str) -> None:
    assert refusal(file(content_type=kind)).startswith("attachments[0].content_type: ")


@pytest.mark.parametrize("content_id", ["logo", "logo@example.com", "a.b_c-d", "x" * 128, "../../routes.js"])
def test_a_content_id_is_a_word(content_id: str) -> None:
    assert check(file(content_id=content_id))[0].content_id == content_id


@pytest.mark.parametrize(
    "content_id", ["", "x" * 129, "<logo>", "a b", "é", "a>", *(f"a{evil}" for evil in LINE_BREAKS), ENCODED_WORD]
)
def test_what_is_not_a_word_is_no_content_id(content_id: str) -> None:
    assert refusal(file(), file(content_id=content_id)).startswith("attachments[1].content_id: ")


def test_content_ids_are_unique_within_a_message() -> None:
    check(file(content_id="a"), file(content_id="b"), file(), file())
    assert refusal(file(content_id="a"), file(), file(content_id="a")).startswith("attachments[2].content_id: 'a'")


def test_files_that_cannot_fit_into_a_message_are_refused_before_they_are_decoded() -> None:
    half = "A" * (5 * MEBIBYTE)
    with pytest.raises(errors.PayloadTooLarge, match="attachments"):
        check(file(content=half), file(content=half + "!!!!"))


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_line_breaks_do_not_count_towards_the_size(line_end: str) -> None:
    # In lines of 64, as OpenSSL writes them, this text is longer than 10 MiB; what it stands for fits into a message.
    octets = bytes(7 * MEBIBYTE + 300_000)
    encoded = base64.b64encode(octets).decode()
    wrapped = line_end.join(encoded[start : start + 64] for start in range(0, len(encoded), 64))
    if line_end == "\r\n":
        assert len(wrapped) > 10 * MEBIBYTE
    assert len(check(file(content=wrapped))[0].content) == len(octets)
