"""The ledger as a file: all of it, oldest first, with balances that agree with the account."""

import csv
import io

import pytest

from postroad import context
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, contexts

HEAD = b"created_at,kind,available,reserved,available_after,reserved_after,message_id,note,id\r\n"


async def exported(ctx: context.Context, account_id: str) -> bytes:
    return b"".join([part async for part in credits.export_ledger(ctx, account_id)])


async def rows(ctx: context.Context, account_id: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((await exported(ctx, account_id)).decode(), newline=""), strict=True))


async def test_an_empty_ledger_is_a_file_with_a_head(ctx: context.Context, account: stored_accounts.Account) -> None:
    assert await exported(ctx, account.id) == HEAD


async def test_every_entry_is_there_with_the_balances_after_it(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    await credits.add(ctx, other.id, 99, "theirs")
    await accepted_mail.allow_sending(ctx, account.id, amount=10)
    clock.pass_seconds(1)
    message_id = await accepted_mail.accept(ctx, account.id, to=("a@example.net", "b@example.net"))
    clock.pass_seconds(1)
    await credits.add(ctx, account.id, 5, "=HYPERLINK(1)")
    first, second, third = await rows(ctx, account.id)
    assert (first["created_at"], first["kind"], first["available"]) == ("2027-01-15T08:00:00.000Z", "grant", "10")
    assert (second["kind"], second["available"], second["reserved"]) == ("reserve", "-2", "2")
    assert (second["available_after"], second["reserved_after"], second["message_id"]) == ("8", "2", message_id)
    assert (third["available_after"], third["note"]) == ("13", "'=HYPERLINK(1)")
    now = await accounts.find(ctx, account.id)
    assert (third["available_after"], third["reserved_after"]) == (str(now.available), str(now.reserved))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
async def test_a_file_is_written_page_by_page(
    ctx: context.Context,
    account: stored_accounts.Account,
    clock: contexts.Clock,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    monkeypatch.setattr(credits, "LEDGER_PAGE_ROWS", 2)
    for _ in range(count):
        await credits.add(ctx, account.id, 1, None)
        clock.pass_seconds(1)
    parts = [part async for part in credits.export_ledger(ctx, account.id)]
    assert all(parts)
    assert len(parts) == (count + 1) // 2
    assert [row["available_after"] for row in await rows(ctx, account.id)] == [str(n + 1) for n in range(count)]
