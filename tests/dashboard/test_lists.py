"""Lists that are longer than a page: each leads on until its end, with its filters, and shows every row once."""

import html
import re
from collections.abc import Awaitable, Callable

import pytest

from postroad import context
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains
from postroad.services.people import credentials
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import templates
from postroad.services.webhooks import endpoints
from postroad.storage.mail import suppressions as stored_suppressions
from tests import accepted_mail, contexts, logged_requests, webhook_rows
from tests.dashboard import test_api_keys as keys
from tests.dashboard.browser_client import Browser

# Makes a row, and returns what is seen of it.
Create = Callable[[context.Context, str, str], Awaitable[str]]


async def create_key(ctx: context.Context, account_id: str, name: str) -> str:
    return (await keys.make(ctx, account_id, name)).name


async def create_credential(ctx: context.Context, account_id: str, name: str) -> str:
    return (await credentials.create(ctx, account_id, name))[0].name


async def add_domain(ctx: context.Context, account_id: str, name: str) -> str:
    return (await domains.add(ctx, account_id, name, verified=True)).name


async def add_credits(ctx: context.Context, account_id: str, name: str) -> str:
    await credits.add(ctx, account_id, 1, name)
    return name


async def save_template(ctx: context.Context, account_id: str, name: str) -> str:
    return (await templates.put(ctx, account_id, name.partition(".")[0], subject="x", text="x", html=None)).alias


async def suppress(ctx: context.Context, account_id: str, name: str) -> str:
    source = stored_suppressions.Source.ACCOUNT
    return (await suppressions.add(ctx, account_id, f"a+b@{name}", reason="x", source=source))[0].email_key


async def accept(ctx: context.Context, account_id: str, name: str) -> str:
    await accepted_mail.allow_sending(ctx, account_id, domain=name)
    await accepted_mail.accept(ctx, account_id, sender=f"shop@{name}", subject=f"a & b {name}")
    return name


async def fail_webhook(ctx: context.Context, account_id: str, name: str) -> str:
    del name
    await endpoints.save(ctx, account_id, url=webhook_rows.URL)
    return (await webhook_rows.put_ended(ctx, account_id, webhook_rows.State.FAILED)).id


async def refuse(ctx: context.Context, account_id: str, name: str) -> str:
    del name
    return logged_requests.note(ctx, account_id)


@pytest.mark.parametrize(
    "path, module, create, wrong",
    [
        ("/keys", "framework.lists", create_key, "after=nonsense"),
        ("/credentials", "framework.lists", create_credential, "after=nonsense"),
        ("/domains", "framework.lists", add_domain, "after=nonsense"),
        ("/credits?day=2027-01-15", "settings.credits", add_credits, "day=2027-01-15&before=led_x"),
        ("/audit-log?action=credits", "settings.audit_log", add_credits, "before=aud_x"),
        ("/requests?status=refused", "settings.request_log", refuse, "before=req_x"),
        ("/templates", "mail.templates", save_template, ""),
        ("/suppressions?source=account", "mail.suppressions", suppress, ""),
        ("/messages?search=%22a+%26+b%22", "mail.message_list", accept, "cursor=nonsense"),
        ("/webhooks/{webhook}?status=failed", "settings.webhooks", fail_webhook, "before=nonsense"),
    ],
)
async def test_a_list_goes_on_until_its_end(
    ctx: context.Context,
    clock: contexts.Clock,
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    module: str,
    create: Create,
    wrong: str,
) -> None:
    monkeypatch.setattr(f"postroad.dashboard.{module}.ROWS", 2)
    rows = []
    for number in range(5):
        clock.pass_seconds(1)
        rows.append(await create(ctx, browser.account_id, f"row-{number}.example"))
    pages: list[list[str]] = []
    known = await endpoints.of_account(ctx, browser.account_id)
    url = path = path.format(webhook=known[0].id if known else "")
    while url:
        shown = (await browser.get(url)).text.partition("<main")[2]
        pages.append([row for row in rows if row in shown])
        following = re.search(r'<nav class="more"[^>]*><a [^>]*href="([^"]+)"', shown)
        url = html.unescape(following[1]) if following else ""
    assert [len(page) for page in pages] == [2, 2, 1]
    assert sorted(row for page in pages for row in page) == sorted(rows)
    if wrong:
        assert (await browser.get(f"{path.partition('?')[0]}?{wrong}")).status_code == 400
