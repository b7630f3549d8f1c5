"""An account's endpoint: one, whoever saves it at the same moment; its secrets are sealed, bounded, and shown once."""

import asyncio

import pytest

from postroad import config, context, errors
from postroad.model.events import events
from postroad.services.accounts import account_registry as accounts
from postroad.services.webhooks import delivery_log, endpoints, signed_requests
from postroad.storage.mail import webhooks
from tests import contexts, webhook_rows
from tests.webhook_rows import URL

ALL = "email.delivered email.bounced email.failed"
HOUR = 3600


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


async def good(ctx: context.Context, account_id: str) -> list[str]:
    """The secrets that sign now, the newest first."""
    async with ctx.store.reading() as tx:
        webhook = await webhooks.first_of(tx, account_id)
        assert webhook is not None
        rows = await webhooks.secrets(tx, [webhook.id], now=ctx.clock())
    return [signed_requests.decrypt_secret(ctx, row) for row in rows]


async def test_an_endpoint_is_made_with_a_secret_which_is_stored_sealed(ctx: context.Context, account_id: str) -> None:
    assert await endpoints.find(ctx, account_id) is None
    assert not ctx.webhook_wakeup.is_set()
    saved = await endpoints.save(ctx, account_id, url=URL)
    assert ctx.webhook_wakeup.is_set()
    assert saved.secret is not None
    assert saved.secret.startswith("whsec_")
    assert saved.secret not in repr(saved)
    webhook = saved.webhook
    assert (webhook.url, webhook.events, webhook.enabled) == (URL, ALL, 1)
    assert webhook.secret_hint == f"whsec_…{saved.secret[-4:]}"
    assert webhook.created_at == webhook.updated_at == ctx.clock()
    assert await endpoints.find(ctx, account_id) == webhook
    assert await good(ctx, account_id) == [saved.secret]
    async with ctx.store.reading() as tx:
        (row,) = await webhooks.secrets(tx, [webhook.id], now=ctx.clock())
    assert saved.secret.removeprefix("whsec_").encode() not in row.secret


async def test_saving_again_keeps_the_secret_and_what_is_left_out(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    first = await endpoints.save(ctx, account_id, url=URL, wanted=["email.failed"], enabled=False)
    assert (first.webhook.events, first.webhook.enabled) == ("email.failed", 0)
    clock.pass_seconds(60)
    second = await endpoints.save(ctx, account_id, url=URL + "2")
    assert second.secret is None
    assert (second.webhook.id, second.webhook.created_at) == (first.webhook.id, first.webhook.created_at)
    assert (second.webhook.url, second.webhook.events, second.webhook.enabled) == (URL + "2", "email.failed", 0)
    assert second.webhook.updated_at == ctx.clock()
    assert await endpoints.find(ctx, account_id) == second.webhook
    third = (await endpoints.save(ctx, account_id, url=URL, enabled=True)).webhook
    assert (third.url, third.events, third.enabled) == (URL, "email.failed", 1)
    fourth = (await endpoints.save(ctx, account_id, url=URL, wanted=["email.bounced"])).webhook
    assert (fourth.url, fourth.events, fourth.enabled) == (URL, "email.bounced", 1)
    # An empty list is not left out: it means all.
    assert (await endpoints.save(ctx, account_id, url=URL, wanted=[])).webhook.events == ALL
    assert await good(ctx, account_id) == [first.secret]


@pytest.mark.parametrize(
    "wanted, kept",
    [
        ((), ALL),
        (("email.failed", "email.delivered", "email.failed"), "email.delivered email.failed"),
        (("email.bounced",), "email.bounced"),
        (tuple(reversed(events.DEFAULT)), ALL),
    ],
)
async def test_events_are_kept_once_and_in_one_order(
    ctx: context.Context, account_id: str, wanted: tuple[str, ...], kept: str
) -> None:
    assert (await endpoints.save(ctx, account_id, url=URL, wanted=wanted)).webhook.events == kept


async def test_a_refused_url_or_event_leaves_the_endpoint_as_it_was(ctx: context.Context, account_id: str) -> None:
    before = (await endpoints.save(ctx, account_id, url=URL)).webhook
    with pytest.raises(errors.InvalidRequest, match=r"^url: "):
        await endpoints.save(ctx, account_id, url="https://127.0.0.1/", enabled=False)
    for name in ("webhook.test", "email.opened", "", "email.failed ", "EMAIL.FAILED"):
        with pytest.raises(errors.InvalidRequest, match=r"^events\[1\]: must be one of email\.delivered, "):
            await endpoints.save(ctx, account_id, url=URL, wanted=["email.bounced", name])
    assert await endpoints.find(ctx, account_id) == before


async def test_fifty_who_save_at_the_same_moment_make_one_endpoint_and_one_secret(
    ctx: context.Context, other_process: context.Context, account_id: str
) -> None:
    saved = await asyncio.gather(
        *(endpoints.save(here, account_id, url=f"{URL}/{n}") for n in range(25) for here in (ctx, other_process))
    )
    assert len({one.webhook.id for one in saved}) == 1
    (secret,) = [one.secret for one in saved if one.secret is not None]
    assert await good(ctx, account_id) == [secret]
    made = await asyncio.gather(*(endpoints.rotate(here, account_id) for here in (ctx, other_process) * 5))
    (left,) = await good(ctx, account_id)
    assert left in made


async def test_a_removed_endpoint_is_gone_with_its_secrets_and_its_log(ctx: context.Context, account_id: str) -> None:
    other = await accounts.create(ctx, "Other")
    theirs = await endpoints.save(ctx, other.id, url=URL + "/theirs")
    with pytest.raises(errors.NotFound):
        await endpoints.remove(ctx, account_id)
    old = await endpoints.save(ctx, account_id, url=URL)
    delivery = await webhook_rows.put_ended(ctx, account_id)
    await webhook_rows.put(ctx, account_id)
    await endpoints.remove(ctx, account_id)
    assert await endpoints.find(ctx, account_id) is None
    assert (await delivery_log.page(ctx, account_id, limit=10)).rows == []
    for attempt in (endpoints.remove(ctx, account_id), endpoints.rotate(ctx, account_id)):
        with pytest.raises(errors.NotFound, match=r"^this account has no webhook$"):
            await attempt
    async with ctx.store.reading() as tx:
        assert await webhooks.secrets(tx, [old.webhook.id], now=0) == []
    new = await endpoints.save(ctx, account_id, url=URL)
    assert new.webhook.id != old.webhook.id
    assert new.secret not in (None, old.secret, theirs.secret)
    assert (await delivery_log.page(ctx, account_id, limit=10)).rows == []
    with pytest.raises(errors.NotFound):
        await delivery_log.replay(ctx, account_id, delivery.id)
    assert await endpoints.find(ctx, other.id) == theirs.webhook
    assert await good(ctx, other.id) == [theirs.secret]


async def test_a_new_secret_ends_the_old_one_at_once(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    with pytest.raises(errors.NotFound):
        await endpoints.rotate(ctx, account_id)
    first = await endpoints.save(ctx, account_id, url=URL)
    clock.pass_seconds(60)
    secret = await endpoints.rotate(ctx, account_id)
    assert secret != first.secret
    assert await good(ctx, account_id) == [secret]
    webhook = await endpoints.find(ctx, account_id)
    assert webhook is not None
    assert (webhook.secret_hint, webhook.updated_at) == (f"whsec_…{secret[-4:]}", ctx.clock())


async def test_with_an_overlap_both_secrets_sign_until_it_is_over_and_at_most_five_old_ones(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    webhook, first = (await endpoints.save(ctx, account_id, url=URL)).webhook, (await good(ctx, account_id))[0]
    for hours in (0, -1, 169):
        with pytest.raises(errors.InvalidRequest, match=r"^overlap_hours: must be 1 to 168$"):
            await endpoints.rotate(ctx, account_id, overlap_hours=hours)
    second = await endpoints.rotate(ctx, account_id, overlap_hours=2)
    clock.pass_seconds(HOUR)
    third = await endpoints.rotate(ctx, account_id, overlap_hours=168)
    assert await good(ctx, account_id) == [third, second, first]
    clock.pass_seconds(HOUR - 1)
    assert await good(ctx, account_id) == [third, second, first]
    clock.pass_seconds(1)
    assert await good(ctx, account_id) == [third, second]
    clock.pass_seconds(167 * HOUR)
    assert await good(ctx, account_id) == [third]
    *_, fourth = [await endpoints.rotate(ctx, account_id, overlap_hours=hours) for hours in (9, 1, 2, 3, 4)]
    with pytest.raises(errors.Conflict, match=r"5 old secrets .* until 2027-01-22T10:00:00\.000Z"):
        await endpoints.rotate(ctx, account_id, overlap_hours=1)
    assert len(await good(ctx, account_id)) == 6
    clock.pass_seconds(HOUR)
    last = await endpoints.rotate(ctx, account_id, overlap_hours=1)
    assert (await good(ctx, account_id))[:2] == [last, fourth]
    only = await endpoints.rotate(ctx, account_id)
    assert await good(ctx, account_id) == [only]
    # A version of a secret is never used again.
    async with ctx.store.reading() as tx:
        (row,) = await webhooks.secrets(tx, [webhook.id], now=ctx.clock())
    assert row.version == 10


@pytest.mark.parametrize(
    "url, host", [("https://shop.example/a?secret=1", "shop.example"), ("https:///a", ""), ("https://[a", "")]
)
def test_the_audit_log_gets_the_host_of_a_url_and_no_more(url: str, host: str) -> None:
    assert endpoints.host(url) == host
