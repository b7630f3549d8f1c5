"""People see what is in a message of their own account: text, HTML, files and bytes, all of it made harmless."""

import base64
import email.message
import email.policy
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad import context, errors
from postroad.model.mail import send_request
from postroad.protocol.mime import preview_parser
from postroad.services.messages import previews
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 10
WEBP = b"RIFF\x00\x00\x00\x00WEBPVP8 "


def built(*, html: str = "<p>Hi</p>", images: dict[str, bytes] | None = None) -> bytes:
    """A message as other programs write it."""
    message = email.message.EmailMessage(policy=email.policy.SMTP)
    message["Subject"] = "Grüße"
    message.set_content("Hello\n")
    message.add_alternative(html, subtype="html")
    for name, octets in (images or {}).items():
        part = message.get_payload(1)
        assert isinstance(part, email.message.EmailMessage)
        part.add_related(octets, maintype="image", subtype="png", cid=f"<{name}>")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="../Räch nung.pdf")
    return message.as_bytes()


def shown(html: str, images: dict[str, bytes]) -> str:
    return previews.html_document(previews.of_bytes(built(html=html, images=images))).decode()


def uri(octets: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(octets).decode()}"


def test_a_message_is_shown_with_its_text_html_and_files() -> None:
    raw = built(images={"logo@x": PNG})
    preview = previews.of_bytes(raw)
    assert ("Subject", "Grüße") in preview.headers
    assert (preview.text, preview.html) == ("Hello\n", "<p>Hi</p>\n")
    assert (preview.size, preview.truncated) == (len(raw), False)
    assert preview.attachments == [
        previews.Attachment(
            index=2, filename="part-1.2.2.png", content_type="image/png", size=18, content_id="logo@x", inline=True
        ),
        previews.Attachment(
            index=3, filename="Räch nung.pdf", content_type="application/pdf", size=4, content_id="", inline=False
        ),
    ]


@pytest.mark.parametrize(
    "field", [b"Content-Disposition: attachment", b"Content-Type: text/plain; name=a.txt", b"Content-Disposition: x"]
)
def test_a_text_that_is_a_file_is_not_shown(field: bytes) -> None:
    preview = previews.of_bytes(field + b"\r\n\r\nx")
    assert (preview.text, preview.html) == (None, None)
    assert [one.index for one in preview.attachments] == [0]


def test_only_the_first_text_is_shown_and_the_others_are_files() -> None:
    parts = b"".join(b"--b\r\n\r\n%d\r\n" % number for number in range(3))
    preview = previews.of_bytes(b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + parts)
    assert preview.text == "0"
    assert [one.filename for one in preview.attachments] == ["part-2.txt", "part-3.txt"]


def test_a_long_text_is_cut() -> None:
    preview = previews.of_bytes(b"\r\n" + b"x" * ((512 * 1024) + 1))
    assert preview.text == "x" * (512 * 1024)
    assert preview.truncated


def test_images_of_the_message_are_shown_by_what_they_are() -> None:
    images = {"p": PNG, "w": WEBP, "g": b"GIF89a;", "j": b"\xff\xd8\xff\xe0", "s": b"<svg onload=x>", "h": b"<html>"}
    html = shown("".join(f"<img src=cid:{name}>" for name in images), images)
    assert html.count("<img src=") == 4
    for octets, kind in [(PNG, "png"), (WEBP, "webp"), (b"GIF89a;", "gif"), (b"\xff\xd8\xff\xe0", "jpeg")]:
        assert f'<img src="{uri(octets, f"image/{kind}")}">' in html


def test_images_have_a_size_and_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previews, "IMAGE_OCTETS", 100)
    monkeypatch.setattr(previews, "IMAGES_OCTETS", 250)
    large, small = PNG.ljust(101), PNG.ljust(100)
    html = shown("<img src=cid:l>" + "<img src=cid:s>" * 5, {"l": large, "s": small})
    assert uri(large) not in html
    assert html.count(uri(small)) == 2


def test_a_message_without_html_has_an_empty_document() -> None:
    assert b"<p" not in previews.html_document(previews.of_bytes(b"\r\n<p>text"))


@pytest.mark.parametrize(
    "name", ["../../etc/cron.d/x", "C:\\x", "a\0\u202eb", "x" * 10_000, 'q"uote', "\r\nSet-Cookie: a"]
)
def test_a_download_is_saved_under_a_harmless_name(name: str) -> None:
    headers = dict(previews.download_headers(name))
    assert headers["Content-Disposition"].startswith("attachment; ")
    assert headers["Content-Disposition"].isascii()
    assert headers["Content-Disposition"].isprintable()
    assert headers["Content-Security-Policy"] == "sandbox; default-src 'none'; frame-ancestors 'none'"


def test_a_part_is_downloaded_as_octets() -> None:
    raw = built()
    assert previews.attachment_of(raw, 2) == previews.Download("Räch nung.pdf", "application/octet-stream", b"%PDF")
    html = previews.attachment_of(raw, 1)
    assert (html.filename, html.content_type) == ("part-1.2.html", "application/octet-stream")
    for index in (-1, 3, 10**9):
        with pytest.raises(errors.NotFound, match="no such attachment"):
            previews.attachment_of(raw, index)


def test_the_source_is_text_with_pictures_of_what_is_not_seen() -> None:
    assert previews.source_text(b"A: b\r\n\tc\0\x1b\x7f\r \xff\xc3\xbc") == previews.Source(
        "A: b\n\tc\u2400\u241b\u2421\u240d \ufffdü", cut=False
    )
    assert previews.source_text("\u202e\u2066\u0085".encode()).text == "\ufffd" * 3
    long = previews.source_text(b"x" * ((256 * 1024) + 1))
    assert (len(long.text), long.cut) == (256 * 1024, True)


@given(st.binary(max_size=300), st.sampled_from([b"", b"Content-Type: text/html\r\n\r\n", b"\r\n"]))
def test_no_octets_make_a_preview_fail(octets: bytes, head: bytes) -> None:
    preview = previews.of_bytes(head + octets)
    assert previews.html_document(preview).decode()
    previews.source_text(head + octets).text.encode()
    for index in range(len(preview.reading.parts)):
        previews.download_headers(previews.attachment_of(head + octets, index).filename)


async def test_html_that_is_no_message_yet_is_shown_by_the_same_guards(
    ctx: context.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    html = '<p>x</p><script>y()</script><img src="cid:a"><a href="https://evil.example">z</a>'
    shown = await previews.of_html(ctx, "acc_1", html)
    assert b"<p>x</p>" in shown
    assert b"y()" not in shown
    assert b" href=" not in shown
    assert b"cid:" not in shown
    monkeypatch.setattr(previews, "TEXT_CHARACTERS", 3)
    assert (await previews.of_html(ctx, "acc_1", "abcdef")).endswith(b"abc")


async def test_a_message_of_the_account_is_shown(ctx: context.Context, shop: str) -> None:
    content = base64.b64encode(b"file").decode()
    message_id = await accepted_mail.accept(
        ctx, shop, html="<b>bold</b>", attachments=(send_request.Attachment("a.txt", content),)
    )
    preview = await previews.of_message(ctx, shop, message_id)
    assert [one.filename for one in preview.attachments] == ["a.txt"]
    assert b"<b>bold</b>" in previews.html_document(preview)


async def test_a_message_is_read_beside_the_event_loop_however_small(
    ctx: context.Context, account: stored_accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[threading.Thread] = []
    read = preview_parser.read

    def noted(content: bytes) -> preview_parser.ParsedMessage:
        readers.append(threading.current_thread())
        return read(content)

    monkeypatch.setattr(preview_parser, "read", noted)
    await accepted_mail.allow_sending(ctx, account.id)
    content = base64.b64encode(b"x" * (64 * 1024)).decode()
    large = await accepted_mail.accept(ctx, account.id, attachments=(send_request.Attachment("a.txt", content),))
    assert (await previews.of_message(ctx, account.id, large)).attachments[0].size == 64 * 1024
    await previews.of_message(ctx, account.id, await accepted_mail.accept(ctx, account.id))
    assert threading.main_thread() not in readers
    assert len(readers) == 2
