"""Checks of a message: what clients do not support, what is wrong with its links, its header and its size."""

import hashlib
import threading
import tomllib
from importlib import resources

import pytest

from postroad import context, errors
from postroad.network import spamd
from postroad.protocol.text import html_usage
from postroad.services import usage_limits
from postroad.services.messages import content_checks, previews
from postroad.services.messages.content_checks import Level, Origin
from tests import accepted_mail, contexts, spamd_server

ORIGIN = Origin("bounces.example.com", "example.com")
HEADERS = (
    ("From", "Shop <shop@example.com>"),
    ("Date", "Tue, 17 Nov 2026 10:00:00 +0000"),
    ("Message-ID", "<1@example.com>"),
    ("Subject", "Hello"),
)


def message(html: str | None = "<p>Hi</p>", text: str | None = "Hi", *headers: tuple[str, str]) -> previews.Preview:
    parts = [f"Content-Type: text/{kind}\r\n\r\n{body}\r\n" for kind, body in (("plain", text), ("html", html)) if body]
    head = "".join(f"{name}: {value}\r\n" for name, value in (*HEADERS, *headers))
    body = "".join(f"--x\r\n{part}" for part in parts)
    return previews.of_bytes(f"{head}Content-Type: multipart/alternative; boundary=x\r\n\r\n{body}--x--\r\n".encode())


def check(html: str | None = "<p>Hi</p>", text: str | None = "Hi", *headers: tuple[str, str]) -> content_checks.Report:
    return content_checks.check(message(html, text, *headers), ORIGIN)


def findings(*headers: tuple[str, str], origin: Origin = ORIGIN) -> list[tuple[Level, str]]:
    return [(one.level, one.text) for one in content_checks.check_header(headers, origin)]


def problems(url: str, text: str = "Read") -> list[str]:
    return content_checks.check_links(html_usage.Link(url, text, 1)).problems


def test_the_data_of_others_is_as_the_manifest_says() -> None:
    folder = resources.files("postroad.services.messages").joinpath("caniemail")
    manifest = tomllib.loads(folder.joinpath("manifest.toml").read_text())["caniemail"]
    files = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.iterdir()
        if file.name != "manifest.toml"
    }
    assert files == manifest["sha256"]
    assert manifest["licence"] == "MIT"
    assert "Copyright (c) 2019 HTeuMeuLeu, under the MIT License" in folder.joinpath("LICENSE").read_text()


def test_what_some_clients_lack_is_listed_with_its_lines_the_rarest_first() -> None:
    found = check("<p>\n<video>\n<style>\np { display: flex; display: flex }\n</style>").features
    shown = {feature.title: feature for feature in found}
    assert shown["<video> element"].lines == [2]
    assert "Gmail, Android" in shown["<video> element"].not_supported
    assert shown["display:flex"].lines == [4]
    assert "Outlook, Windows" in shown["display:flex"].not_supported
    assert [feature.supported_percent for feature in found] == sorted(feature.supported_percent for feature in found)
    assert 0 <= shown["<video> element"].supported_percent < shown["display:flex"].supported_percent <= 100


def test_every_feature_has_a_letter_for_each_client_and_a_key_that_can_be_found() -> None:
    known = content_checks.feature_keys()
    kinds = {key.partition(":")[0] for key in known}
    assert kinds == set(
        "at attribute function image keyword link media meta property pseudo selector tag type unit".split()
    )
    assert len(known) > 300


@pytest.mark.parametrize(
    "url, problem",
    [
        ("", "Leads nowhere."),
        ("#", "Leads nowhere."),
        ("javascript:alert(1)", "Mail clients remove links that start with javascript:."),
        ("https://example.com/{{name}}", "Contains a placeholder that was not replaced."),
        ("https://example.com/%7B%7Bname%7D%7D", "Contains a placeholder that was not replaced."),
        ("/path", "Is relative. Write the whole URL, with https://."),
        ("http://example.com/", "Is not encrypted. Use https://."),
        ("https:///x", "Has no host."),
        ("https://[x/", "Is not a valid URL."),
        ("https://localhost:3000/", "Leads to a private host, which recipients cannot reach."),
        ("https://127.0.0.1/", "Leads to a private host, which recipients cannot reach."),
        ("https://[::1]/", "Leads to a private host, which recipients cannot reach."),
        ("https://shop.local/", "Leads to a private host, which recipients cannot reach."),
        ("ftp://example.com/", "Many mail clients do not open links that start with ftp:."),
    ],
)
def test_a_bad_link_has_its_problem(url: str, problem: str) -> None:
    assert problems(url) == [problem]


@pytest.mark.parametrize(
    "url, text",
    [
        ("https://example.com/", "Read"),
        ("https://mail.example.com/x", "example.com"),
        ("https://example.com/x", "https://www.example.com/other"),
        ("https://example.com/x", "See example.org for more"),
        ("mailto:a@example.com", "a@example.com"),
        ("tel:+49", ""),
        ("#top", "Up"),
    ],
)
def test_a_good_link_has_none(url: str, text: str) -> None:
    assert problems(url, text) == []


def test_a_text_that_names_another_host_is_misleading() -> None:
    assert problems("https://evil.example/x", "https://bank.example/login") == [
        "The text names bank.example, but the link leads to evil.example. Spam filters treat this as phishing."
    ]


def test_links_with_problems_come_first() -> None:
    links = check("<a href='https://a.example/'>a</a><a href='http://b.example/'>b</a>").links
    assert [one.link.text for one in links] == ["b", "a"]


def test_a_good_header_is_good() -> None:
    fields = (
        *HEADERS,
        ("DKIM-Signature", "v=1; a=rsa-sha256; d=example.com; s=x; bh=d=y"),
        ("List-Unsubscribe", "<mailto:x@example.com>, <https://example.com/u>"),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
    )
    assert findings(*fields) == [
        (Level.GOOD, "From, Date, Message-ID and Subject are present."),
        (Level.GOOD, "The DKIM signature is for example.com, which is aligned with From (example.com)."),
        (Level.GOOD, "The return path is in bounces.example.com, which is aligned with From (example.com)."),
        (Level.GOOD, "List-Unsubscribe is present, with one-click unsubscription."),
    ]


def test_a_bad_header_says_what_is_missing() -> None:
    fields = (
        ("From", "shop@example.com"),
        ("Subject", "a"),
        ("Subject", "b"),
        ("DKIM-Signature", "v=1; d=else.example"),
    )
    found = findings(*fields, origin=Origin("bounces.else.example"))
    assert found == [
        (Level.BAD, "Date is missing."),
        (Level.BAD, "Message-ID is missing."),
        (Level.BAD, "Subject occurs 2 times; it must occur once."),
        (Level.BAD, "The DKIM signature is for else.example, which is not aligned with From (example.com)."),
        (
            Level.WARN,
            (
                "The return path is in bounces.else.example, which is not aligned with From (example.com). "
                "SPF then does not count for DMARC; an aligned DKIM signature is enough."
            ),
        ),
        (
            Level.WARN,
            (
                "List-Unsubscribe is missing. Gmail and Yahoo require it of newsletters and other bulk mail; "
                "receipts and login codes do not need it."
            ),
        ),
    ]
    unsigned = findings(*HEADERS, ("List-Unsubscribe", "<mailto:x@example.com>"), origin=Origin(""))
    assert (Level.BAD, "The message has no DKIM signature. Gmail and Yahoo require one.") in unsigned
    assert (Level.WARN, "The return path is empty, as in delivery reports.") in unsigned
    assert "no https:// URL" in unsigned[-1][1]
    listed = findings(*HEADERS, ("List-Unsubscribe", "<https://example.com/u>"))
    assert "List-Unsubscribe-Post: List-Unsubscribe=One-Click is missing" in listed[-1][1]
    assert (Level.BAD, "From has no address, so nothing can be aligned with it.") in findings(("From", "x"))


def test_mail_that_gmail_clips_is_found() -> None:
    clipped = check(f"<p>{'x' * 105_000}</p>").content[0]
    assert (clipped.level, clipped.text) == (Level.BAD, "The HTML is 103 KB. Gmail clips it after 102 KB.")
    whole = check(f"<p>{'x' * 51_100}</p>").content[0]
    assert (whole.level, whole.text) == (Level.GOOD, "The HTML is 50 KB; Gmail clips it after 102 KB.")


def test_what_the_content_lacks_is_said() -> None:
    texts = [
        one.text for one in check("<img src=x><img src=y alt=''>", None, ("List-Unsubscribe", "<https://x/>")).content
    ]
    assert "There is no text part. Spam filters prefer mail with one, and some people read it." in texts
    assert "1 of 2 images have no alt text, which is shown while images are blocked." in texts
    assert "List-Unsubscribe is present, but no link in the HTML says how to unsubscribe." in texts
    good = check("<a href='https://example.com/u'>Unsubscribe</a>", "Hi", ("List-Unsubscribe", "<https://x/>"))
    assert [one.level for one in good.content] == [Level.GOOD, Level.GOOD]
    text_only = check(None)
    assert (text_only.has_html, text_only.features, text_only.links) == (False, [], [])


async def test_a_message_knows_how_it_is_sent(ctx: context.Context, shop: str) -> None:
    message_id = await accepted_mail.accept(ctx, shop)
    assert await content_checks.origin_of(ctx, shop, message_id) == Origin("example.com", "example.com")
    with pytest.raises(errors.NotFound):
        await content_checks.origin_of(ctx, "acc_0", message_id)


async def test_a_hostile_message_is_checked_in_a_thread_in_part_and_with_a_small_result(
    ctx: context.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[tuple[int, str]] = []
    scan = html_usage.scan

    def noted(source: str, known: frozenset[str]) -> html_usage.Usage:
        scanned.append((len(source), threading.current_thread().name))
        return scan(source, known)

    monkeypatch.setattr(html_usage, "scan", noted)
    hostile = message("<a href=http://x>{{</a><style>p{gap:1vw" * 300_000)
    assert hostile.size > 10_000_000
    report = await content_checks.run(ctx, "acc_1", hostile, ORIGIN)
    ((length, thread),) = scanned
    assert length == 512 * 1024
    assert thread.startswith("work")
    assert report.truncated
    assert len(report.links) <= 200
    assert len(report.features) < 100


async def checked_by(ctx: context.Context, address: str, preview: previews.Preview) -> object:
    asking = contexts.with_settings(ctx, "dashboard", spamd=address)
    return (await content_checks.run(asking, "acc_1", preview, ORIGIN)).spam


async def test_spamassassin_is_asked_if_the_operator_has_one(ctx: context.Context) -> None:
    assert await checked_by(ctx, "", message()) is None
    async with spamd_server.running(spamd_server.SPAM) as (address, requests):
        assert await checked_by(ctx, address, message()) == spamd_server.VERDICT
        assert b"From: Shop <shop@example.com>\r\n" in requests[0]
        large = await checked_by(ctx, address, message(text="x" * 512 * 1024))
        assert large == spamd.Failure("the message is larger than 512 KiB")
        limit = content_checks.SPAM_CHECKS
        with usage_limits.acquire(ctx, limit, "acc_1"), usage_limits.acquire(ctx, limit, "acc_1"):
            assert isinstance(await checked_by(ctx, address, message()), spamd.Failure)
        assert len(requests) == 1
