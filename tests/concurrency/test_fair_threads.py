"""Threads are shared: whoever has much to do, the next party's turn comes after one piece of work."""

import asyncio
import contextlib
import threading

import pytest

from postroad import errors
from postroad.concurrency import fairness


async def test_one_who_wants_much_is_passed_by_one_who_wants_little() -> None:
    threads = fairness.FairThreads(1, name="test")
    done: list[str] = []
    try:
        much = [asyncio.create_task(threads.run("greedy", lambda: done.append("greedy"))) for _ in range(100)]
        await asyncio.sleep(0)
        await threads.run("modest", lambda: done.append("modest"))
        assert done.index("modest") < 10
        await asyncio.gather(*much)
        assert len(done) == 101
    finally:
        threads.close()


async def test_somebody_else_finds_a_thread_free_while_one_waits_for_twenty() -> None:
    threads, may_end, begun = fairness.FairThreads(2, name="test", alpha=1), threading.Event(), list[str]()

    def long() -> None:
        begun.append("greedy")
        may_end.wait(60)

    try:
        much = [asyncio.create_task(threads.run("greedy", long)) for _ in range(20)]
        await asyncio.sleep(0)
        await threads.run("modest", lambda: begun.append("modest"))
        assert sorted(begun) == ["greedy", "modest"]
        may_end.set()
        await asyncio.gather(*much)
        assert begun.count("greedy") == 20
    finally:
        may_end.set()
        threads.close()


async def test_parties_get_equal_time_and_not_equal_turns() -> None:
    now = 0

    def work(party: str, units: int) -> None:
        nonlocal now
        now += units
        used[party] += units
        order.append(party)

    threads = fairness.FairThreads(1, name="test", clock=lambda: now)
    used, order = {"long": 0, "short": 0, "late": 0}, list[str]()
    try:
        long = [asyncio.create_task(threads.run("long", lambda: work("long", 100))) for _ in range(20)]
        short = [asyncio.create_task(threads.run("short", lambda: work("short", 1))) for _ in range(600)]
        await asyncio.gather(*short)
        # Until the last short one: the next one may have begun before this task goes on.
        until = order[: len(order) - order[::-1].index("short")]
        assert abs(100 * until.count("long") - 600) <= 100
        # Whoever was away gets no more for it, and whoever alone is left gets everything.
        late = [asyncio.create_task(threads.run("late", lambda: work("late", 1))) for _ in range(100)]
        await asyncio.gather(*late, *long)
        after = order[order.index("late") :]
        assert after.index("long") <= 101
        assert used == {"long": 2000, "short": 600, "late": 100}
    finally:
        threads.close()


async def test_a_result_and_an_error_reach_the_caller() -> None:
    threads = fairness.FairThreads(1, name="test")

    def fail() -> None:
        raise LookupError

    try:
        assert await threads.run("a", threading.current_thread) is not threading.main_thread()
        with pytest.raises(LookupError):
            await threads.run("a", fail)
    finally:
        threads.close()


async def test_a_thread_is_taken_until_its_work_is_done_also_when_the_caller_has_gone() -> None:
    threads, may_end, order = fairness.FairThreads(1, name="test"), threading.Event(), list[str]()

    def long() -> None:
        may_end.wait(60)
        order.append("long")

    try:
        gone = asyncio.create_task(threads.run("a", long))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(threads.run("b", lambda: order.append("next")))
        gone.cancel()
        await asyncio.sleep(0.01)
        assert not gone.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await gone
        await waiting
        assert order == ["long", "next"]
    finally:
        threads.close()


async def test_after_the_end_nothing_begins() -> None:
    threads = fairness.FairThreads(1, name="test")
    threads.close()
    with pytest.raises(errors.ServiceUnavailable):
        await threads.run("a", threading.current_thread)


async def test_work_in_a_thread_gives_its_result_or_its_error_until_it_is_closed() -> None:
    with contextlib.closing(fairness.WorkThread(name="test")) as thread:
        assert await thread.run(threading.get_ident) != threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            await thread.run(lambda: 1 // 0)
        last = thread.run(lambda: "last")
    assert await last == "last"
    with pytest.raises(RuntimeError, match="test is closed"):
        await thread.run(threading.get_ident)


def test_a_thread_outlives_an_event_loop_that_did_not_wait_for_it() -> None:
    may_end = threading.Event()

    async def begin() -> None:
        thread.run(may_end.wait)

    async def work() -> str:
        return await thread.run(lambda: "done")

    with contextlib.closing(fairness.WorkThread(name="test")) as thread:
        asyncio.run(begin())
        may_end.set()
        assert asyncio.run(work()) == "done"


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancelled_caller_waits_for_work_in_a_thread(*, fails: bool) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait()
        if fails:
            raise ZeroDivisionError

    async def wait() -> None:
        await thread.run(work)

    with contextlib.closing(fairness.WorkThread(name="test")) as thread:
        caller = asyncio.create_task(wait())
        try:
            while not begun.is_set():
                await asyncio.sleep(0.001)
            caller.cancel()
            for _ in range(10):
                await asyncio.sleep(0)
            assert not caller.done()
        finally:
            may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await caller
