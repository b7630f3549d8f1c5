"""Runs roles: started one by one, stopped together by the first signal or the first failure."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final

from postroad.roles import file_limit, reload
from postroad.roles import role as roles_role

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
Start = Callable[[roles_role.RoleContext], Awaitable[roles_role.Started]]


class RoleFailed(Exception):
    """A role ended unexpectedly; the log has the reason."""


async def run_all(
    role_context: roles_role.RoleContext,
    starts: Mapping[str, Start],
    *,
    announce: Callable[[roles_role.Addresses], None],
) -> None:
    """Run roles until `stopping` is set or one of them ends; call `announce` when all have started."""
    started: dict[str, roles_role.Started] = {}
    failed: list[str] = []
    try:
        for name, start in starts.items():
            started[name] = await start(role_context)
        announce({what: where for role in started.values() for what, where in role.addresses.items()})
    except BaseException:
        role_context.stopping.set()
        raise
    finally:
        # Also after a failed start: `stopping` is set by then, so the roles that have started shut down.
        async with file_limit.watched(role_context.log), asyncio.TaskGroup() as group:
            for name, role in started.items():
                group.create_task(_run_role(name, role, role_context, failed))
    if failed:
        raise RoleFailed(f"the role {failed[0]} failed and the service has stopped; see the log")


async def _run_role(
    name: str, role: roles_role.Started, role_context: roles_role.RoleContext, failed: list[str]
) -> None:
    """Run one role; when it ends for any reason, the others stop too."""
    try:
        await role.work()
    except Exception:
        role_context.log.exception("role_failed", role=name)
        failed.append(name)
    else:
        if not role_context.stopping.is_set():
            role_context.log.error("role_ended", role=name)
            failed.append(name)
    finally:
        role_context.stopping.set()


@contextlib.contextmanager
def stopped_by_signals(role_context: roles_role.RoleContext, notify: Callable[[str], None]) -> Iterator[None]:
    """The first signal stops the roles, after `http.drain_seconds`; a second one has its default action."""
    loop = asyncio.get_running_loop()
    drain_seconds = role_context.context.settings.http.drain_seconds
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def stop(number: signal.Signals) -> None:
        # First of all: whoever reads that it is stopping may send the second signal at once.
        for each in SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        role_context.log.info("stopping", signal=number.name, drain_seconds=drain_seconds)
        notify("STOPPING=1")
        role_context.draining.set()
        loop.call_later(drain_seconds, role_context.stopping.set)

    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


@contextlib.contextmanager
def reloading(role_context: roles_role.RoleContext, load: reload.Load | None) -> Iterator[None]:
    """SIGHUP reads the settings again, if they can be; otherwise it has its default action."""
    if load is None:
        yield
        return

    def apply() -> None:
        reload.reload(role_context.context, load, log=role_context.log)
        role_context.reloaded.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, apply)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
