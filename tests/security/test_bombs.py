"""Security case G7 at the dashboard: what the listeners accepted unopened is opened there for viewing.

A page about a bomb comes, shows a bounded part, and leaves the others who ask meanwhile alone.
"""

import asyncio
import re
from typing import Final

import httpx

from postroad.model.people import callers
from postroad.services.people import users
from tests.security import tenants
from tests.security.test_attachments import DEEP_BOMBS, MULTIPART, WIDE_BOMBS
from tests.security.whole_service import BEGIN, HEADER, WholeService

HTML: Final = HEADER + b"Content-Type: text/html\r\n\r\n"
LINE: Final = b"\r\n"
BOMBS: Final = {
    "10,000 nested multiparts": DEEP_BOMBS["10,000 nested multiparts"],
    "messages in messages": DEEP_BOMBS["messages in messages"],
    "parts without end": WIDE_BOMBS["parts without end"],
    "parameters without end": MULTIPART + b"--b\r\nContent-Disposition: inline; of*0*=%\r\n\r\n" * 10_000,
    "tags that never end": HTML + (b"<div>" * 100 + LINE) * 2_000,
    "a tag that never ends": HTML + b"<a " + (b"b='" * 200 + LINE) * 1_700,
    "brackets without end": HTML + (b"<" * 900 + LINE) * 1_000,
    "style sheets without end": HTML + b"<style>" + (b"@import url(" * 60 + LINE) * 1_000,
}
# Of a message 512 Ki characters are shown at most; escaped, each has four or five, and the page is around them.
MAX_CHARACTERS: Final = 5 * 512 * 1024
# A destination that is not there: nothing is delivered while a test looks.
NOWHERE: Final = BEGIN.replace(b"ada@example.net", b"ada@nowhere.example")
FRAME: Final = re.compile(r'<iframe[^>]* src="([^"]+)"')


async def looked(browser: httpx.AsyncClient, path: str) -> list[str]:
    """Open a page in two views, and the frames in them; the texts."""
    shown = []
    for view in ("", "?view=files"):
        page = await browser.get(path + view)
        assert page.status_code == 200, (view, page.text[:300])
        shown.append(page.text)
        for frame in FRAME.findall(page.text):
            framed = await browser.get(frame)
            assert framed.status_code == 200, (frame, framed.text[:300])
            shown.append(framed.text)
    return shown


async def test_g7_files_without_end_are_refused(service: WholeService) -> None:
    """G7: more files than a message may have."""
    files = MULTIPART + b"--b\r\nContent-Disposition: attachment; filename*0*=%\r\n\r\n" * 10_000
    reply = await service.hand_in(files, begin=NOWHERE)
    assert reply.startswith("550 5.6.0 invalid_request: attachments: 500 files; at most 20 are allowed"), reply
    assert await service.settled() == []


async def test_g7_of_a_bomb_a_bounded_part_is_shown(service: WholeService) -> None:
    """G7: depth, breadth and markup without end, on the message's page; others are answered meanwhile."""
    role, email = callers.Role.READ_ONLY, "jo@example.com"
    await users.create(service.ctx, service.account.id, email=email, password=tenants.PASSWORD, role=role)
    async with tenants.client(service) as browser:
        form = {"email": email, "password": tenants.PASSWORD}
        assert (await browser.post("/login", data=form)).status_code == 303
        for what, bomb in BOMBS.items():
            reply = await service.hand_in(bomb, begin=NOWHERE)
            assert reply.startswith("250 2.0.0 OK: queued as em_"), (what, reply)
            looking = asyncio.create_task(looked(browser, f"/messages/{reply.split()[-1]}"))
            assert (await service.http.get("/healthz")).status_code == 200
            shown = await looking
            assert len(shown) == (4 if bomb.startswith(HTML) else 2), what
            assert max(map(len, shown)) < MAX_CHARACTERS, what
