"""What is in a message, over HTTP: each view, the frame's document, and files that are only ever saved (I1, I2, I4)."""

import base64
import re

import pytest

from postroad.model import send_request
from postroad.services import context
from tests import accepted_mail
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser
from tests.security import hostile_html

RAN = b"<script>alert(1)</script>"
HTML = "".join([*hostile_html.BY_ITSELF.values(), *hostile_html.BY_CLICK.values()]).replace(
    "OUT", "http://evil.example/"
)


async def accept(ctx: context.Context, browser: Browser, **fields: object) -> str:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    return f"/messages/{await accepted_mail.accept(ctx, browser.account_id, **fields)}"  # type: ignore[arg-type]


def file(name: str, content: bytes, kind: str) -> send_request.Attachment:
    return send_request.Attachment(name, base64.b64encode(content).decode(), kind)


async def test_the_document_of_the_frame_has_a_policy_of_its_own(ctx: context.Context, browser: Browser) -> None:
    path = await accept(ctx, browser, html=f"<p id=x>Hello</p>{HTML}")
    answer = await browser.get(f"{path}/preview/html")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == browser_client.PREVIEW_POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "x-frame-options" not in answer.headers
    assert "Hello" in answer.text
    for bad in ("<script", "<iframe", "<form", "<base", "<meta http-equiv", 'src="http', 'href="http'):
        assert bad not in answer.text.lower(), bad
    # What stands in values and between tags is only text.
    tags = re.sub(r'"[^"]*"', "", "".join(re.findall(r"<(?:[^>\"]|\"[^\"]*\")*>", answer.text)))
    assert re.findall(r"\son\w+", tags) == []


async def test_the_page_frames_the_document_without_a_single_right(ctx: context.Context, browser: Browser) -> None:
    path = await accept(ctx, browser, html=HTML)
    answer = await browser.get(path)
    assert f'<iframe sandbox src="{path}/preview/html"' in answer.text
    assert "allow-" not in answer.text
    assert "srcdoc" not in answer.text
    assert "evil.example" not in answer.text
    assert "Remote images are not loaded" in answer.text
    assert "frame-src 'self'" in answer.headers["content-security-policy"]
    assert "script-src 'self';" in answer.headers["content-security-policy"]


async def test_a_message_is_shown_in_each_view(ctx: context.Context, browser: Browser) -> None:
    path = await accept(ctx, browser, text="<b>plain</b>", html="<p>x", headers={"X-Order": "<i>7</i>"})
    assert "&lt;b&gt;plain&lt;/b&gt;" in (await browser.get(path, view="text")).text
    headers = (await browser.get(path, view="headers")).text
    assert "X-Order" in headers
    assert "&lt;i&gt;7&lt;/i&gt;" in headers
    source = (await browser.get(path, view="source")).text
    assert "MIME-Version: 1.0" in source
    assert "<iframe" not in source
    assert f'href="{path}/raw"' in source


async def test_a_view_that_a_message_does_not_have_gives_way(ctx: context.Context, browser: Browser) -> None:
    path = await accept(ctx, browser, text="only text")
    for view in ("html", "files"):
        text = (await browser.get(path, view=view)).text
        assert "<iframe" not in text
        assert "only text" in text
    assert (await browser.get(path, view="nonsense")).status_code == 400


@pytest.mark.parametrize(
    "name, kind", [("x.html", "text/html"), ("x.svg", "image/svg+xml"), ("x.pdf", "application/pdf")]
)
async def test_an_attachment_is_saved_and_never_shown(
    ctx: context.Context, browser: Browser, name: str, kind: str
) -> None:
    path = await accept(ctx, browser, attachments=(file(name, RAN, kind),))
    text = (await browser.get(path, view="files")).text
    assert name in text
    (index,) = [one.split('"')[0] for one in text.split(f'href="{path}/attachments/')[1:]]
    answer = await browser.get(f"{path}/attachments/{index}")
    assert answer.content == RAN
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'; frame-ancestors 'none'"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"


async def test_the_whole_message_is_saved_as_it_is_sent(ctx: context.Context, browser: Browser) -> None:
    path = await accept(ctx, browser, html=HTML)
    answer = await browser.get(f"{path}/raw")
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert f"{path.rpartition('/')[2]}.eml" in answer.headers["content-disposition"]
    assert answer.headers["content-security-policy"].startswith("sandbox;")
    assert b"Subject: Your order\r\n" in answer.content


@pytest.mark.parametrize("index", ["99", "-1", "1e1", "x", "00000", "%00", "%D9%A1", "0%2f.."])
async def test_an_attachment_that_is_not_there_is_nowhere(ctx: context.Context, browser: Browser, index: str) -> None:
    path = await accept(ctx, browser)
    answer = await browser.client.get(f"{path}/attachments/{index}")
    assert answer.status_code == 404
    assert answer.headers["x-request-id"] in answer.text


async def test_a_large_message_is_shown_in_part_and_saved_whole(ctx: context.Context, browser: Browser) -> None:
    path = await accept(ctx, browser, text="word " * 150_000)
    text = (await browser.get(path, view="source")).text
    assert "Only the beginning is shown" in text
    assert "only part of it is shown" in text
    assert len((await browser.get(f"{path}/raw")).content) > 700_000
