"""Remote images are fetched by the service through the guard of webhooks, within bounds, and hide the reader."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.roles import composition
from postroad.services import usage_limits
from postroad.services.messages import previews
from tests import contexts, webhook_server
from tests.contexts import clock, ctx

__all__ = ["clock", "ctx"]

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 10
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'/>"


@pytest.fixture
def settings(clean_sqlite_url: str) -> config.Settings:
    """One address of loopback is public, without TLS."""
    return contexts.load(
        clean_sqlite_url, webhooks={"allow_private": [f"{webhook_server.PUBLIC}/32"], "allow_insecure": True}
    )


@pytest_asyncio.fixture
async def images() -> AsyncIterator[webhook_server.WebhookServer]:
    async with webhook_server.running(tls=False, answer=webhook_server.ok(200, PNG)) as server:
        yield server


def shown(html: str, found: dict[str, bytes]) -> str:
    raw = b"Content-Type: text/html; charset=utf-8\r\n\r\n" + html.encode()
    return previews.html_document(previews.of_bytes(raw), remote_images=found).decode()


def test_images_are_named_by_attributes_and_by_styles() -> None:
    html = """
        <img src=" HTTPS://a.example/1.png?x=1&amp;y=2 " srcset="https://a.example/2x.png 2x">
        <td background='//a.example/2.png' style="background: url(&quot;https://a.example/3.png&quot;)">
        <style>p { background: url( 'http://a.example/4.png' ) }</style><img src="HTTPS://a.example/1.png?x=1&amp;y=2">
        <a href="https://a.example/page"><img src="data:image/png;base64,xx"><img src="cid:a"><img src="/local.png">
        <script src="https://a.example/x.js"></script><link href="https://a.example/x.css"><iframe src="https://b/">
    """
    assert previews.image_urls(html) == [
        "HTTPS://a.example/1.png?x=1&y=2",
        "https://a.example/2.png",
        "https://a.example/3.png",
        "http://a.example/4.png",
    ]
    assert len(previews.image_urls("".join(f"<img src=https://a/{number}>" for number in range(100)))) == 40


async def test_an_image_is_fetched_and_becomes_part_of_the_document(
    ctx: context.Context, images: webhook_server.WebhookServer
) -> None:
    url = images.at(images.host, "/logo a.png?to=ada#x")
    found = await previews.fetch_images(ctx, "acc_1", [url])
    assert found == {url: PNG}
    (request,) = images.requests
    assert (request.method, request.path) == ("GET", "/logo%20a.png?to=ada")
    # Nothing else: no cookie, no referrer, no language, no address of the reader.
    assert request.headers == {
        "host": f"{images.host}:{images.port}",
        "accept-encoding": "identity",
        "user-agent": "Mozilla/5.0 (compatible; ImageProxy)",
        "accept": "image/webp,image/png,image/jpeg,image/gif",
    }
    html = f"<img alt=Logo src='{url}'><p style='background:url({url})'><img src='https://other.example/x.png'>"
    document = shown(html.replace(" a.png", "%20a.png"), {url.replace(" a.png", "%20a.png"): PNG})
    assert document.count("data:image/png;base64,iVBORw0KGgp4eHh4") == 2
    assert "http://" not in document
    assert "other.example" not in document


async def test_only_images_are_shown_whatever_they_are_called(
    ctx: context.Context, images: webhook_server.WebhookServer
) -> None:
    url = images.at(images.host, "/x.png")
    for octets in (SVG, b"<html><script>", b"%PDF", b""):
        images.answer = webhook_server.ok(200, octets, "Content-Type: image/png")
        found = await previews.fetch_images(ctx, "acc_1", [url])
        assert "data:" not in shown(f"<img src='{url}'>", found)


async def test_redirects_are_followed_three_times_and_checked_each_time(
    ctx: context.Context, images: webhook_server.WebhookServer
) -> None:
    def answer(request: webhook_server.ReceivedRequest) -> bytes:
        number = int(request.path[1:])
        location = f"Location: /{number - 1}"
        return webhook_server.ok(302, b"", location) if number else webhook_server.ok(200, PNG)

    images.answer = answer
    near, far = images.at(images.host, "/3"), images.at(images.host, "/4")
    assert list(await previews.fetch_images(ctx, "acc_1", [near, far])) == [near]
    images.requests.clear()
    for target in ("https://[x", "ftp://a.example/x", "file:///etc/passwd", "http://user@a.example/"):
        images.answer = webhook_server.ok(302, b"", f"Location: {target}")
        assert await previews.fetch_images(ctx, "acc_1", [near]) == {}
    assert len(images.requests) == 4


async def test_what_cannot_be_fetched_is_left_out(ctx: context.Context, images: webhook_server.WebhookServer) -> None:
    url = images.at(images.host, "/x.png")
    for answer in (
        webhook_server.ok(404, PNG),
        webhook_server.ok(200, PNG + b"x" * previews.IMAGE_OCTETS),
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + PNG,
        b"",
    ):
        images.answer = answer
        assert await previews.fetch_images(ctx, "acc_1", [url, "https://[x", "https://"]) == {}


async def test_a_private_address_is_never_asked(clean_sqlite_url: str, clock: contexts.Clock) -> None:
    settings = contexts.load(clean_sqlite_url)
    async with webhook_server.running() as server, composition.open_context(settings, clock=clock) as ctx:
        urls = [server.at("127.0.0.2"), server.at("localhost"), server.at("[::1]"), "http://192.0.2.1/x.png"]
        assert await previews.fetch_images(ctx, "acc_1", urls) == {}
        assert server.connections == 0


async def test_the_images_of_a_message_share_a_bound(
    ctx: context.Context, images: webhook_server.WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "MAX_CONCURRENT_FETCHES", 1)
    monkeypatch.setattr(previews, "IMAGES_OCTETS", 2 * len(PNG))
    urls = [images.at(images.host, f"/{number}.png") for number in range(4)]
    assert list(await previews.fetch_images(ctx, "acc_1", urls)) == urls[:2]
    assert len(images.requests) == 2


async def test_an_account_has_only_so_many_under_way_and_a_rate(
    ctx: context.Context, images: webhook_server.WebhookServer
) -> None:
    url = images.at(images.host, "/x.png")
    limit = previews.FETCHES
    with usage_limits.acquire(ctx, limit, "acc_1"), usage_limits.acquire(ctx, limit, "acc_1"):
        with pytest.raises(errors.RateLimited):
            await previews.fetch_images(ctx, "acc_1", [url])
        assert await previews.fetch_images(ctx, "acc_2", [url]) == {url: PNG}
    burst = ctx.settings.limits.request_burst
    for _ in range(burst):
        ctx.rate_limiter.take("images acc_1", now=ctx.clock())
    images.requests.clear()
    assert await previews.fetch_images(ctx, "acc_1", [url]) == {}
    assert images.requests == []


async def test_a_silent_server_takes_no_longer_than_the_bound(
    ctx: context.Context, images: webhook_server.WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "FETCH_SECONDS", 0.2)
    images.answer = None
    urls = [images.at(images.host, f"/{number}.png") for number in range(20)]
    async with asyncio.timeout(60):
        assert await previews.fetch_images(ctx, "acc_1", urls) == {}
