"""Files are handed over in parts, hold a place while they are, and give it back however it ends."""

import asyncio
import gc

import pytest

from postroad import context, errors
from postroad.model.delivery import fair_shares
from postroad.services.messages import previews

ACCOUNT = "acc_a"
LARGE = bytes(range(256)) * 1024 + b"the end"


def reading(content: bytes) -> previews.Read:
    async def read() -> previews.Download:
        return previews.Download("a.bin", "application/octet-stream", content)

    return read


async def begin(ctx: context.Context, content: bytes = LARGE, account_id: str = ACCOUNT) -> previews.StartedDownload:
    return await previews.begin_download(ctx, account_id, reading(content))


async def begin_parts(ctx: context.Context, account_id: str = ACCOUNT) -> previews.Parts:
    body = (await begin(ctx, account_id=account_id)).body
    assert not isinstance(body, bytes)
    return body


async def test_a_large_file_comes_in_parts_in_its_order_and_holds_a_place(ctx: context.Context) -> None:
    begun = await begin(ctx)
    assert (begun.filename, begun.content_type, begun.size) == ("a.bin", "application/octet-stream", len(LARGE))
    assert not isinstance(begun.body, bytes)
    collected = []
    async for part in begun.body:
        assert ctx.work_in_progress[previews.DOWNLOADS.name].held(fair_shares.Party(ACCOUNT)) == 1
        collected.append(part)
    assert [len(part) for part in collected] == [64 * 1024] * 4 + [len(b"the end")]
    assert b"".join(collected) == LARGE
    assert not ctx.work_in_progress


@pytest.mark.parametrize("content", [b"", b"x", b"x" * (256 * 1024)])
async def test_a_small_file_comes_whole_and_holds_none(ctx: context.Context, content: bytes) -> None:
    begun = await begin(ctx, content)
    assert (begun.body, begun.size) == (content, len(content))
    assert not ctx.work_in_progress


async def test_the_place_is_taken_before_the_file_is_read(ctx: context.Context) -> None:
    held = [await begin_parts(ctx) for _ in range(8)]

    async def read() -> previews.Download:
        raise AssertionError("nothing may be read without a place")

    with pytest.raises(errors.RateLimited) as refused:
        await previews.begin_download(ctx, ACCOUNT, read)
    assert refused.value.retry_after == 5
    await (await begin_parts(ctx, "acc_b")).aclose()
    await held.pop().aclose()
    await (await begin_parts(ctx)).aclose()
    for parts in held:
        await parts.aclose()
    assert not ctx.work_in_progress


async def test_who_leaves_while_the_file_is_read_holds_no_place(ctx: context.Context) -> None:
    begun = asyncio.Event()

    async def read() -> previews.Download:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.create_task(previews.begin_download(ctx, ACCOUNT, read))
    await begun.wait()
    assert ctx.work_in_progress
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ctx.work_in_progress


async def test_parts_that_nobody_asks_for_give_their_place_back(ctx: context.Context) -> None:
    parts = await begin_parts(ctx)
    await parts.aclose()
    assert not ctx.work_in_progress
    forgotten = await begin_parts(ctx)
    del forgotten
    gc.collect()
    async with asyncio.timeout(30):
        while ctx.work_in_progress:
            await asyncio.sleep(0)


async def test_a_download_that_takes_too_long_is_broken_off(ctx: context.Context) -> None:
    begun = await previews.begin_download(ctx, ACCOUNT, reading(LARGE), seconds=0)
    assert not isinstance(begun.body, bytes)
    with pytest.raises(errors.ServiceUnavailable, match="too slowly"):
        await anext(begun.body)
    assert not ctx.work_in_progress
