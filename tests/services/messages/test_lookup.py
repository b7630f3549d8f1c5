"""Messages are read by their own account only: one, its details, its bytes, and the list with its filters."""

import email
import email.policy

import pytest

from postroad import context, errors
from postroad.model.mail import send_request, statuses
from postroad.services.messages import lookup as messages
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, contexts


async def listed(ctx: context.Context, account_id: str, **filters: object) -> list[str]:
    page = await messages.page(ctx, account_id, messages.Filters(**filters), limit=100, cursor=None)  # type: ignore[arg-type]
    assert page.next_cursor is None
    return [message.id for message in page.messages]


async def test_details_have_what_the_sender_gave(ctx: context.Context, shop: str) -> None:
    message_id = await accepted_mail.accept(
        ctx,
        shop,
        cc=("Cee <c@example.net>",),
        bcc=("d@example.net",),
        reply_to="help@example.com",
        headers={"X-Order": "7"},
        tags=("orders",),
        attachments=(send_request.Attachment("a.txt", "eHg="),),
    )
    found = await messages.details(ctx, shop, message_id)
    assert found.message.id == message_id
    assert len(found.recipients) == 3
    reported = found.receipt
    assert (reported.to, reported.cc, reported.bcc) == (
        ("ada@example.net",),
        ("Cee <c@example.net>",),
        ("d@example.net",),
    )
    assert (reported.reply_to, reported.headers, reported.tags) == ("help@example.com", {"X-Order": "7"}, ("orders",))
    assert [(one.filename, one.size) for one in reported.attachments] == [("a.txt", 2)]


async def test_the_bytes_are_the_message_without_its_bcc(ctx: context.Context, shop: str) -> None:
    message_id = await accepted_mail.accept(ctx, shop, bcc=("hidden@example.net",))
    raw = await messages.raw(ctx, shop, message_id)
    message, _ = await messages.find(ctx, shop, message_id)
    assert len(raw) == message.size
    assert email.message_from_bytes(raw, policy=email.policy.default)["To"] == "ada@example.net"
    assert b"hidden" not in raw


async def test_a_message_whose_body_is_not_kept_any_more_has_no_bytes(ctx: context.Context, shop: str) -> None:
    message_id = await accepted_mail.accept(ctx, shop)
    async with ctx.store.transaction() as tx:
        await tx.run_script("DELETE FROM bodies")
    assert (await messages.details(ctx, shop, message_id)).message.id == message_id
    with pytest.raises(errors.NotFound, match="no longer retained"):
        await messages.raw(ctx, shop, message_id)


async def test_the_list_comes_in_parts_newest_first_and_ends(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    made = []
    for _ in range(5):
        made.append(await accepted_mail.accept(ctx, shop))
        clock.pass_seconds(1)
    seen: list[str] = []
    cursor: str | None = None
    sizes = []
    while True:
        page = await messages.page(ctx, shop, messages.Filters(), limit=2, cursor=cursor)
        seen += [message.id for message in page.messages]
        sizes.append(len(page.messages))
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == made[::-1]
    assert sizes == [2, 2, 1]
    whole = await messages.page(ctx, shop, messages.Filters(), limit=5, cursor=None)
    assert (len(whole.messages), whole.next_cursor) == (5, None)


async def test_each_filter_chooses_and_all_work_together(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    plain = await accepted_mail.accept(ctx, shop)
    clock.pass_seconds(10)
    tagged = await accepted_mail.accept(ctx, shop, tags=("Orders", "50%_off"), to=("Bob <BOB@example.net>",))
    clock.pass_seconds(10)
    other = await accepted_mail.accept(
        ctx, shop, sender="Sale <SALE@example.com>", source=statuses.Source.TEST, tags=("Orders",)
    )
    everything = [other, tagged, plain]
    assert await listed(ctx, shop) == everything
    assert await listed(ctx, shop, status=statuses.MessageStatus.QUEUED) == everything
    assert await listed(ctx, shop, status=statuses.MessageStatus.DELIVERED) == []
    assert await listed(ctx, shop, source=statuses.Source.TEST) == [other]
    assert await listed(ctx, shop, sender="sale@EXAMPLE.com") == [other]
    assert await listed(ctx, shop, sender="shop@example.com") == [tagged, plain]
    assert await listed(ctx, shop, recipient="bob@example.net") == [tagged]
    assert await listed(ctx, shop, recipient="nobody@example.net") == []
    assert await listed(ctx, shop, tag="Orders") == [other, tagged]
    assert await listed(ctx, shop, tag="orders") == []
    assert await listed(ctx, shop, tag="50%_off") == [tagged]
    assert await listed(ctx, shop, tag="%") == []
    assert await listed(ctx, shop, tag="Orders", source=statuses.Source.TEST) == [other]
    assert await listed(ctx, shop, tag="Orders", recipient="bob@example.net") == [tagged]
    assert await listed(ctx, shop, tag="Orders", recipient="bob@example.net", source=statuses.Source.TEST) == []


async def test_times_choose_from_the_first_on_and_before_the_second(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    made, at = [], []
    for _ in range(3):
        at.append(clock.now)
        made.append(await accepted_mail.accept(ctx, shop))
        clock.pass_seconds(10)
    assert await listed(ctx, shop, after=at[1]) == [made[2], made[1]]
    assert await listed(ctx, shop, after=at[1] + 1) == [made[2]]
    assert await listed(ctx, shop, before=at[1]) == [made[0]]
    assert await listed(ctx, shop, before=at[1] + 1) == [made[1], made[0]]
    assert await listed(ctx, shop, after=at[1], before=at[2]) == [made[1]]
    assert await listed(ctx, shop, after=at[2], before=at[1]) == []
    assert await listed(ctx, shop, after=0, before=2**70) == made[::-1]


async def test_a_cursor_stays_within_the_times(ctx: context.Context, shop: str, clock: contexts.Clock) -> None:
    old = await accepted_mail.accept(ctx, shop)
    clock.pass_seconds(10)
    border = clock.now
    new = await accepted_mail.accept(ctx, shop)
    chosen = messages.Filters(before=border)
    page = await messages.page(ctx, shop, chosen, limit=10, cursor="em_" + "f" * 28)
    assert [message.id for message in page.messages] == [old]
    page = await messages.page(ctx, shop, messages.Filters(), limit=10, cursor=new)
    assert [message.id for message in page.messages] == [old]


async def test_impossible_filters_are_refused_naming_the_parameter(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    for field, chosen in (
        ("tag", messages.Filters(tag="")),
        ("tag", messages.Filters(tag="a\0b")),
        ("tag", messages.Filters(tag="a\nb")),
        ("tag", messages.Filters(tag="x" * 129)),
        ("from", messages.Filters(sender="a\0@example.com")),
        ("from", messages.Filters(sender="nobody")),
        ("to", messages.Filters(recipient="")),
        ("to", messages.Filters(recipient="' OR 1=1 --")),
    ):
        with pytest.raises(errors.InvalidRequest, match=rf"^{field}: "):
            await messages.page(ctx, account.id, chosen, limit=10, cursor=None)
    for cursor in ("", "em_", "em_" + "0" * 27 + "\0", "' OR 1=1 --", "x" * 100_000):
        with pytest.raises(errors.InvalidRequest, match=r"^cursor: "):
            await messages.page(ctx, account.id, messages.Filters(), limit=10, cursor=cursor)
