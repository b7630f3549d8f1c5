"""Tasks that begin at once: what needs no wait is done when `start` returns, without a turn of the event loop."""

import asyncio
import sys
import types
from collections.abc import Coroutine, Generator
from typing import Any


def start(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
    """Run as far as the first wait; returns the task of the rest, None if there is none.

    Within another task the whole work is a task that begins later: otherwise a chain of them would nest.
    """
    if asyncio.current_task(loop) is not None:
        return loop.create_task(work)
    if sys.version_info >= (3, 12):
        task = asyncio.Task(work, loop=loop, eager_start=True)
        return None if task.done() else task
    return _start_by_hand(work, loop)


if sys.version_info < (3, 12):

    def _start_by_hand(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
        """The same for asyncio without eager tasks: the task exists before, because a timeout asks for it."""
        first = _FirstStep()
        task = loop.create_task(_rest(work, first))
        asyncio.tasks._enter_task(loop, task)  # noqa: SLF001 - documented, for implementations of tasks
        try:
            first.awaited = work.send(None)
        except StopIteration:
            first.is_last = True
        except BaseException as problem:  # noqa: BLE001 - the task has it
            first.problem = problem
        finally:
            asyncio.tasks._leave_task(loop, task)  # noqa: SLF001
        return None if first.is_last else task

    class _FirstStep:
        """What the first step of some work came to."""

        __slots__ = ("awaited", "is_last", "problem")

        def __init__(self) -> None:
            self.awaited: Any = None
            self.is_last = False
            self.problem: BaseException | None = None

    @types.coroutine
    def _rest(work: Coroutine[Any, Any, None], first: _FirstStep) -> Generator[Any, Any, None]:
        """The steps after the first: as `yield from`, for what has begun."""
        if first.is_last:
            return
        if first.problem is not None:
            raise first.problem
        awaited = first.awaited
        while True:
            problem: BaseException | None = None
            try:
                yield awaited
            except GeneratorExit:
                work.close()
                raise
            except BaseException as thrown:  # noqa: BLE001 - a cancellation, or the error of what was awaited
                problem = thrown
            try:
                awaited = work.send(None) if problem is None else work.throw(problem)
            except StopIteration:
                return
