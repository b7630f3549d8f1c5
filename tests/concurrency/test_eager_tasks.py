"""Work begins at once: what does not wait is done when `start` returns, and the rest of what waits is a task."""

import asyncio
import contextlib
import contextvars
import gc
import weakref
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
import uvloop

from postroad.concurrency import eager_tasks

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    with contextlib.closing(request.param()) as created:
        yield created


def in_callback(loop: asyncio.AbstractEventLoop, call: Callable[[], T]) -> T:
    """What a callback of the loop returns, such as one of a transport: no task is running there."""
    returned: list[T] = []

    def callback() -> None:
        try:
            assert asyncio.current_task() is None
            returned.append(call())
        finally:
            loop.stop()

    loop.call_soon(callback)
    loop.run_forever()
    return returned[0]


def started(loop: asyncio.AbstractEventLoop, work: Work) -> asyncio.Task[None] | None:
    return in_callback(loop, lambda: eager_tasks.start(work(), loop))


def run_out(loop: asyncio.AbstractEventLoop) -> None:
    """Let everything run that can run."""
    for _ in range(5):
        loop.run_until_complete(asyncio.sleep(0))


class Steps:
    """Work whose steps are counted, with a wait between them."""

    def __init__(self, waits: int) -> None:
        self.waits = waits
        self.steps = 0
        self.tasks: set[asyncio.Task[Any] | None] = set()
        self.go_on: list[asyncio.Future[None]] = []
        self.thrown: list[BaseException] = []

    async def __call__(self) -> None:
        for _ in range(self.waits):
            self.note()
            self.go_on.append(asyncio.get_running_loop().create_future())
            try:
                await self.go_on[-1]
            except BaseException as problem:
                self.thrown.append(problem)
                raise
        self.note()

    def note(self) -> None:
        self.steps += 1
        self.tasks.add(asyncio.current_task())


def test_what_does_not_wait_is_done_at_once_and_leaves_no_task(loop: asyncio.AbstractEventLoop) -> None:
    work = Steps(waits=0)

    def start() -> tuple[asyncio.Task[None] | None, int]:
        return eager_tasks.start(work(), loop), work.steps

    assert in_callback(loop, start) == (None, 1)
    run_out(loop)
    assert work.steps == 1
    assert asyncio.all_tasks(loop) == set()


def test_what_waits_is_begun_at_once_and_its_rest_is_one_task(loop: asyncio.AbstractEventLoop) -> None:
    work = Steps(waits=2)
    task = in_callback(loop, lambda: (eager_tasks.start(work(), loop), work.steps))
    assert task[1] == 1
    assert task[0] is not None
    for steps in (1, 2):
        run_out(loop)
        assert (work.steps, task[0].done()) == (steps, False)
        work.go_on[-1].set_result(None)
    loop.run_until_complete(task[0])
    assert work.steps == 3
    assert work.tasks == {task[0]}


def test_a_bare_yield_is_a_turn_of_the_loop(loop: asyncio.AbstractEventLoop) -> None:
    turns: list[str] = []

    async def work() -> None:
        turns.append("begun")
        await asyncio.sleep(0)
        turns.append("ended")

    task = started(loop, work)
    assert task is not None
    loop.run_until_complete(task)
    assert turns == ["begun", "ended"]


@pytest.mark.parametrize("is_run", [True, False])
def test_a_cancellation_reaches_the_work(loop: asyncio.AbstractEventLoop, is_run: bool) -> None:  # noqa: FBT001
    """Also one that comes before the loop has turned."""
    work = Steps(waits=1)
    task = started(loop, work)
    assert task is not None
    if is_run:
        run_out(loop)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    assert (work.steps, task.cancelled()) == (1, True)
    assert [type(problem) for problem in work.thrown] == [asyncio.CancelledError]
    assert work.go_on[0].cancelled()


def test_a_cancellation_that_is_refused_waits_for_what_the_work_awaits(loop: asyncio.AbstractEventLoop) -> None:
    """As with a thread: what the work holds is in use until then."""
    seen: list[bool] = []

    class Refusing(asyncio.Future[None]):
        def cancel(self, msg: object = None) -> bool:
            return False

    awaited = Refusing(loop=loop)

    async def work() -> None:
        try:
            await awaited
        finally:
            seen.append(awaited.done())

    task = started(loop, work)
    assert task is not None
    task.cancel()
    run_out(loop)
    assert (seen, task.done()) == ([], False)
    awaited.set_result(None)
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    assert seen == [True]


def test_nothing_is_kept_of_work_that_failed(loop: asyncio.AbstractEventLoop) -> None:
    """Its error refers to its frames, and these perhaps to its task: such a circle would keep a body for long."""
    kept: dict[str, Any] = {}
    held = weakref.WeakValueDictionary[str, Steps]()

    async def work() -> None:
        body = held["body"] = Steps(waits=0)
        kept["failing"] = asyncio.get_running_loop().create_future()
        with contextlib.suppress(ZeroDivisionError):
            await kept["failing"]
        assert body is not None

    gc.disable()
    try:
        kept["task"] = started(loop, work)
        run_out(loop)
        kept["failing"].set_exception(ZeroDivisionError())
        loop.run_until_complete(kept["task"])
        del kept["failing"]
        assert "body" not in held
    finally:
        gc.enable()


def test_work_may_answer_a_cancellation_and_end(loop: asyncio.AbstractEventLoop) -> None:
    async def work() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    task = started(loop, work)
    assert task is not None
    run_out(loop)
    task.cancel()
    loop.run_until_complete(task)
    assert not task.cancelled()


def test_the_error_of_what_is_awaited_reaches_the_work(loop: asyncio.AbstractEventLoop) -> None:
    work = Steps(waits=1)
    task = started(loop, work)
    assert task is not None
    problem = ZeroDivisionError()
    run_out(loop)
    work.go_on[0].set_exception(problem)
    with pytest.raises(ZeroDivisionError):
        loop.run_until_complete(task)
    assert work.thrown == [problem]


def test_an_error_of_the_first_step_does_not_reach_the_caller(loop: asyncio.AbstractEventLoop) -> None:
    reported: list[Any] = []
    loop.set_exception_handler(lambda _loop, context: reported.append(context["exception"]))
    problem = ZeroDivisionError()

    async def work() -> None:
        raise problem

    task = started(loop, work)
    run_out(loop)
    if task is not None:
        assert task.exception() is problem
    else:
        assert reported == [problem]


def test_a_timeout_that_begins_in_the_first_step_ends_the_work(loop: asyncio.AbstractEventLoop) -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            ended.append("timeout")

    task = started(loop, work)
    assert task is not None
    loop.run_until_complete(task)
    assert ended == ["timeout"]
    assert not task.cancelled()


def test_the_loop_has_no_current_task_afterwards(loop: asyncio.AbstractEventLoop) -> None:
    for waits in (0, 1):
        task = in_callback(loop, lambda: (eager_tasks.start(Steps(waits)(), loop), asyncio.current_task()))  # noqa: B023
        assert task[1] is None
        if task[0] is not None:
            task[0].cancel()
    run_out(loop)


def test_within_another_task_the_work_begins_later(loop: asyncio.AbstractEventLoop) -> None:
    work = Steps(waits=0)

    async def outer() -> None:
        task = eager_tasks.start(work(), loop)
        assert (work.steps, asyncio.current_task()) == (0, outer_task)
        assert task is not None
        await task
        assert work.tasks == {task}

    outer_task = loop.create_task(outer())
    loop.run_until_complete(outer_task)
    assert work.steps == 1


def test_within_work_that_begins_at_once_other_work_begins_later(loop: asyncio.AbstractEventLoop) -> None:
    inner = Steps(waits=0)
    begun: list[int] = []

    async def outer() -> None:
        eager_tasks.start(inner(), loop)
        begun.append(inner.steps)

    in_callback(loop, lambda: eager_tasks.start(outer(), loop))
    run_out(loop)
    assert (begun, inner.steps) == ([0], 1)


def test_a_context_variable_of_the_work_is_kept_and_stays_its_own(loop: asyncio.AbstractEventLoop) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")
    seen: list[str] = []

    async def work() -> None:
        variable.set("inside")
        await asyncio.sleep(0)
        seen.append(variable.get())

    task, outside = in_callback(loop, lambda: (eager_tasks.start(work(), loop), variable.get()))
    assert task is not None
    loop.run_until_complete(task)
    assert (seen, outside) == (["inside"], "outside")


def test_work_that_is_let_go_is_closed(loop: asyncio.AbstractEventLoop) -> None:
    loop.set_exception_handler(lambda _loop, _context: None)
    closed: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    task = started(loop, work)
    assert task is not None
    run_out(loop)
    task.get_coro().close()
    assert closed == [True]
