"""Poll loops sleep for a minimum time, wake on request, and end within their grace period."""

import asyncio

from postroad.concurrency import poll_loop


async def test_a_poll_loop_waits_for_work_until_it_is_woken() -> None:
    wake = asyncio.Event()
    waiting = asyncio.create_task(poll_loop.wait_for_work(wake, milliseconds=60_000))
    await asyncio.sleep(0)
    assert not waiting.done()
    wake.set()
    await waiting
    assert not wake.is_set()


async def test_a_walk_looks_again_by_itself() -> None:
    await poll_loop.wait_for_work(asyncio.Event(), milliseconds=1)


async def test_a_step_that_ends_in_the_grace_time_is_not_cut_off() -> None:
    async def step() -> None:
        await asyncio.sleep(0)

    walk = asyncio.create_task(step())
    await poll_loop.stop(walk, poll_loop.GracePeriod(60))
    assert not walk.cancelled()


async def test_a_step_that_does_not_is_cut_off() -> None:
    async def step() -> None:
        await asyncio.Event().wait()

    walk, grace = asyncio.create_task(step()), poll_loop.GracePeriod(0)
    await poll_loop.stop(walk, grace)
    assert walk.cancelled()
    assert (grace.remaining, grace.remaining_for_recording) == (0, poll_loop.RECORDING_SECONDS)
