"""What every role is given, what it gives back when it has started, and why it may not start."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from postroad import config
from postroad.network import listener
from postroad.services import context as services_context
from postroad.services.messages import dev_inbox
from postroad.telemetry import logs

Addresses = Mapping[str, config.Endpoint]


class StartError(Exception):
    """A role cannot start; the message says why."""


class CannotListen(StartError):
    """An address cannot be had; `setting` is where it was chosen, if that is known."""

    def __init__(self, message: str, *, setting: str) -> None:
        super().__init__(message)
        self.setting = setting


@dataclass(frozen=True, slots=True)
class RoleContext:
    """What a role is given."""

    context: services_context.Context
    log: logs.Logger
    stopping: asyncio.Event
    # What all processes of the service have counted, for Prometheus.
    render_metrics: Callable[[], Awaitable[bytes]]
    # Addresses that are bound already, by the names of their settings.
    bound: Mapping[str, listener.BoundSockets] = field(default_factory=dict)
    # How many processes have the doors of this one, itself included.
    frontend_processes: int = 1
    # Where the mailbox simulator puts its mail, in `postroad dev`.
    mail: dev_inbox.Inbox | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A role that has started: where it listens, and the work that ends soon after `stopping` is set."""

    work: Callable[[], Awaitable[None]]
    addresses: Addresses = field(default_factory=dict)


def cannot_listen(where: config.Endpoint, problem: OSError, *, setting: str = "") -> CannotListen:
    """What to tell somebody who chose an address that cannot be had."""
    return CannotListen(f"cannot listen on {where}: {_reason(problem)}", setting=setting)


def _reason(problem: OSError) -> str:
    if problem.errno == errno.EADDRINUSE:
        return "another program listens there"
    return os.strerror(problem.errno) if problem.errno and problem.errno > 0 else str(problem)
