"""An account is imported from our own listeners, with the same reader as from the service whose API they speak."""

import datetime as dt

from extensions.tests.test_moved_apps import served
from postroad import context
from postroad.network.http import json_api
from postroad.services.accounts import account_registry as services_accounts
from postroad.services.domains import domain_registry as domains
from postroad.services.imports import found, importer
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import templates
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.storage.mail import suppressions as stored
from postroad.storage.people import accounts
from postroad_postmark import api as postmark_api
from postroad_postmark import importer as postmark
from postroad_resend import api as resend_api
from postroad_resend import importer as resend
from tests.compat import compat_client

ADDRESSES = 1_203


async def fill(ctx: context.Context, account_id: str) -> str:
    """An account with some of everything; the secret of a key for it."""
    await domains.add(ctx, account_id, "shop.example", verified=False)
    await templates.put(ctx, account_id, "welcome", subject="Hi {{name}}", text="Hi {{name}}", html="<p>{{name}}</p>")
    await templates.put(ctx, account_id, "plain", subject="Plain", text="Plain", html=None)
    async with ctx.store.transaction() as tx:
        rows = [
            stored.Suppression(account_id, f"a{number:04}@example.net", "complaint", "abuse", None, None, number)
            for number in range(ADDRESSES)
        ]
        await stored.add(tx, rows)
    return await compat_client.new_key(ctx, account_id)


async def run_import(ctx: context.Context, reader: found.Reader) -> tuple[accounts.Account, importer.Report]:
    """Into a new account."""
    target = await services_accounts.create(ctx, "Moved")
    return target, await importer.Importer(ctx, target.id, reader, dry_run=False).run()


async def assert_same(ctx: context.Context, source_id: str, target_id: str) -> None:
    """Domains, templates and suppressions are those of the source."""
    assert [domain.name for domain in await domains.of_account(ctx, target_id)] == ["shop.example"]
    for alias in ("plain", "welcome"):
        theirs, ours = [await templates.find(ctx, one, alias) for one in (source_id, target_id)]
        assert (theirs.subject, theirs.text, theirs.html) == (ours.subject, ours.text, ours.html)
    listed = await suppressions.page(ctx, target_id, after="", limit=2 * ADDRESSES)
    # Both APIs write times in milliseconds.
    assert [(suppression.email_key, suppression.source, suppression.created_at) for suppression in listed] == [
        (f"a{number:04}@example.net", "complaint", number // 1_000 * 1_000) for number in range(ADDRESSES)
    ]


async def test_an_account_is_imported_over_our_resend_api(ctx: context.Context, account: accounts.Account) -> None:
    key = await fill(ctx, account.id)
    changes = endpoint_settings.Changes(url="https://hooks.shop.example/in", format_events=["email.delivered"])
    await endpoints.create(ctx, account.id, changes, of_format="resend")
    async with served(ctx, resend_api.API) as url:
        api = json_api.JsonApi(f"{url}/compat/resend", headers={"Authorization": f"Bearer {key}"}, secrets=[key])
        target, report = await run_import(ctx, resend.ResendReader(api))
        await api.close()
    assert report.is_complete, report
    assert report.suppressions.created == ADDRESSES
    await assert_same(ctx, account.id, target.id)
    (hook,) = await endpoints.of_account(ctx, target.id)
    assert (hook.url, hook.format, hook.format_events, hook.enabled) == (
        "https://hooks.shop.example/in",
        "resend",
        "email.delivered",
        0,
    )


async def test_an_account_is_imported_over_our_postmark_api(ctx: context.Context, account: accounts.Account) -> None:
    key = await fill(ctx, account.id)
    async with served(ctx, postmark_api.API) as url:
        api = json_api.JsonApi(f"{url}/compat/postmark", headers={"X-Postmark-Server-Token": key}, secrets=[key])
        target, report = await run_import(ctx, postmark.PostmarkReader(api, api, today=dt.date(2027, 1, 15)))
        await api.close()
    stopped = [name for name, section in report.sections.items() if section.stopped and name != "webhooks"]
    assert stopped == [], report
    assert report.suppressions.created == ADDRESSES
    await assert_same(ctx, account.id, target.id)
