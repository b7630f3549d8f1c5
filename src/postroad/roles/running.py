"""How roles run: started one after the other, stopped together, by the first signal or by the first that fails."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final

from postroad.roles import duties

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
Start = Callable[[duties.Duty], Awaitable[duties.Started]]


class RoleFailed(Exception):
    """A role ended that should not have; the log says why."""


async def run_all(
    duty: duties.Duty, starts: Mapping[str, Start], *, announce: Callable[[duties.Addresses], None]
) -> None:
    """Run roles until they are to stop, or until one of them ends; `announce` when all have started."""
    started: dict[str, duties.Started] = {}
    failed: list[str] = []
    try:
        for name, start in starts.items():
            started[name] = await start(duty)
        announce({what: where for role in started.values() for what, where in role.addresses.items()})
    except BaseException:
        duty.stopping.set()
        raise
    finally:
        # Also after a failed start: those that have started stop in order, because `stopping` is set by then.
        async with asyncio.TaskGroup() as group:
            for name, role in started.items():
                group.create_task(_guard(name, role, duty, failed))
    if failed:
        raise RoleFailed(f"the role {failed[0]} failed, so the service has stopped; the log says why")


async def _guard(name: str, role: duties.Started, duty: duties.Duty, failed: list[str]) -> None:
    """One role's work; when it ends, for whatever reason, the others stop too."""
    try:
        await role.work()
    except Exception:
        duty.log.exception("role_failed", role=name)
        failed.append(name)
    else:
        if not duty.stopping.is_set():
            duty.log.error("role_ended", role=name)
            failed.append(name)
    finally:
        duty.stopping.set()


@contextlib.contextmanager
def stopped_by_signals(duty: duties.Duty) -> Iterator[None]:
    """The first signal stops the roles; a second one is the system's own affair."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def stop(number: signal.Signals) -> None:
        duty.log.info("stopping", signal=number.name)
        duty.stopping.set()
        for each in SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)

    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
