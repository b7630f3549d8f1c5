"""Frontend processes, so that accepting mail uses all CPU cores.

The started process binds the listen addresses, forks the frontends and becomes the writer: it commits what they accept
(services/writer/client.py) and runs all other roles. The fork comes before any event loop, thread or open store. The
kernel distributes connections over the frontends. A frontend that exits stops the service, like a role that fails, and
frontends exit when the writer is gone, so a supervisor always restarts all of them.
"""

import os
import signal
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from postroad import config
from postroad.network import framing, inherited_sockets, listener
from postroad.roles import frontend, listeners, reload, supervisor
from postroad.roles import role as roles_role
from postroad.telemetry import logs

# The roles that can run in frontends, and the settings of their listen addresses.
ADDRESSES: Final[Mapping[str, Sequence[str]]] = {
    "api": ("http.listen", "http.redirect_listen"),
    "submission": ("submission.listen", "submission.tls_listen"),
}

Run = Callable[[Coroutine[Any, Any, None]], object]


class FrontendProcess(msgspec.Struct, frozen=True):
    """A forked frontend, as the writer sees it."""

    name: str
    process_id: int
    channel: framing.SocketEnd


class Frontends(msgspec.Struct, frozen=True):
    """The frontends: their roles, their listen addresses and their processes."""

    roles: Sequence[str] = ()
    addresses: roles_role.Addresses = msgspec.field(default_factory=dict)
    children: Sequence[FrontendProcess] = ()


def start(
    settings: config.Settings,
    names: Sequence[str],
    *,
    inherited: Mapping[str, listener.BoundSockets],
    run: Run,
    load: reload.Load | None = None,
    log: logs.Logger,
) -> Frontends:
    """Bind the listen addresses of these roles and fork the frontends, if any. Raises CannotListen.

    `inherited` are sockets that are bound already, by setting; `load` reads the settings again.
    """
    wanted = {
        setting: role for role in names for setting in ADDRESSES.get(role, ()) if listeners.is_set(settings, setting)
    }
    processes = settings.frontends.processes or _cores()
    if not wanted or processes == 1:
        return Frontends()
    roles = list(dict.fromkeys(wanted.values()))
    shared = frontend.divide_limits(settings, frontends=processes)
    bound = {
        setting: inherited_sockets.divide(inherited[setting], processes=processes)
        if setting in inherited
        else listeners.bind(settings, setting, processes=processes)
        for setting in wanted
    }
    where = {listeners.LISTENERS[setting]: listener.address(each[0]) for setting, each in bound.items()}
    addresses = {what: config.Endpoint(*address) for what, address in where.items()}
    by_frontend = [{setting: each[number] for setting, each in bound.items()} for number in range(processes)]
    children: list[FrontendProcess] = []
    for number, own in enumerate(by_frontend):
        name = f"frontend {number + 1}"
        ours, theirs = framing.pair()
        process_id = os.fork()
        if not process_id:
            # Close the sockets of the others: the kernel would queue connections on a copy that nobody accepts from.
            for end in (
                ours,
                *(child.channel for child in children),
                *_sockets(by_frontend[:number] + by_frontend[number + 1 :]),
            ):
                end.close()
            work = frontend.run(shared, roles, own, theirs, processes=processes, load=load, log=log.bind(process=name))
            _run_frontend(run, work, log.bind(process=name))
        theirs.close()
        children.append(FrontendProcess(name, process_id, ours))
    for one in _sockets(by_frontend):
        one.close()
    return Frontends(roles, addresses, children)


def _cores() -> int:
    """The number of CPU cores available to this process."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _sockets(by_frontend: Iterable[Mapping[str, listener.BoundSockets]]) -> list[framing.SocketEnd]:
    return [one for own in by_frontend for bound in own.values() for one in bound]


def _run_frontend(run: Run, work: Coroutine[Any, Any, None], log: logs.Logger) -> None:
    """Run a forked frontend and exit; it never returns into the code of its parent."""
    for number in (*supervisor.SIGNALS, signal.SIGHUP):
        # A terminal signals the whole process group; the writer decides when frontends stop.
        signal.signal(number, signal.SIG_IGN)
    code = 1
    try:
        run(work)
        code = 0
    except BaseException:
        log.exception("frontend_failed")
    finally:
        os._exit(code)
