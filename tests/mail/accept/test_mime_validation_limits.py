"""The limits of a finished message: those of a send request hold for custom fields and files that come over SMTP."""

import pytest

from postroad import errors
from postroad.mail.accept import mime_validation
from postroad.model.mail import statuses
from tests.services.mime_messages import plain


def refusal(message: statuses.RawMessage) -> tuple[str, str]:
    """The code word and the text with which the message is refused."""
    with pytest.raises(errors.PostroadError) as refused:
        mime_validation.check(message)
    return refused.value.code, refused.value.message


def test_fifty_custom_fields_are_allowed_and_no_more() -> None:
    others = ["Received: by a; b"] * 20 + ["DKIM-Signature: v=1"] * 20 + ["Content-Language: de"] * 20
    custom = [f"X-{number % 10}: x" for number in range(51)]
    mime_validation.check(plain(*custom[:50], *others))
    code, text = refusal(plain(*custom, *others))
    assert (code, text) == ("invalid_request", "headers: 51 custom headers; at most 50 are allowed")


def test_a_field_name_has_at_most_76_characters() -> None:
    mime_validation.check(plain("X" * 76 + ": x"))
    assert refusal(plain("X" * 77 + ": x"))[1] == "X" * 76 + "…: a field name has at most 76 characters"


MULTIPART = ("MIME-Version: 1.0", 'Content-Type: multipart/mixed; boundary="b"')
FILE = 'Content-Disposition: attachment; filename="a.txt"\r\n\r\nHi'
TEXT = "Content-Type: text/plain\r\n\r\nHi"


def multipart(*parts: str, boundary: str = "b") -> str:
    return "".join(f"--{boundary}\r\n{part}\r\n" for part in parts) + f"--{boundary}--\r\n"


@pytest.mark.parametrize(
    "parts, files",
    [
        ([FILE] * 21, 21),
        ([TEXT, *[FILE] * 30], 30),
        (["Content-Type: image/png\r\n\r\nx"] * 21, 21),
        (["Content-Type: text/plain; name=a.txt\r\n\r\nx"] * 21, 21),
        (["Content-Disposition: something\r\n\r\nx"] * 21, 21),
        # A nested message is one file, whatever it holds.
        (["Content-Type: message/rfc822\r\n\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"] * 21, 21),
        ([TEXT, 'Content-Type: multipart/mixed; boundary="c"\r\n\r\n' + multipart(*[FILE] * 21, boundary="c")], 21),
    ],
)
def test_the_21st_file_is_refused_wherever_it_is(parts: list[str], files: int) -> None:
    code, text = refusal(plain(*MULTIPART, body=multipart(*parts)))
    assert (code, text) == ("invalid_request", f"attachments: {files} files; at most 20 are allowed")


@pytest.mark.parametrize(
    "body",
    [
        multipart(TEXT, *[FILE] * 20),
        multipart(*[TEXT] * 40, *[FILE] * 20),
        multipart(*["Content-Type: text/html\r\nContent-Disposition: inline\r\n\r\n<p>"] * 40),
        multipart(*["Content-Type: multipart/mixed; boundary=c\r\n\r\n"] * 40),
        multipart("\r\n" + "-- a comment\r\n" * 40, *[FILE] * 20),
        multipart(FILE) + multipart(*[FILE] * 40),  # the rest is an epilogue
    ],
)
def test_twenty_files_are_allowed_and_text_is_none(body: str) -> None:
    mime_validation.check(plain(*MULTIPART, body=body))


def test_a_text_with_lines_like_delimiters_is_one_text() -> None:
    mime_validation.check(plain(body="-- a comment\r\n" * 1000))


@pytest.mark.parametrize(
    "field",
    ['Content-Type: text/plain;\r\n name="{}"', 'content-disposition: attachment;\r\n filename="{}"'],
)
def test_a_file_name_has_at_most_255_characters(field: str) -> None:
    """In the header of the message, of the first part, and of one whose header does not end."""
    for size, start in ((255, None), (256, "attachments: the file name of part 1 has 256 characters; at most 255")):
        named = field.format("x" * size)
        bodies = [multipart(f"{named}\r\n\r\nHi"), f"--b\r\n{named}", f"Preamble\r\n{multipart(named)}"]
        for message in (plain(named), *(plain(*MULTIPART, body=body) for body in bodies)):
            if start is None:
                mime_validation.check(message)
            else:
                assert refusal(message)[1].startswith(start)
