"""The limit of open files: raised at the start, and reported when it is too low and while it is reached.

Every connection is an open file. Systems start programs with a soft limit of 1,024 for the sake of `select`, which
nothing here uses, and let them raise it to the hard limit. A process without free files closes new connections at once
and serves the open ones, so the log is the only place where it shows.
"""

import asyncio
import contextlib
import errno
import os
import resource
from collections.abc import AsyncIterator
from typing import Final

from postroad import config
from postroad.services.checks import host
from postroad.telemetry import logs

CHECK_SECONDS: Final = 1.0
# A minute between lines: an exhausted process has nothing new to say.
REPORT_SECONDS: Final = 60.0
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
async def watched(log: logs.Logger) -> AsyncIterator[None]:
    """Log it, once in a while, when no file can be opened during the block."""
    watcher = asyncio.create_task(_watch(log))
    try:
        yield
    finally:
        watcher.cancel()


async def _watch(log: logs.Logger) -> None:
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as problem:
            if problem.errno in _EXHAUSTED:
                limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
                log.warning("open_files_exhausted", limit=limit, detail="new connections are closed at once")
                await asyncio.sleep(REPORT_SECONDS)
