"""An account is imported from our own listeners, with the same reader as from the service whose API they speak."""

from postroad.compat.resend import room as resend_room
from postroad.model import webhook_formats
from postroad.network import json_api
from postroad.services import context, templates
from postroad.services.accounts import registry as services_accounts
from postroad.services.domains import registry as domains
from postroad.services.imports import found, importer, resend
from postroad.services.suppressions import registry as suppressions
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.storage import accounts, webhooks
from postroad.storage import suppressions as stored
from tests.compat import room_client
from tests.compat.test_moved_apps import served

ADDRESSES = 1_203
FORMATS = {
    webhook_formats.Format.RESEND: ("email.delivered",),
}


async def fill(ctx: context.Context, account_id: str, of_format: webhook_formats.Format) -> str:
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
    changes = endpoint_settings.Changes(url="https://hooks.shop.example/in", format_events=FORMATS[of_format])
    await endpoints.create(ctx, account_id, changes, of_format=of_format)
    return await room_client.new_key(ctx, account_id)


async def run_import(
    ctx: context.Context, reader: found.Reader, *, dry_run: bool = False
) -> tuple[accounts.Account, importer.Report]:
    target = await services_accounts.create(ctx, "Moved")
    return target, await importer.Importer(ctx, target.id, reader, dry_run=dry_run).run()


async def assert_same(ctx: context.Context, source_id: str, target_id: str) -> None:
    """Templates, suppressions and endpoints are those of the source; the endpoints are disabled."""
    for alias in ("plain", "welcome"):
        theirs, ours = [await templates.find(ctx, one, alias) for one in (source_id, target_id)]
        assert (theirs.subject, theirs.text, theirs.html) == (ours.subject, ours.text, ours.html)
    listed = await suppressions.page(ctx, target_id, after="", limit=2 * ADDRESSES)
    assert [(one.email_key, one.source, one.created_at) for one in listed] == [
        (f"a{number:04}@example.net", "complaint", number // 1_000 * 1_000) for number in range(ADDRESSES)
    ]
    (theirs_hook,) = await endpoints.of_account(ctx, source_id)
    (hook,) = await endpoints.of_account(ctx, target_id)
    assert _seen(hook) == (*_seen(theirs_hook)[:-1], 0)


def _seen(hook: webhooks.Webhook) -> tuple[str, str, str, int]:
    return hook.url, hook.format, hook.format_events, hook.enabled


async def test_an_account_is_imported_over_our_resend_api(ctx: context.Context, account: accounts.Account) -> None:
    key = await fill(ctx, account.id, webhook_formats.Format.RESEND)
    async with served(ctx, resend_room.ROOM) as url:
        api = json_api.JsonApi(f"{url}/compat/resend", headers={"Authorization": f"Bearer {key}"}, secrets=[key])
        target, report = await run_import(ctx, resend.ResendReader(api))
        await api.close()
    assert report.is_complete, report
    assert [one.name for one in report.domains.created] == ["shop.example"]
    assert report.suppressions.created == ADDRESSES
    await assert_same(ctx, account.id, target.id)
