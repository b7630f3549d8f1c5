"""What is in a message, over HTTP: each view, the frame's document, and files that are only ever saved (I1, I2, I4)."""

import base64
import dataclasses
import re

import msgspec
import pytest

from postroad import config, context
from postroad.dashboard.framework import site as sites
from postroad.model.mail import send_request
from postroad.model.people import callers
from postroad.storage.people import accounts
from tests import accepted_mail, contexts, spamd_server, webhook_server
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser
from tests.security import hostile_html

RAN = b"<script>alert(1)</script>"
HTML = "".join([*hostile_html.BY_ITSELF.values(), *hostile_html.BY_CLICK.values()]).replace(
    "OUT", "http://evil.example/"
)


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    """Images may be fetched from one address of loopback, without TLS."""
    overrides = {
        "database": {"url": database_url},
        "security": {"installation_key": contexts.SECRET_KEY},
        "warmup": {"enabled": False},
        "webhooks": {"allow_private": [f"{webhook_server.PUBLIC}/32"], "allow_insecure": True},
    }
    return config.load(environment={}, overrides=overrides)


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


async def test_the_html_is_shown_on_a_phone_and_in_the_dark(ctx: context.Context, browser: Browser) -> None:
    path = await accept(ctx, browser, html="<style>@media (prefers-color-scheme: dark){p{color:red}}</style><p>x")
    text = (await browser.get(path)).text
    assert '<div class="preview-frame desktop light"' in text
    assert f'href="{path}?view=html&amp;width=phone#preview"' in text
    phone = (await browser.get(path, view="html", width="phone")).text
    assert '<div class="preview-frame phone light"' in phone
    assert f'href="{path}?view=html&amp;width=phone&amp;scheme=dark#preview"' in phone
    dark = (await browser.get(path, scheme="dark", view="html", width="phone")).text
    assert '<div class="preview-frame phone dark"' in dark
    assert f'<iframe sandbox src="{path}/preview/html?scheme=dark"' in dark
    assert "Clients that recolor mail themselves, such as Gmail and Outlook, look different." in dark
    document = await browser.get(f"{path}/preview/html", scheme="dark")
    assert "@media (min-width:0){p{color:red}}" in document.text
    assert document.headers["content-security-policy"] == browser_client.PREVIEW_POLICY
    assert "@media (max-width:0){p{color:red}}" in (await browser.get(f"{path}/preview/html")).text
    assert (await browser.get(f"{path}/preview/html", scheme="blue")).status_code == 400


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


PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 10


async def test_remote_images_are_fetched_when_asked_and_only_those_of_the_message(
    ctx: context.Context, browser: Browser, stranger: Browser
) -> None:
    async with webhook_server.running(tls=False, answer=webhook_server.ok(200, PNG)) as images:
        url = images.at(images.host, "/logo.png")
        path = await accept(ctx, browser, html=f'<img src="{url}"><p>x')
        text = (await browser.get(path)).text
        assert f'href="{path}?view=html&amp;images=true#preview">Show remote images</a>' in text
        assert "1 image is on other servers" in text
        assert "data:" not in (await browser.get(f"{path}/preview/html")).text
        assert images.requests == []
        with_images = (await browser.get(path, view="html", images="true", scheme="dark")).text
        assert f'<iframe sandbox src="{path}/preview/html?scheme=dark&amp;images=true"' in with_images
        assert f'href="{path}?view=html&amp;scheme=dark#preview">Hide remote images</a>' in with_images
        # The page asks nobody, only the document of its frame.
        assert images.requests == []
        assert (await stranger.get(f"{path}/preview/html", images="true")).status_code == 404
        assert images.requests == []
        document = await browser.get(f"{path}/preview/html", images="true")
        assert 'src="data:image/png;base64,iVBORw0KGgp4eHh4' in document.text
        assert document.headers["content-security-policy"] == browser_client.PREVIEW_POLICY
        assert [one.path for one in images.requests] == ["/logo.png"]


async def test_an_installation_can_do_without_remote_images(
    ctx: context.Context, browser: Browser, site: sites.Site, mine: accounts.Account
) -> None:
    path = await accept(ctx, browser, html='<img src="https://images.example/logo.png"><p>x')
    assert "Show remote images" in (await browser.get(path)).text
    dashboard = msgspec.structs.replace(ctx.settings.dashboard, remote_images=False)
    without = dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, dashboard=dashboard))
    user = await browser_client.person(without, mine.id, "other@mine.example", callers.Role.READ_ONLY)
    async with browser_client.open_browser(without, browser_client.serve(without, site), user) as reader:
        text = (await reader.get(path, images="true")).text
        assert "remote images</a>" not in text
        assert "Remote images are not loaded" in text
        assert "data:" not in (await reader.get(f"{path}/preview/html", images="true")).text


async def test_mail_without_remote_images_offers_none(ctx: context.Context, browser: Browser) -> None:
    path = await accept(ctx, browser, html='<img src="cid:x"><a href="https://example.com/">x')
    assert "remote images</a>" not in (await browser.get(path, images="true")).text


async def test_a_message_is_checked(ctx: context.Context, browser: Browser) -> None:
    html = '<p style="display: flex"><a href="http://evil.example/<b>">bank.example</a><img src="cid:x">'
    path = await accept(ctx, browser, html=html, text="Hi")
    assert f'href="{path}?view=checks#preview">Checks</a>' in (await browser.get(path)).text
    text = (await browser.get(path, view="checks")).text
    assert "It is signed when it is sent, if the domain is registered." in text
    assert "List-Unsubscribe is missing." in text
    assert "Gmail clips it after 102 KB." in text
    assert "1 of 1 images have no alt text" in text
    assert "http://evil.example/&lt;b&gt;" in text
    assert "The text names bank.example, but the link leads to evil.example." in text
    assert "display:flex" in text
    assert "Outlook, Windows" in text
    assert "<iframe" not in text


async def test_mail_without_html_is_checked_too(ctx: context.Context, browser: Browser) -> None:
    path = await accept(ctx, browser, text="Hi")
    text = (await browser.get(path, view="checks")).text
    assert "The message has a text part." in text
    assert "HTML support" not in text


async def test_the_score_of_spamassassin_is_shown(
    ctx: context.Context, browser: Browser, site: sites.Site, mine: accounts.Account
) -> None:
    path = await accept(ctx, browser, text="Buy now")
    assert "SpamAssassin" not in (await browser.get(path, view="checks")).text
    user = await browser_client.person(ctx, mine.id, "other@mine.example", callers.Role.READ_ONLY)
    async with spamd_server.running(spamd_server.SPAM) as (address, requests):
        dashboard = msgspec.structs.replace(ctx.settings.dashboard, spamd=address)
        asking = dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, dashboard=dashboard))
        async with browser_client.open_browser(asking, browser_client.serve(asking, site), user) as reader:
            text = (await reader.get(path, view="checks")).text
            assert "<strong>6.5</strong> of 5.0 points: spam." in text
            assert "6.5 GTUBE" in text
            await reader.get(path)
            assert len(requests) == 1
    async with browser_client.open_browser(asking, browser_client.serve(asking, site), user) as reader:
        assert "Not checked: " in (await reader.get(path, view="checks")).text
