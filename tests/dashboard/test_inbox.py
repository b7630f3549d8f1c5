"""The page of the simulator's inbox, in `postroad dev`."""

import dataclasses
import re

from postroad.dashboard import application
from postroad.dashboard import site as sites
from postroad.protocol.smtp import values
from postroad.services.messages import dev_inbox
from tests import contexts
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser


def receive(mail: dev_inbox.Inbox, subject: str, *to: str, body: str = "Hello") -> str:
    """A message to these addresses; its id."""
    content = f"From: shop@example.com\r\nSubject: {subject}\r\nContent-Type: text/html\r\n\r\n{body}\r\n".encode()
    return mail.add(values.MailTransaction("shop@example.com", to or ("ada@example.net",), (content,))).id


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
    assert listed((await browser.get("/inbox", to=" BOB@example.net ")).text) == [first]
    nothing = (await browser.get("/inbox", to="<script>alert(1)</script>")).text
    assert "No mail to &lt;script&gt;" in nothing


async def test_the_list_comes_in_parts(browser: Browser, mail: dev_inbox.Inbox, clock: contexts.Clock) -> None:
    ids = []
    for number in range(50 + 1):
        clock.now += contexts.SECOND
        ids.append(receive(mail, f"Number {number}"))
    first = (await browser.get("/inbox", to="ada@example.net")).text
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


async def test_what_is_not_there_is_nowhere(browser: Browser, mail: dev_inbox.Inbox) -> None:
    received_id = receive(mail, "Here")
    assert (await browser.get(f"/inbox/{received_id}/attachments/7")).status_code == 404
    for path in ("", "/raw", "/preview/html", "/attachments/0"):
        assert (await browser.get(f"/inbox/inb_{'0' * 28}{path}")).status_code == 404


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


async def test_everybody_who_is_logged_in_sees_the_inbox_and_nobody_else(
    reader: Browser, stranger: Browser, nobody: Browser, mail: dev_inbox.Inbox
) -> None:
    received_id = receive(mail, "Here")
    for one in (reader, stranger):
        assert listed((await one.get("/inbox")).text) == [received_id]
    for path in ("", f"/{received_id}", f"/{received_id}/raw", f"/{received_id}/preview/html"):
        assert (await nobody.get(f"/inbox{path}")).status_code == 303


def test_there_is_no_inbox_outside_development(site: sites.Site) -> None:
    without = dataclasses.replace(site, mail=None)
    assert not [route.path for route in application.routes(without) if route.path.startswith("/inbox")]
