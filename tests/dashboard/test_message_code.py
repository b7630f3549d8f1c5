"""`/messages/{id}/code`: a message as the request that sends it again."""

import html
import json
import re
import shlex

from postroad import context
from postroad.model.mail import send_request
from tests import accepted_mail
from tests.dashboard.browser_client import Browser


def curl(text: str) -> list[str]:
    """The words of the first snippet, as a shell reads them."""
    (code, *_) = re.findall(r"<pre tabindex=\"0\"><code>(.*?)</code>", text, re.DOTALL)
    return shlex.split(html.unescape(code).replace("\\\n", " "))


async def test_a_message_becomes_a_command_with_all_of_it_and_a_placeholder_for_the_key(
    ctx: context.Context, browser: Browser, stranger: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(
        ctx,
        browser.account_id,
        sender="Shop <shop@example.com>",
        to=("Ada <ada@example.net>", "bob@example.net"),
        bcc=("eve@example.net",),
        reply_to="help@example.com",
        subject="It's $(here)",
        text="one\ntwo 'three'\n\u202e",
        html="<p>one</p>",
        headers={"X-Order": "7"},
        tags=("orders",),
        metadata={"order": "7"},
        attachments=(
            send_request.Attachment("small.txt", "eHg=", "text/plain", None),
            send_request.Attachment("large.bin", "eHh4" * 2000, "application/octet-stream", None),
        ),
    )
    text = (await browser.get(f"/messages/{message_id}/code")).text
    words = curl(text)
    assert words[:2] == ["curl", "http://postroad.test/emails"]
    assert "Authorization: Bearer YOUR_API_KEY" in words
    assert json.loads(words[-1]) == {
        "from": "Shop <shop@example.com>",
        "to": ["Ada <ada@example.net>", "bob@example.net"],
        "bcc": ["eve@example.net"],
        "reply_to": "help@example.com",
        "subject": "It's $(here)",
        "text": "one\ntwo 'three'\n\ufffd",
        "html": "<p>one</p>",
        "headers": {"X-Order": "7"},
        "tags": ["orders"],
        "metadata": {"order": "7"},
        "attachments": [
            {"filename": "small.txt", "content": "eHg=", "content_type": "text/plain"},
            {
                "filename": "large.bin",
                "content": "BASE64_OF_large.bin",
                "content_type": "application/octet-stream",
            },
        ],
    }
    assert "small.txt (2 B), large.bin (5.9 KiB)" in text
    assert "YOUR_TEXT" not in text
    assert f"/messages/{message_id}/code" in (await browser.get(f"/messages/{message_id}")).text
    assert (await stranger.get(f"/messages/{message_id}/code")).status_code == 404


async def test_a_long_text_is_not_repeated_in_every_language(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id, text="word " * 4000, html="<p>short</p>")
    text = (await browser.get(f"/messages/{message_id}/code")).text
    assert json.loads(curl(text)[-1])["text"] == "YOUR_TEXT"
    assert json.loads(curl(text)[-1])["html"].startswith("<p>short</p>")
    assert "The content is too long" in text
