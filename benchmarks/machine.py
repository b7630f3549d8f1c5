"""The facts about the machine and the programs that a reader needs to judge a figure. No host name, no path."""

import os
import pathlib
import platform
import re
import subprocess

import apsw


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
        "syslog": "a daemon is listening" if pathlib.Path("/dev/log").exists() else "nobody listens",
    }


def file_system(folder: pathlib.Path) -> str:
    """The type of the file system that holds a folder, such as ext4; tmpfs would make every sync free."""
    found = subprocess.run(["df", "--output=fstype", str(folder)], capture_output=True, text=True, check=True)
    return found.stdout.split()[-1]


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
