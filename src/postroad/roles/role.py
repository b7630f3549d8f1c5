"""The interface of a role: what it is given, what it returns once started, and why it may fail to start."""

import asyncio
import contextlib
import errno
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from postroad import config
from postroad import context as services_context
from postroad.concurrency import poll_loop
from postroad.network import listener
from postroad.services.messages import dev_inbox
from postroad.telemetry import logs

if TYPE_CHECKING:
    from postroad.services.operations import certificates

Addresses = Mapping[str, config.Endpoint]


class StartError(Exception):
    """A role cannot start; the message says why."""


class CannotListen(StartError):
    """An address cannot be bound; `setting` names it, if known."""

    def __init__(self, message: str, *, setting: str) -> None:
        super().__init__(message)
        self.setting = setting


class RoleContext(msgspec.Struct, frozen=True):
    """The input of a role."""

    context: services_context.Context
    log: logs.Logger
    stopping: asyncio.Event
    # The metrics of all processes of the service, in Prometheus text format.
    render_metrics: Callable[[], Awaitable[bytes]]
    # Set before `stopping`, so that load balancers send new connections elsewhere; until then, everything works.
    draining: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    # Set when the settings of this process were read again, for its frontends.
    reloaded: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    # Sockets that are already bound, by the names of their settings.
    bound: Mapping[str, listener.BoundSockets] = msgspec.field(default_factory=dict)
    # The number of frontend processes, including this one.
    frontend_processes: int = 1
    # The certificate of `acme.names`, if there are any.
    acme: "certificates.AcmeCertificate | None" = None
    # The inbox of the mailbox simulator, in `postroad dev`.
    mail: dev_inbox.Inbox | None = None

    def is_draining(self) -> bool:
        return self.draining.is_set() or self.stopping.is_set()


class Started(msgspec.Struct, frozen=True):
    """A started role: its listen addresses, and its work, which ends soon after `stopping` is set."""

    work: Callable[[], Awaitable[None]]
    addresses: Addresses = msgspec.field(default_factory=dict)


async def sleep(role_context: RoleContext, seconds: float) -> None:
    """Wait for a time, or until the process stops."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await role_context.stopping.wait()


async def until_stopped(role_context: RoleContext, work: Callable[[RoleContext], Awaitable[None]]) -> None:
    """Work on what is due. Shutdown cancels work in progress; it stays due."""
    working = asyncio.ensure_future(work(role_context))
    stop = asyncio.create_task(role_context.stopping.wait())
    try:
        await asyncio.wait([working, stop], return_when=asyncio.FIRST_COMPLETED)
    finally:
        await poll_loop.cancel(stop)
        await poll_loop.cancel(working)


async def repeat(role_context: RoleContext, work: Callable[[RoleContext], Awaitable[None]], *, seconds: float) -> None:
    """Work on what is due again and again, with a pause, until the process stops."""
    while not role_context.stopping.is_set():
        await until_stopped(role_context, work)
        await sleep(role_context, seconds)


def cannot_listen(where: config.Endpoint, problem: OSError, *, setting: str = "") -> CannotListen:
    """The error for an address that cannot be bound."""
    return CannotListen(f"cannot listen on {where}: {_reason(problem)}", setting=setting)


def _reason(problem: OSError) -> str:
    if problem.errno == errno.EADDRINUSE:
        return "the address is in use by another process"
    return os.strerror(problem.errno) if problem.errno and problem.errno > 0 else str(problem)
