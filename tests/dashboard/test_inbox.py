"""The page of the simulator's inbox, in `postroad dev`."""

import dataclasses
import re

from postroad import context
from postroad.dashboard import application
from postroad.dashboard.framework import site as sites
from postroad.mail import return_path
from postroad.protocol.smtp import values
from postroad.services.messages import dev_inbox, lookup
from tests import accepted_mail, contexts
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser


def receive(mail: dev_inbox.Inbox, subject: str, *to: str, body: str = "Hello") -> str:
    """A message to these addresses; its id."""
    head = f"From: =?utf-8?q?Corner_Sh=C3=B6p?= <shop@example.com>\r\nSubject: {subject}\r\nContent-Type: text/html"
    content = f"{head}\r\n\r\n{body}\r\n".encode()
    return mail.add(values.MailTransaction("bounces@example.com", to or ("ada@example.net",), (content,))).id


def listed(text: str) -> list[str]:
    return re.findall(r'href="/inbox/(inb_[0-9a-f]+)"', text)


async def test_an_empty_inbox_teaches(browser: Browser) -> None:
    text = (await browser.get("/inbox")).text
    assert "The inbox is empty" in text
    assert "bounce@example.net" in text
    assert "/inbox/clear" not in text


async def test_the_newest_mail_comes_first_and_is_found_by_its_recipient(
    browser: Browser, mail: dev_inbox.Inbox, clock: contexts.Clock
) -> None:
    first = receive(mail, "First", "ada@example.net", "bob@example.net")
    clock.now += contexts.SECOND
    second = receive(mail, "Second", "Cee@example.net")
    text = (await browser.get("/inbox")).text
    assert listed(text) == [second, first]
    assert "ada@example.net +1" in text
    assert 'id="received" data-live' in text
    assert listed((await browser.get("/inbox", search=" BOB@example.net ")).text) == [first]
    assert listed((await browser.get("/inbox", search="first ADA")).text) == [first]
    assert listed((await browser.get("/inbox", search="second ada")).text) == []
    assert listed((await browser.get("/inbox", search="corner")).text) == [second, first]
    nothing = (await browser.get("/inbox", search="<script>alert(1)</script>")).text
    assert "No mail matches &lt;script&gt;" in nothing


async def test_the_list_comes_in_parts(browser: Browser, mail: dev_inbox.Inbox, clock: contexts.Clock) -> None:
    ids = []
    for number in range(50 + 1):
        clock.now += contexts.SECOND
        ids.append(receive(mail, f"Number {number}"))
    first = (await browser.get("/inbox", search="ada@example.net")).text
    assert listed(first) == ids[:0:-1]
    (following,) = re.findall(r'<nav class="more"[^>]*><a [^>]*href="([^"]*)"', first)
    assert listed((await browser.client.get(following.replace("&amp;", "&"))).text) == [ids[0]]
    assert "No older messages" in (await browser.get("/inbox", before="inb_0")).text


async def test_a_message_shows_its_envelope_and_what_is_in_it(browser: Browser, mail: dev_inbox.Inbox) -> None:
    received_id = receive(mail, sample_account.HOSTILE, "x<y>@example.net", body=sample_account.HOSTILE)
    text = (await browser.get(f"/inbox/{received_id}")).text
    assert "shop@example.com" in text
    assert "x&lt;y&gt;@example.net" in text
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert f'<iframe sandbox src="/inbox/{received_id}/preview/html"' in text
    document = await browser.get(f"/inbox/{received_id}/preview/html")
    assert document.headers["content-security-policy"] == browser_client.PREVIEW_POLICY
    assert "<script" not in document.text
    raw = await browser.get(f"/inbox/{received_id}/raw")
    assert raw.content == mail.find(received_id).content
    assert f"{received_id}.eml" in raw.headers["content-disposition"]
    file = await browser.get(f"/inbox/{received_id}/attachments/0")
    assert file.headers["content-disposition"].startswith("attachment;")
    assert file.headers["content-type"] == "application/octet-stream"


async def test_mail_says_who_sent_it_and_not_where_bounces_go(browser: Browser, mail: dev_inbox.Inbox) -> None:
    received_id = receive(mail, "Here")
    text = (await browser.get("/inbox")).text
    assert "Corner Shöp &lt;shop@example.com&gt;" in text
    assert "bounces@example.com" not in text
    text = (await browser.get(f"/inbox/{received_id}")).text
    assert "<dt>From</dt><dd>Corner Shöp &lt;shop@example.com&gt;</dd>" in text
    assert "<dt>Return path</dt><dd>bounces@example.com</dd>" in text


async def test_mail_and_the_message_that_it_was_lead_to_each_other(
    ctx: context.Context, browser: Browser, stranger: Browser, mail: dev_inbox.Inbox
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id)
    _, (recipient, *_) = await lookup.find(ctx, browser.account_id, message_id)
    assert "<dt>Inbox</dt>" not in (await browser.get(f"/messages/{message_id}")).text
    sender = return_path.address(
        ctx.keys.return_path, message_id=message_id, recipient_id=recipient.id, domain="example.com"
    )
    receive(mail, "Of somebody else")
    received = mail.add(values.MailTransaction(sender, (recipient.email,), (b"Subject: x\r\n\r\n",)))
    page = (await browser.get(f"/messages/{message_id}")).text
    assert re.findall(r'href="/inbox/(inb_[0-9a-f]+)">([^<]*)</a>', page) == [(received.id, recipient.email)]
    assert f'href="/messages/{message_id}"' in (await browser.get(f"/inbox/{received.id}")).text
    # The inbox belongs to everybody, the message to one account.
    assert message_id not in (await stranger.get(f"/inbox/{received.id}")).text


async def test_the_inbox_can_be_emptied_by_those_who_may_change(
    browser: Browser, reader: Browser, mail: dev_inbox.Inbox
) -> None:
    received_id = receive(mail, "Here")
    assert "/inbox/clear" not in (await reader.get("/inbox")).text
    assert (await reader.post("/inbox/clear")).status_code == 403
    assert [one.id for one in mail.newest_first()] == [received_id]
    answer = await browser.post("/inbox/clear")
    assert browser_client.notice_of(answer) == "Inbox cleared."
    assert browser_client.location_of(answer) == "/inbox"
    assert mail.newest_first() == []


def test_there_is_no_inbox_outside_development(site: sites.Site) -> None:
    without = dataclasses.replace(site, mail=None)
    assert not [route.path for route in application.routes(without) if route.path.startswith("/inbox")]


async def test_received_mail_is_checked(browser: Browser, mail: dev_inbox.Inbox) -> None:
    received_id = receive(mail, "Here", body="<a href='https://localhost/'>x</a>")
    text = (await browser.get(f"/inbox/{received_id}", view="checks")).text
    assert "The message has no DKIM signature." in text
    assert "The return path is in example.com, which is aligned with From (example.com)." in text
    assert "Leads to a private host" in text
