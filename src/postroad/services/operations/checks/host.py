"""This host and its processes: unsafe settings, the clock, open files, and roles that nobody runs."""

import asyncio
import ctypes
import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from postroad import config
from postroad.model.units import times
from postroad.services.operations.checks import findings
from postroad.storage.operations import processes as storage_clock

# The store, the log, DNS queries, files of large messages, pipes to other processes.
OTHER_FILES: Final = 256
# Leases and rates compare clocks of hosts; tokens and DKIM signatures are refused outside of their time.
WARNING_SECONDS: Final = 2.0
ERROR_SECONDS: Final = 60.0
# Of adjtimex(2): the clock is not synchronized.
_UNSYNCHRONIZED: Final = 0x40
# It exists while systemd-timesyncd runs.
TIMESYNC: Final = Path("/run/systemd/timesync")
# It asks its server at least every 34 minutes; a server may be away for a while.
MAX_TIMESYNC_SECONDS: Final = 24 * 3600
# A fraction of the time of a check.
SYSTEMD_SECONDS: Final = 5.0
# Roles that every installation needs; others only listen, where they have an address.
_ALWAYS: Final = ("api", "delivery", "maintenance", "webhooks")


async def settings(given: findings.Subject) -> Sequence[findings.Finding]:
    unsafe = [findings.warning(text) for text in config.warnings(given.settings)]
    return unsafe or [findings.ok("no setting is unsafe")]


async def clock(given: findings.Subject) -> Sequence[findings.Finding]:
    """The clock agrees with that of the database, and the system synchronizes it."""
    if given.store is not None:
        async with given.store.reading() as tx:
            before = given.clock()
            theirs = await storage_clock.database_time(tx)
            after = given.clock()
        # Zero if the answer lies between question and reply: the way there and back is not a difference.
        difference = max(before - theirs, theirs - after, 0) / times.SECOND
        if difference > WARNING_SECONDS:
            make = findings.error if difference > ERROR_SECONDS else findings.warning
            return [
                make(
                    f"the clock differs from that of the database by {difference:.0f} seconds",
                    "synchronize both hosts with NTP, for example with chrony",
                )
            ]
    is_synchronized = kernel_synchronizes()
    if is_synchronized is None:
        is_synchronized = await asyncio.to_thread(_systemd_synchronizes)
    if is_synchronized is None:
        is_synchronized = _timesyncd_synchronizes(now=given.clock())
    if is_synchronized is None:
        return [findings.skipped("this system does not say whether its clock is synchronized")]
    if not is_synchronized:
        return [findings.warning("the clock is not synchronized", "run an NTP client such as chrony on this host")]
    return [findings.ok("the clock is synchronized")]


def kernel_synchronizes() -> bool | None:
    """What Linux says about its clock (adjtimex); None if it may not be asked: in containers, and by `ProtectClock`."""
    # The beginning of `struct timex` on 64 bits: modes, offset, freq, maxerror, esterror, status, then 160 octets more.
    # `modes` 0 only reads, which needs no privilege.
    state = (ctypes.c_byte * 208)()
    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)
    if adjtimex is None or ctypes.sizeof(ctypes.c_long) != 8 or adjtimex(ctypes.byref(state)) < 0:  # noqa: PLR2004
        return None
    status = ctypes.c_int.from_buffer(state, 40).value
    return not status & _UNSYNCHRONIZED


def _systemd_synchronizes() -> bool | None:
    """What the kernel says to systemd, which may ask it where the sandbox of the service may not; None without it."""
    program = shutil.which("timedatectl")
    if program is None:
        return None
    words = [program, "show", "--property=NTPSynchronized", "--value"]
    try:
        answer = subprocess.run(words, capture_output=True, check=False, timeout=SYSTEMD_SECONDS)  # noqa: S603 - of the system
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {b"yes": True, b"no": False}.get(answer.stdout.strip())


def _timesyncd_synchronizes(*, now: int) -> bool | None:
    """Whether systemd-timesyncd, which touches a file whenever it sets the clock, did so lately; None if not in use."""
    if not TIMESYNC.is_dir():
        return None
    try:
        return now / times.SECOND - (TIMESYNC / "synchronized").stat().st_mtime < MAX_TIMESYNC_SECONDS
    except OSError:
        return False


async def open_files(given: findings.Subject) -> Sequence[findings.Finding]:
    """The limit of open files is above the configured connections, in the processes that run or for this user."""
    needed = needed_files(given.settings)
    limits = [_limit_of(process.process_id) for process in given.here] or [_limit_of(os.getpid())]
    limit = min(limits)
    if limit < needed:
        return [
            findings.warning(
                f"a process may open {limit:.0f} files, and {needed} are needed while all connections are in use",
                "raise the limit, with LimitNOFILE in the systemd unit or 'ulimit -n', or allow fewer connections",
            )
        ]
    allowed = "any number" if limit == float("inf") else f"{limit:.0f}"
    return [findings.ok(f"a process needs up to {needed} open files and may open {allowed}")]


def _limit_of(process_id: int) -> float:
    """The hard limit of a process, to which `serve` raises its own; that of this one if the other cannot be read."""
    try:
        _, hard = resource.prlimit(process_id, resource.RLIMIT_NOFILE)
    except (AttributeError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return float("inf") if hard == resource.RLIM_INFINITY else hard


def needed_files(settings: config.Settings) -> int:
    """The files of a process whose connections are all in use."""
    submission = settings.submission
    connections = (
        settings.http.connections * (1 + bool(settings.http.redirect_listen)),
        submission.connections * (bool(submission.listen) + bool(submission.tls_listen)),
        settings.inbound.connections * bool(settings.inbound.listen),
        settings.delivery.connections,
        settings.webhooks.connections,
        settings.database.connections,
    )
    return sum(connections) + OTHER_FILES


async def roles(given: findings.Subject) -> Sequence[findings.Finding]:
    """Some process runs each role that the settings ask for."""
    if given.store is None:
        return [findings.skipped("the database cannot be used")]
    if not given.running:
        return [findings.warning("the service is not running", "start 'postroad serve'")]
    running = {role for process in given.running for role in process.roles}
    missing = [role for role in _wanted(given.settings) if role not in running]
    if missing:
        return [
            findings.error(f"no process runs the role {role}", f"start one with 'postroad serve --role {role}'")
            for role in missing
        ]
    hosts = sorted({process.host for process in given.running})
    return [findings.ok(f"all roles are running, on {', '.join(hosts)}")]


def _wanted(settings: config.Settings) -> Sequence[str]:
    listens = {
        "submission": settings.submission.listen or settings.submission.tls_listen,
        "inbound": settings.inbound.listen,
    }
    return [*_ALWAYS, *(role for role, where in listens.items() if where)]
