"""Runs roles: started one by one, stopped together by the first signal or the first failure."""

import asyncio
import contextlib
import errno
import os
import resource
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Final

import msgspec

from postroad import config, context
from postroad.model.delivery import throttle
from postroad.roles import role as roles_role
from postroad.services.operations.checks import host
from postroad.telemetry import logs

# The limit of open files: raised at the start, and reported when it is too low and while it is reached.
#
# Every connection is an open file. Systems start programs with a soft limit of 1,024 for the sake of `select`, which
# nothing here uses, and let them raise it to the hard limit. A process without free files closes new connections at
# once and serves the open ones, so the log is the only place where it shows.

FILE_CHECK_SECONDS: Final = 1.0
# A minute between lines: an exhausted process has nothing new to say.
FILE_REPORT_SECONDS: Final = 60.0
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE)


def raise_limit(settings: config.Settings, *, log: logs.Logger) -> None:
    """Raise the soft limit of this process, and of those that it forks, to the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems have a lower limit than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = host.needed_files(settings)
    if limit != resource.RLIM_INFINITY and limit < needed:
        log.warning("file_limit_low", limit=limit, needed=needed, detail="raise the limit of open files (ulimit -n)")


@contextlib.asynccontextmanager
async def watched_file_limit(log: logs.Logger) -> AsyncIterator[None]:
    """Log it, once in a while, when no file can be opened during the block."""
    watcher = asyncio.create_task(_watch_file_limit(log))
    try:
        yield
    finally:
        watcher.cancel()


async def _watch_file_limit(log: logs.Logger) -> None:
    while True:
        await asyncio.sleep(FILE_CHECK_SECONDS)
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as problem:
            if problem.errno in _EXHAUSTED:
                limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
                log.warning("open_files_exhausted", limit=limit, detail="new connections are closed at once")
                await asyncio.sleep(FILE_REPORT_SECONDS)


# Reads the settings again while the service runs (SIGHUP), and applies those that can change.
#
# A process has one `Settings`, which all its parts hold and read when they need a value, so its sections are replaced
# in place. What was made from settings at the start is in `_apply`. Invalid settings change nothing. Values are never
# logged: some are secret.

Load = Callable[[], config.Settings]

# Sections and settings that apply at once; all others need a restart.
RELOADED: Final = frozenset({
    "bounce_guard",
    "inbound.complaint_reporters",
    "limits.min_free_megabytes",
    "limits.queued_recipients",
    "limits.request_burst",
    "limits.request_rate",
    "operator",
    "providers",
    "quotas",
    "retention",
    "warmup",
})  # fmt: skip


def reload(ctx: context.Context, load: Load, *, log: logs.Logger) -> None:
    """Load the settings and apply what can change; the log says what did, and what needs a restart."""
    try:
        loaded = load()
    except config.ConfigError as problem:
        log.error("reload_failed", detail=str(problem))  # noqa: TRY400 - the sentence says it all
        return
    applied: list[str] = []
    waiting: list[str] = []
    for section in ctx.settings.__struct_fields__:
        before, after = getattr(ctx.settings, section), getattr(loaded, section)
        if not isinstance(before, msgspec.Struct):  # a list of tables
            waiting += [section] if after != before else []
            continue
        changes: dict[str, object] = {}
        for field in msgspec.structs.fields(before):
            value, setting = getattr(after, field.name), f"{section}.{field.encode_name}"
            if value == getattr(before, field.name):
                continue
            if section in RELOADED or setting in RELOADED:
                changes[field.name] = value
                applied.append(setting)
            else:
                waiting.append(setting)
        msgspec.structs.force_setattr(ctx.settings, section, msgspec.structs.replace(before, **changes))
    _apply(ctx)
    log.info("settings_reloaded", applied=applied, needs_restart=waiting)


def _apply(ctx: context.Context) -> None:
    limits = ctx.settings.limits
    ctx.rate_limiter.policy = throttle.RateLimit(rate=limits.request_rate, burst=limits.request_burst)
    # Domains are remembered with the end of their warm-up.
    ctx.access_cache.invalidate()


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
        async with watched_file_limit(role_context.log), asyncio.TaskGroup() as group:
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
def reloading(role_context: roles_role.RoleContext, load: Load | None) -> Iterator[None]:
    """SIGHUP reads the settings again, if they can be; otherwise it has its default action."""
    if load is None:
        yield
        return

    def apply() -> None:
        reload(role_context.context, load, log=role_context.log)
        role_context.reloaded.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, apply)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
