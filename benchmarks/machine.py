"""The facts about the machine, the programs and the run that a reader needs to judge a figure. No host name, no path.

A result stays in the repository until somebody measures again, so it says itself when and of what it was taken.
"""

import os
import pathlib
import platform
import re
import shlex
import statistics
import subprocess
import sys
import time
import typing

import apsw

# Where the stores and the results lie says nothing to a reader, and is a path of the machine.
PLACES = ("--folder", "--results")
# Others that use more than this share of the machine, and a figure in milliseconds proves nothing.
MAX_BUSY_SHARE = 0.12
BUSY_SECONDS = 1.0


def facts() -> dict[str, str]:
    """What every report begins with."""
    return {
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "memory": _memory(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Python": platform.python_version(),
        "SQLite": apsw.sqlite_lib_version(),
        "wrk": _wrk_version(),
        # Where nothing listens, a mail server's log lines cost it next to nothing; that favours the peer.
        "syslog": "a daemon is listening" if pathlib.Path("/dev/log").exists() else "no daemon is listening",
        "measured": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": _commit(),
        "command": command(sys.orig_argv),
    }


def command(words: typing.Sequence[str]) -> str:
    """How this process was started, for somebody who wants to start it again elsewhere."""
    kept = ["python"]
    skip = True  # the interpreter's own name
    for word in words:
        if not skip and not word.startswith(PLACES):
            kept.append(word)
        skip = word in PLACES
    return shlex.join(kept)


def file_system(folder: pathlib.Path) -> str:
    """The type of the file system that holds a folder, such as ext4; tmpfs would make every sync free."""
    found = subprocess.run(["df", "--output=fstype", str(folder)], capture_output=True, text=True, check=True)
    return found.stdout.split()[-1]


def is_busy() -> bool:
    """Whether other programs use the machine now: before the service starts nothing of this run does."""
    before = _idle_seconds()
    time.sleep(BUSY_SECONDS)
    idle = (_idle_seconds() - before) / BUSY_SECONDS / (os.cpu_count() or 1)
    return idle < 1 - MAX_BUSY_SHARE


def _idle_seconds() -> float:
    """How long all cores together had nothing to do, since the machine started."""
    idle, waiting = pathlib.Path("/proc/stat").read_text().split()[4:6]
    return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")


def sync_milliseconds(folder: pathlib.Path, *, times: int = 200) -> float:
    """What the disk asks for one durable commit: the median of appending 4 KiB and calling fdatasync."""
    path = folder / "sync"
    taken = []
    with path.open("wb", buffering=0) as file:
        for _ in range(times):
            file.write(bytes(4096))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(1000 * (time.perf_counter() - began))
    path.unlink()
    return statistics.median(taken)


def _processor() -> str:
    found = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
    model = re.search(r"^Model name:\s*(.+)$", found, re.MULTILINE)
    return model.group(1) if model else platform.processor() or platform.machine()


def _memory() -> str:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{pages / 2**30:.0f} GiB"


def _wrk_version() -> str:
    try:
        banner = subprocess.run(["wrk", "--version"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return "not installed"
    return banner.split("[", maxsplit=1)[0].removeprefix("wrk").strip()


def _commit() -> str:
    """What was measured; a result of code that was never committed says so."""
    try:
        commit = _git("rev-parse", "--short=10", "HEAD")
        changed = _git("status", "--porcelain", "--", "src")
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}, with changes in src" if changed else commit


def _git(*words: str) -> str:
    folder = pathlib.Path(__file__).parents[1]
    found = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return found.stdout.strip()
