"""The code that a new API key is shown with: copied from the page and run, it does what the key may do."""

import asyncio
import json
import os
import pathlib
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from playwright import async_api

from postroad.services.domains import domain_registry as domains
from postroad.services.templates import templates
from tests.browser import dev_service
from tests.browser.conftest import Opener

HTML = "<p>{{name}}</p>{{#items}}<p>{{title}}</p>{{/items}}{{> footer}}"
SHOP = "shop-of-a-key.example"


async def create(
    page: async_api.Page,
    *,
    mode: str = "live",
    access: str = "Sending",
    domains: Sequence[str] = (),
    limits: Mapping[str, str],
) -> str:
    """Create a key as a person does; returns the curl command that the page shows."""
    await page.goto("/keys")
    await page.get_by_role("button", name="New API key").click()
    await page.get_by_label("Name", exact=True).fill("shop")
    await page.get_by_label("Mode").select_option(mode)
    await page.get_by_role("radio", name=access).check()
    for name in domains:
        await page.get_by_role("checkbox", name=name, exact=True).check()
    if limits:
        await page.get_by_text("Limits", exact=True).click()
    for label, value in limits.items():
        await page.get_by_label(label, exact=True).fill(value)
    await page.get_by_role("button", name="Create API key").click()
    await async_api.expect(page.get_by_role("heading", name="API key created")).to_be_visible()
    return await page.locator(".snippets details").first.locator("pre").inner_text()


async def run(text: str, home: pathlib.Path) -> tuple[int, Any]:
    """What a terminal answers: the status, and the body."""
    (home / ".curlrc").write_text('silent\nwrite-out = "\\n%{http_code}"\n')
    started = await asyncio.create_subprocess_exec(
        "sh", "-c", text, stdout=asyncio.subprocess.PIPE, env={**os.environ, "CURL_HOME": str(home)}
    )
    printed, _ = await started.communicate()
    body, _, status = printed.decode().rpartition("\n")
    return int(status), json.loads(body)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_a_key_of_any_kind_may_do_what_its_snippet_does(
    open_page: Opener, dev: dev_service.DevService, tmp_path: pathlib.Path
) -> None:
    account, login = await dev.new_account()
    (first,) = await domains.of_account(dev.ctx, account.id)
    await domains.add(dev.ctx, account.id, SHOP, verified=True)
    await templates.put(dev.ctx, account.id, "footer", subject="-", text=None, html="<p>{{imprint}}</p>")
    await templates.put(dev.ctx, account.id, "order", subject="Order {{number}}", text=None, html=HTML)
    page = await open_page(login)
    all_limits = {
        "Templates": "missing, order",
        "Allowed IPs": "127.0.0.0/8",
        "Expires on": "2099-12-31",
        "Recipients per day": "1",
        "Credit budget": "1",
        "Ask for approval above": "1",
    }
    senders = []
    for mode, chosen, limits in (
        ("live", (), {}),
        ("live", (SHOP,), {}),
        ("live", (), {"Templates": "order"}),
        ("test", (), {}),
        ("live", (SHOP, first.name), all_limits),
    ):
        text = await create(page, mode=mode, domains=chosen, limits=limits)
        await async_api.expect(page.locator("section[aria-labelledby=connect] .notice.warn")).to_have_count(0)
        status, body = await run(text, tmp_path)
        assert status == 202, (limits, body)
        senders.append(body["from"])
    assert senders == [f"hello@{name}" for name in (first.name, SHOP, first.name, first.name, first.name)]
    # Mail of a test key is not among that of a live one.
    status, body = await run(await create(page, access="Read", limits={}), tmp_path)
    assert (status, len(body["messages"])) == (200, 4)
