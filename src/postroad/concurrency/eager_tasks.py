"""Tasks that begin at once: what needs no wait is done when `start` returns, without a turn of the event loop."""

import asyncio
import contextvars
import sys
from collections.abc import Coroutine, Generator
from typing import Any


def start(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
    """Run as far as the first wait; returns the task of the rest, None if there is none.

    Within a task, the work becomes a task that begins later, so that chains do not nest.
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
        begun, context = _Begun(work), contextvars.copy_context()
        task = loop.create_task(begun, context=context)
        asyncio.tasks._enter_task(loop, task)  # noqa: SLF001 - documented, for implementations of tasks
        try:
            begun.awaited = context.run(work.send, None)
        except BaseException as problem:  # noqa: BLE001 - the task has it
            begun.problem = problem
        finally:
            asyncio.tasks._leave_task(loop, task)  # noqa: SLF001
        return None if isinstance(begun.problem, StopIteration) else task

    class _Begun(Coroutine[Any, Any, None]):
        """Work whose first step has been made: the first step of its task repeats what came of it."""

        __slots__ = ("_is_repeated", "_late", "_work", "awaited", "problem")

        def __init__(self, work: Coroutine[Any, Any, None]) -> None:
            self._work = work
            self._is_repeated = False
            # A cancellation that what is awaited has refused: it is thrown when that is done.
            self._late: BaseException | None = None
            self.awaited: Any = None
            self.problem: BaseException | None = None

        def __await__(self) -> Generator[Any, Any, None]:
            raise NotImplementedError  # only a task steps it

        def send(self, value: None) -> Any:  # noqa: ANN401 - what the work awaits
            if not self._is_repeated:
                return self._repeat()
            if self._late is not None:
                late, self._late = self._late, None
                return self._work.throw(late)
            return self._work.send(value)

        def throw(self, *thrown: Any) -> Any:  # noqa: ANN401 - as a coroutine has it
            if self._is_repeated:
                self._late = None
                return self._work.throw(*thrown)
            # Cancelled before the loop has turned. As in any task, the work hears of it from what it awaits.
            awaited = self._repeat()
            if awaited is None or awaited.done():
                return self._work.throw(*thrown)
            if not awaited.cancel():
                self._late = thrown[0]
            return awaited

        def close(self) -> None:
            self._work.close()

        def _repeat(self) -> Any:  # noqa: ANN401 - as `send`
            self._is_repeated = True
            # Kept no longer: an error refers to the frames of the work, and the work perhaps to its task.
            awaited, problem = self.awaited, self.problem
            self.awaited = self.problem = None
            if problem is not None:
                try:
                    raise problem
                finally:
                    del problem
            return awaited
