"""Received mail in a browser: a route from its dialog, mail that appears by itself, its page, and its end."""

import asyncio
import re
import smtplib

from playwright import async_api

from postroad.services.domains import domain_registry as domains
from tests.browser import axe, dev_service, questions
from tests.browser.conftest import Opener

expect = async_api.expect


def deliver(dev: dev_service.DevService, recipient: str) -> None:
    """As the mail server of a stranger would."""
    inbound = dev.dev_info["inbound"]
    content = f"From: Ada <ada@example.net>\r\nTo: {recipient}\r\nSubject: Where is my order?\r\n\r\nDue on Monday.\r\n"
    with smtplib.SMTP(inbound["host"], inbound["port"]) as client:
        client.sendmail("ada@example.net", [recipient], content.encode())


async def test_a_route_is_made_and_its_mail_appears_and_is_deleted(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    account, login = await dev.new_account()
    (domain,) = await domains.of_account(dev.ctx, account.id)
    page = await open_page(login)
    await page.goto("/")
    await page.get_by_role("link", name="Received", exact=True).click()
    await expect(page.get_by_role("heading", name="Receive mail")).to_be_visible()
    await axe.check(page)
    await page.get_by_role("link", name="New route").click()
    dialog = page.get_by_role("dialog", name="New route")
    await expect(dialog.get_by_label("Domain", exact=True)).to_have_value(f"in.{domain.name}")
    await expect(dialog.get_by_label("Name")).to_be_hidden()
    await dialog.get_by_label("One address and its +tags").check()
    await dialog.get_by_label("Name").fill("support")
    await dialog.get_by_label("Forward it").check()
    await expect(dialog.get_by_label("Forward to")).to_have_value(login.email)
    await dialog.get_by_label("Keep it here").check()
    await expect(dialog.get_by_label("Forward to")).to_be_hidden()
    await axe.check(page)
    await dialog.get_by_role("button", name="Create route").click()
    await expect(page.get_by_text(f"Mail to support+*@in.{domain.name} is kept here.")).to_be_visible()
    await axe.check(page)
    await page.get_by_role("link", name="Mail", exact=True).click()
    await expect(page.get_by_role("heading", name="No mail yet")).to_be_visible()
    await asyncio.to_thread(deliver, dev, f"support+1042@in.{domain.name}")
    # Without a reload.
    await page.get_by_role("link", name="Ada <ada@example.net>").click()
    await expect(page.get_by_role("heading", name="Where is my order?")).to_be_visible()
    await expect(page.get_by_text("Due on Monday.")).to_be_visible()
    await axe.check(page)
    await page.get_by_role("button", name="Delete").click()
    await questions.agree(page, "Delete this message and its attachments?")
    await expect(page.get_by_text("Message deleted.")).to_be_visible()
    await expect(page).to_have_url(re.compile("/received$"))
