"""The writer process and its frontends, so that accepting mail uses all CPU cores."""

import asyncio
import contextlib
import functools
import os
import signal
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from postroad import config, errors
from postroad.mail.accept import transaction, writer_protocol
from postroad.network import framing, listener, service_manager
from postroad.roles import frontend, listeners, supervisor
from postroad.roles import role as roles_role
from postroad.storage.people import credentials
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
    load: supervisor.Load | None = None,
    log: logs.Logger,
) -> Frontends:
    """Bind the listen addresses of these roles and fork the frontends, if any. Raises CannotListen.

    `inherited` are sockets that are bound already, by setting; `load` reads the settings again.
    """
    wanted = {
        setting: role for role in names for setting in ADDRESSES.get(role, ()) if listeners.is_set(settings, setting)
    }
    processes = settings.http.processes or _cores()
    if not wanted or processes == 1:
        return Frontends()
    roles = list(dict.fromkeys(wanted.values()))
    shared = frontend.divide_limits(settings, frontends=processes)
    bound = {
        setting: service_manager.divide_sockets(inherited[setting], processes=processes)
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
    for socket in _sockets(by_frontend):
        socket.close()
    return Frontends(roles, addresses, children)


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _sockets(by_frontend: Iterable[Mapping[str, listener.BoundSockets]]) -> list[framing.SocketEnd]:
    return [socket for own in by_frontend for bound in own.values() for socket in bound]


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


# How long a frontend may take to open the store and listen, on a busy machine.
START_SECONDS: Final = 60.0
# Added to the grace period before a frontend is killed.
END_SECONDS: Final = 5.0


async def start_writer(role_context: roles_role.RoleContext, *, frontends: Frontends) -> roles_role.Started:
    """Start the frontends; returns when all of them listen."""
    connections = [FrontendConnection(role_context, child) for child in frontends.children]
    for connection in connections:
        await connection.connect()
    try:
        async with asyncio.timeout(START_SECONDS):
            await asyncio.gather(*(connection.ready for connection in connections))
    except BaseException as problem:
        await _stop(connections, seconds=END_SECONDS)
        if isinstance(problem, TimeoutError):
            raise roles_role.StartError(f"a frontend did not start within {START_SECONDS:.0f} seconds") from None
        raise

    async def work() -> None:
        reloads = asyncio.create_task(_pass_on_reloads(role_context, connections))
        drain = asyncio.create_task(_pass_on_drain(role_context, connections))
        stop = asyncio.create_task(role_context.stopping.wait())
        gone = [asyncio.create_task(connection.gone.wait()) for connection in connections]
        try:
            await asyncio.wait([stop, *gone], return_when=asyncio.FIRST_COMPLETED)
            for connection in connections:
                if connection.gone.is_set() and not role_context.stopping.is_set():
                    role_context.log.error("frontend_lost", frontend=connection.child.name)
        finally:
            for task in (reloads, drain, stop, *gone):
                task.cancel()
            await _stop(connections, seconds=role_context.context.settings.shutdown.grace_seconds + END_SECONDS)

    return roles_role.Started(work, frontends.addresses)


async def _pass_on_reloads(role_context: roles_role.RoleContext, connections: list["FrontendConnection"]) -> None:
    while True:
        await role_context.reloaded.wait()
        role_context.reloaded.clear()
        for connection in connections:
            connection.send(writer_protocol.Reload())


async def _pass_on_drain(role_context: roles_role.RoleContext, connections: list["FrontendConnection"]) -> None:
    await role_context.draining.wait()
    for connection in connections:
        connection.send(writer_protocol.Drain())


async def _stop(connections: list["FrontendConnection"], *, seconds: float) -> None:
    """Stop all frontends; those that do not exit in time are killed."""
    ends: dict[asyncio.Task[object], FrontendConnection] = {}
    for connection in connections:
        connection.send(writer_protocol.Stop())
        ends[asyncio.create_task(asyncio.to_thread(os.waitpid, connection.child.process_id, 0))] = connection
    _, late = await asyncio.wait(ends, timeout=seconds)
    for end in late:
        with contextlib.suppress(ProcessLookupError):  # it has just exited
            os.kill(ends[end].child.process_id, signal.SIGKILL)
    await asyncio.wait(ends)


class FrontendConnection:
    """The writer's connection to one frontend."""

    def __init__(self, role_context: roles_role.RoleContext, child: FrontendProcess) -> None:
        self.child = child
        self.gone = asyncio.Event()
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._role_context = role_context
        self._ctx = role_context.context
        self._channel: writer_protocol.Channel | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        self._channel = writer_protocol.Channel(
            await framing.connect(self.child.channel, self._on_frame, self._on_disconnect)
        )
        self._channel.send(writer_protocol.StoreReady())

    def _on_frame(self, frame: memoryview) -> None:
        for message in writer_protocol.decode_from_frontend(frame):
            match message:
                case (
                    writer_protocol.Submit(number, entry)
                    | writer_protocol.SubmitBatch(number, entry)
                    | writer_protocol.CountRefused(number, entry)
                ):
                    self._accept(number, entry)
                case writer_protocol.MetricsSnapshot(counts):
                    self._ctx.metrics.others[self.child.name] = counts
                case writer_protocol.MetricsRequest(number):
                    self._begin(self._send_metrics(number))
                case writer_protocol.Probe(number):
                    self._begin(self._probe(number))
                case writer_protocol.Wakeup():
                    self._wake(message)
                case writer_protocol.Ready() | writer_protocol.StartFailed():
                    self._started(message)

    def _started(self, message: writer_protocol.Ready | writer_protocol.StartFailed) -> None:
        if self.ready.done():  # start has already failed or timed out
            return
        if isinstance(message, writer_protocol.StartFailed):
            self.ready.set_exception(roles_role.StartError(message.reason))
        else:
            self.ready.set_result(None)

    def _wake(self, message: writer_protocol.Wakeup) -> None:
        if message.mail:
            self._ctx.mail_wakeup.set()
        if message.events:
            self._ctx.webhook_wakeup.set()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _accept(self, number: int, entry: transaction.Entry) -> None:
        try:
            answer = self._ctx.accept_commits.start(entry, party=entry.account_id, size=entry.size, count=entry.work)
        except errors.PostroadError as refusal:
            self.send(writer_protocol.rejection_of(number, refusal))
        else:
            answer.add_done_callback(functools.partial(self._answer, number))

    def _answer(self, number: int, answer: asyncio.Future[transaction.Accepted | transaction.Counted]) -> None:
        problem = answer.exception()
        if problem is None:
            self.send(writer_protocol.SubmitOk(number, answer.result()))
        elif isinstance(problem, errors.PostroadError):
            self.send(writer_protocol.rejection_of(number, problem))
        else:
            self._role_context.log.error("acceptance_failed", exc_info=problem)
            self.send(writer_protocol.rejection_of(number, errors.InternalError("internal error; see the log")))

    async def _send_metrics(self, number: int) -> None:
        try:
            self.send(writer_protocol.MetricsReply(number, await self._role_context.render_metrics()))
        except Exception:
            self._role_context.log.exception("metrics_failed")

    async def _probe(self, number: int) -> None:
        try:
            await self._ctx.accept_commits.recover(credentials.bump_access_version)
        except errors.PostroadError as error:
            self.send(writer_protocol.rejection_of(number, error))
        except Exception:
            self._role_context.log.exception("probe_failed")
        else:
            self.send(writer_protocol.ProbeOk(number))

    def send(self, what: writer_protocol.WireMessage) -> None:
        if self._channel is not None:
            self._channel.send(what)

    def _on_disconnect(self) -> None:
        self.gone.set()
        if not self.ready.done():
            self.ready.set_exception(roles_role.StartError("a frontend exited before it had started; see the log"))
