"""Approvals in a browser: in the menu once a key needs them, and a send that waits until somebody approves it."""

import httpx
from playwright import async_api

from postroad.model.people import callers
from postroad.services.domains import domain_registry as domains
from postroad.services.people import api_keys
from tests.browser import axe, dev_service
from tests.browser.conftest import Opener


async def test_a_send_waits_until_it_is_approved(open_page: Opener, dev: dev_service.DevService) -> None:
    account, login = await dev.new_account()
    (domain,) = await domains.of_account(dev.ctx, account.id)
    page = await open_page(login)
    await page.goto("/")
    menu = page.get_by_role("navigation", name="Pages")
    await async_api.expect(menu.get_by_role("link", name="Messages")).to_be_visible()
    await async_api.expect(menu.get_by_role("link", name="Approvals")).to_have_count(0)
    limits = callers.KeyLimits(approval_above=0)
    _, secret = await api_keys.create(
        dev.ctx, account.id, credential_id=None, name="agent", scopes=frozenset({"send"}), limits=limits
    )
    await page.reload()
    await menu.get_by_role("link", name="Approvals").click()
    await async_api.expect(page.get_by_role("heading", name="Nothing to approve")).to_be_visible()
    await axe.check(page)
    body = {"from": f"shop@{domain.name}", "to": "grace@example.net", "subject": "Offer", "text": "Dear Grace"}
    headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": "offer"}
    async with httpx.AsyncClient(base_url=dev.base_url, headers=headers) as application:
        assert (await application.post("/emails", json=body)).status_code == 403
    await page.reload()
    await async_api.expect(page.get_by_text("Dear Grace")).to_be_visible()
    await axe.check(page)
    await page.get_by_role("button", name="Approve").click()
    await async_api.expect(page.get_by_text("Approved: 1 recipient.")).to_be_visible()
    async with httpx.AsyncClient(base_url=dev.base_url, headers=headers) as application:
        assert (await application.post("/emails", json=body)).status_code == 202
