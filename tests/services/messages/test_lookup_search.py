"""The search box finds an account's messages by its language, in parts that are quick whatever was asked for."""

import pytest

from postroad import errors
from postroad.model import mail, search_query
from postroad.services import context
from postroad.services.accounts import registry as accounts
from postroad.services.messages import lookup as messages
from postroad.storage import accounts as stored_accounts
from tests import accepted_mail, contexts


async def found(ctx: context.Context, account_id: str, text: str) -> list[str]:
    part = await messages.search(ctx, account_id, text, limit=100, cursor=None)
    assert (part.next_cursor, part.searched_back_to) == (None, None)
    return [message.id for message in part.messages]


async def test_each_term_chooses_and_all_have_to_hold(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    plain = await accepted_mail.accept(ctx, account.id, subject="Your order 7 is on its way")
    clock.pass_seconds(3600)
    sale = await accepted_mail.accept(
        ctx,
        account.id,
        sender="Sale <Sale@example.com>",
        to=("Bob@example.net", "ada@example.net"),
        subject="50%_off 'today' 📮",
        source=mail.Source.TEST,
        tags=("black friday",),
    )
    clock.pass_seconds(60)
    for text, expected in (
        ("", [sale, plain]),
        ("to:bob@EXAMPLE.net", [sale]),
        ("ada@example.net", [sale, plain]),
        ("from:sale@example.com", [sale]),
        ("status:queued", [sale, plain]),
        ("status:failed", []),
        ('tag:"black friday"', [sale]),
        ("source:test", [sale]),
        ("after:30m", [sale]),
        ("before:30m", [plain]),
        ("after:2h before:30m", [plain]),
        ("after:2000-01-01 before:2001-01-01", []),
        (sale, [sale]),
        (f"id:{plain}", [plain]),
        (f"id:{plain} source:test", []),
        (f"id:{plain} after:30m", []),
        ("id:em_" + "0" * 28, []),
        ("ORDER way", [plain]),
        ("way order 7 is your", [plain]),
        ('"way order"', []),
        ("order nothing", []),
        ("50%_off", [sale]),
        ("%", [sale]),
        ("'today'", [sale]),
        ("📮", [sale]),
        ("' --", []),
        ("ada@example.net from:sale@example.com source:test today", [sale]),
    ):
        assert await found(ctx, account.id, text) == expected, text


async def test_the_query_comes_back_with_what_it_found(ctx: context.Context, account: stored_accounts.Account) -> None:
    part = await messages.search(ctx, account.id, "ada@example.net", limit=10, cursor=None)
    assert part == messages.SearchPage([], None, None, search_query.Query(to="ada@example.net"), {})


async def test_a_mistake_is_refused_with_its_place(ctx: context.Context, account: stored_accounts.Account) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^search: tag: needs a value") as caught:
        await messages.search(ctx, account.id, "order tag:", limit=10, cursor=None)
    assert isinstance(caught.value, search_query.QueryError)
    assert (caught.value.start, caught.value.end) == (6, 10)
    with pytest.raises(errors.InvalidRequest, match=r"^cursor: "):
        await messages.search(ctx, account.id, "order", limit=10, cursor="' OR 1=1 --")


async def test_nothing_of_another_account_is_found(ctx: context.Context, account: stored_accounts.Account) -> None:
    other = await accounts.create(ctx, "Other")
    await accepted_mail.allow_sending(ctx, other.id)
    foreign = await accepted_mail.accept(ctx, other.id, tags=("secret",))
    for text in ("", foreign, f"id:{foreign}", "order", "tag:secret", "ada@example.net", "status:queued"):
        assert await found(ctx, account.id, text) == []
        assert await found(ctx, other.id, text) == [foreign]


async def test_parts_of_a_search_lead_to_its_end(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    made = []
    for number in range(5):
        made.append(await accepted_mail.accept(ctx, account.id, subject=f"Order {number}"))
        clock.pass_seconds(1)
    first = await messages.search(ctx, account.id, "order", limit=3, cursor=None)
    rest = await messages.search(ctx, account.id, "order", limit=3, cursor=first.next_cursor)
    assert [message.id for message in first.messages + rest.messages] == made[::-1]
    assert (first.searched_back_to, rest.next_cursor, rest.searched_back_to) == (None, None, None)


async def test_a_search_that_met_its_bound_says_how_far_it_came_and_goes_on_there(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    made, at = [], []
    for number in range(10):
        at.append(clock.now)
        made.append(await accepted_mail.accept(ctx, account.id, subject="Needle" if number in (1, 8) else "Hay"))
        clock.pass_seconds(1)
    parts: list[tuple[list[str], int | None]] = []
    cursor: str | None = None
    while not parts or cursor is not None:
        part = await messages.search(ctx, account.id, "needle", limit=5, cursor=cursor, examined=4)
        parts.append(([message.id for message in part.messages], part.searched_back_to))
        cursor = part.next_cursor
    assert parts == [([made[8]], at[6]), ([], at[2]), ([made[1]], None)]


async def test_the_list_has_the_same_bound(ctx: context.Context, account: stored_accounts.Account) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    made = [
        await accepted_mail.accept(ctx, account.id, source=source) for source in (mail.Source.SMTP, mail.Source.API)
    ]
    newest, oldest = sorted(made, reverse=True)
    wanted = messages.Filters(source=mail.Source.SMTP if oldest == made[0] else mail.Source.API)
    part = await messages.page(ctx, account.id, wanted, limit=5, cursor=None, examined=1)
    assert (part.messages, part.next_cursor) == ([], newest)
    part = await messages.page(ctx, account.id, wanted, limit=5, cursor=newest, examined=1)
    assert [message.id for message in part.messages] == [oldest]


async def test_a_full_part_under_a_bound_goes_on_behind_its_last_message(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    made = []
    for _ in range(6):
        made.append(await accepted_mail.accept(ctx, account.id))
        clock.pass_seconds(1)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        part = await messages.search(ctx, account.id, "order", limit=2, cursor=cursor, examined=3)
        seen += [message.id for message in part.messages]
        cursor = part.next_cursor
        if cursor is None:
            break
    assert seen == made[::-1]
