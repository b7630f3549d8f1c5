"""The suppression list as people look after it: paged, by account, and undone by any writing of the address."""

import pytest

from postroad import errors
from postroad.services import accounts as services_accounts
from postroad.services import context, suppressions
from postroad.storage import accounts


async def listed(ctx: context.Context, account_id: str, after: str = "", limit: int = 10) -> list[str]:
    return [one.email_key for one in await suppressions.page(ctx, account_id, after, limit)]


async def test_an_address_is_put_on_and_taken_off_whatever_its_writing(
    ctx: context.Context, account: accounts.Account
) -> None:
    added = await suppressions.add(ctx, account.id, "Ada@BÜCHER.example", reason="asked to")
    assert (added.email_key, added.source, added.reason) == ("ada@xn--bcher-kva.example", "operator", "asked to")
    assert (added.message_id, added.created_at) == (None, ctx.clock())
    assert await suppressions.page(ctx, account.id, "", 10) == [added]
    assert await suppressions.remove(ctx, account.id, "ada@bücher.EXAMPLE") == added.email_key
    assert await listed(ctx, account.id) == []


async def test_the_first_reason_stays(ctx: context.Context, account: accounts.Account) -> None:
    first = await suppressions.add(ctx, account.id, "ada@example.net", reason="first")
    assert await suppressions.add(ctx, account.id, "ada@example.net", reason="second") == first


async def test_the_list_is_paged_in_the_order_of_the_addresses(ctx: context.Context, account: accounts.Account) -> None:
    for email in ("c@example.net", "a@example.net", "b@example.net"):
        await suppressions.add(ctx, account.id, email, reason="x")
    assert await listed(ctx, account.id, limit=2) == ["a@example.net", "b@example.net"]
    assert await listed(ctx, account.id, "B@example.net") == ["c@example.net"]


async def test_accounts_do_not_touch_each_others_lists(ctx: context.Context, account: accounts.Account) -> None:
    other = await services_accounts.create(ctx, name="Other")
    await suppressions.add(ctx, other.id, "ada@example.net", reason="x")
    assert await listed(ctx, account.id) == []
    with pytest.raises(errors.NotFound, match=r"^ada@example.net is not on the suppression list of the account$"):
        await suppressions.remove(ctx, account.id, "ada@example.net")
    assert await listed(ctx, other.id) == ["ada@example.net"]


async def test_what_is_no_address_or_no_sentence_is_refused(ctx: context.Context, account: accounts.Account) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^email: 'ada@' is not an email address"):
        await suppressions.add(ctx, account.id, "ada@", reason="x")
    with pytest.raises(errors.InvalidRequest, match=r"^reason: 1 to 200 characters on one line"):
        await suppressions.add(ctx, account.id, "ada@example.net", reason="two\nlines")
    with pytest.raises(errors.InvalidRequest, match=r"^email: 'ada@' is not an email address"):
        await suppressions.remove(ctx, account.id, "ada@")
