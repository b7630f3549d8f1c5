"""Doors in processes of their own, so that the other cores take mail too.

They are forked before anything runs: no event loop, no thread, no file of the store. Their addresses are bound before
that, by the process that was started; the system spreads connections over them. That process is the keeper: it writes
what doors accept (services/writer/client.py), and has all other roles. A door that ends ends the service, as a role
that fails does, and doors whose keeper has gone end too: what starts the service again starts all of it.
"""

import os
import signal
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from postroad import config
from postroad.network import framing, listener
from postroad.roles import frontend, listeners, supervisor
from postroad.roles import role as roles_role
from postroad.telemetry import logs

# The roles that can be had in processes of their own, and the settings of their addresses.
ADDRESSES: Final[Mapping[str, Sequence[str]]] = {
    "api": ("http.listen",),
    "submission": ("submission.listen", "submission.tls_listen"),
}

Run = Callable[[Coroutine[Any, Any, None]], object]


@dataclass(frozen=True, slots=True)
class FrontendProcess:
    """A door in a process of its own, as its keeper knows it."""

    name: str
    process_id: int
    line: framing.SocketEnd


@dataclass(frozen=True, slots=True)
class Doors:
    """The doors that have processes of their own: what they do, where they listen, and the processes."""

    roles: Sequence[str] = ()
    addresses: roles_role.Addresses = field(default_factory=dict)
    children: Sequence[FrontendProcess] = ()


def start(settings: config.Settings, names: Sequence[str], *, run: Run, log: logs.Logger) -> Doors:
    """Bind the addresses of the doors among these roles, and fork. Raises CannotListen. Without doors there is none."""
    wanted = {
        setting: role for role in names for setting in ADDRESSES.get(role, ()) if listeners.is_set(settings, setting)
    }
    processes = settings.doors.processes or _cores()
    if not wanted or processes == 1:
        return Doors()
    roles = list(dict.fromkeys(wanted.values()))
    shared = frontend.divide_limits(settings, doors=processes)
    bound = {setting: listeners.bind(settings, setting, processes=processes) for setting in wanted}
    where = {listeners.LISTENERS[setting]: listener.address(each[0]) for setting, each in bound.items()}
    addresses = {what: config.Endpoint(*address) for what, address in where.items()}
    by_frontend = [{setting: each[number] for setting, each in bound.items()} for number in range(processes)]
    children: list[FrontendProcess] = []
    for number, own in enumerate(by_frontend):
        name = f"door {number + 1}"
        ours, theirs = framing.pair()
        process_id = os.fork()
        if not process_id:
            # What is another one's must end with that one: connections would wait at a socket that nobody serves.
            for end in (
                ours,
                *(child.line for child in children),
                *_sockets(by_frontend[:number] + by_frontend[number + 1 :]),
            ):
                end.close()
            work = frontend.run(shared, roles, own, theirs, processes=processes, log=log.bind(process=name))
            _run_frontend(run, work, log.bind(process=name))
        theirs.close()
        children.append(FrontendProcess(name, process_id, ours))
    for one in _sockets(by_frontend):
        one.close()
    return Doors(roles, addresses, children)


def _cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not every system has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _sockets(by_frontend: Iterable[Mapping[str, listener.BoundSockets]]) -> list[framing.SocketEnd]:
    return [one for own in by_frontend for bound in own.values() for one in bound]


def _run_frontend(run: Run, work: Coroutine[Any, Any, None], log: logs.Logger) -> None:
    """All that a forked process does; it never goes back to what its parent was about to do."""
    for number in supervisor.SIGNALS:
        # They are for the keeper, also when they come to the whole group: it says when to stop.
        signal.signal(number, signal.SIG_IGN)
    code = 1
    try:
        run(work)
        code = 0
    except BaseException:
        log.exception("door_failed")
    finally:
        os._exit(code)
