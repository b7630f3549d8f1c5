"""The suppression list as users manage it: paged, by account, and undone by any spelling of the address."""

import functools

import pytest

from postroad import context, errors
from postroad.services.accounts import account_registry as services_accounts
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import suppressions as stored

OPERATOR, ACCOUNT = stored.Source.OPERATOR, stored.Source.ACCOUNT
add = functools.partial(suppressions.add, source=OPERATOR)


async def listed(ctx: context.Context, account_id: str, **where: str) -> list[str]:
    page = await suppressions.page(ctx, account_id, limit=10, **{"after": "", **where})
    return [suppression.email_key for suppression in page]


async def test_an_address_is_put_on_found_and_taken_off_whatever_its_writing(
    ctx: context.Context, account_id: str
) -> None:
    added, is_new = await add(ctx, account_id, "Ada@BÜCHER.example", reason="asked to")
    assert is_new
    assert await add(ctx, account_id, "ADA@BÜCHER.example", reason="second", source=ACCOUNT) == (added, False)
    assert (added.email_key, added.source, added.reason) == ("ada@xn--bcher-kva.example", "operator", "asked to")
    assert (added.smtp_code, added.message_id, added.created_at) == (None, None, ctx.clock())
    assert await suppressions.page(ctx, account_id, after="", limit=10) == [added]
    assert await suppressions.find(ctx, account_id, "ADA@Bücher.example") == added
    assert await listed(ctx, account_id, source="account") == []
    for after in ("\0", "a\0"):  # any text is a place in the list
        assert await listed(ctx, account_id, after=after) == [added.email_key]
    assert await listed(ctx, account_id, after=f"{added.email_key}\0") == []
    assert await suppressions.remove(ctx, account_id, "ada@bücher.EXAMPLE") == added.email_key
    assert await listed(ctx, account_id) == []


async def test_accounts_do_not_touch_each_others_lists(ctx: context.Context, account_id: str) -> None:
    other = await services_accounts.create(ctx, name="Other")
    await add(ctx, other.id, "ada@example.net", reason="x")
    assert await listed(ctx, account_id) == []
    for verb in (suppressions.find, suppressions.remove):
        with pytest.raises(errors.NotFound, match=r"^the address is not on the suppression list of this account$"):
            await verb(ctx, account_id, "ada@example.net")
    with pytest.raises(errors.NotFound, match=r"^the address has not left this list$"):
        await suppressions.remove(ctx, account_id, "ada@example.net", list_name="news")
    assert await listed(ctx, other.id) == ["ada@example.net"]


async def test_what_is_no_address_or_no_sentence_is_refused(ctx: context.Context, account_id: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^email: 'ada@' is not an email address"):
        await add(ctx, account_id, "ada@", reason="x")
    with pytest.raises(errors.InvalidRequest, match=r"^reason: must be 1 to 200 characters on one line"):
        await add(ctx, account_id, "ada@example.net", reason="two\nlines")
    for text in ("ada@", "", "\0", "a@b\0.example"):
        with pytest.raises(errors.NotFound):
            await suppressions.remove(ctx, account_id, text)
