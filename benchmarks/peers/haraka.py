"""A private Haraka on loopback, tuned and durable, that keeps the mail it accepts or relays it to one next hop.

It comes from npm, pinned in `benchmarks/haraka`, and writes each message into a queue file that is synced before the
250 (RFC 5321 section 4.2.5); it renames the file after that and does not sync the folder, so the name of a new file may
be lost with the power. It opens a connection for each message that it delivers and cannot be told otherwise. All
settings below favour Haraka: two processes for two cores, one plugin of a few lines, no TLS, no DNS, no log but of
warnings.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import typing

from benchmarks.peers import next_hop, process

PACKAGE = pathlib.Path(__file__).parents[1] / "haraka" / "node_modules" / "Haraka"
# What tables call it: it promises less than the others, and a row says so itself.
NAME = "Haraka (files synced, not the folder)"
PROCESSES = 2

SMTP_INI = """
listen=127.0.0.1:{port}
nodes={processes}
"""
LOG_INI = """
level=warn
"""
# While it is disabled, each of the first `concurrency_max` messages asks again every second whether it still is.
HOLD_INI = """
disabled=true
concurrency_max=1
"""
# Its default; with the 20 connections of the others it leaves half of the machine idle.
RELAY_INI = """
enable_tls=false
concurrency_max=100
"""
PLUGIN = """'use strict'

exports.hook_lookup_rdns = (next) => next(OK, 'client.example.com')

exports.hook_connect = (next, connection) => {{
    connection.relaying = true
    next()
}}

exports.hook_get_mx = (next) => next(OK, {{ exchange: '127.0.0.1', port: {next_hop_port}, priority: 0 }})
"""
# Nobody asks where held mail would go.
NOWHERE = 25


def missing() -> str | None:
    """Why this peer cannot run here, with the remedy; None when it can."""
    if shutil.which("node") is None:
        return "Node.js is not installed: apt-get install nodejs npm"
    if not PACKAGE.exists():
        return "Haraka is not installed: npm ci --prefix benchmarks/haraka --ignore-scripts"
    return None


def version() -> str:
    """The version of the installed Haraka, and what runs it."""
    haraka = json.loads((PACKAGE / "package.json").read_text())["version"]
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{haraka} on Node.js {node} ({PROCESSES} processes)"


class Haraka:
    """A running private instance; `pid` is its first process, whose children do the work."""

    def __init__(self, pid: int, *, port: int, queue: pathlib.Path) -> None:
        self.pid = pid
        self.port = port
        self._queue = queue

    def stored(self) -> int:
        """How many messages lie in the queue."""
        return sum(1 for _ in os.scandir(self._queue))


@contextlib.contextmanager
def running(folder: pathlib.Path, *, relay: next_hop.Relay | None = None) -> typing.Iterator[Haraka]:
    """A Haraka with an empty queue, under `folder`, holding or relaying its mail; stopped and deleted at the end."""
    port = process.free_port()
    _configure(folder, port=port, relay=relay)
    log = folder / "log"
    program = process.start(["node", str(PACKAGE / "bin" / "haraka"), "-c", str(folder)], log=log)
    try:
        process.wait_until(lambda: _listening(program, port=port, log=log), what="the start of Haraka")
        yield Haraka(program.pid, port=port, queue=folder / "queue")
    finally:
        process.stop(program)
        shutil.rmtree(folder)


def _configure(folder: pathlib.Path, *, port: int, relay: next_hop.Relay | None) -> None:
    outbound = RELAY_INI if relay else HOLD_INI
    files = {
        "config/smtp.ini": SMTP_INI.format(port=port, processes=PROCESSES),
        "config/log.ini": LOG_INI,
        "config/outbound.ini": outbound,
        "config/me": "haraka.example.com\n",
        "config/plugins": "loopback\n",
        "plugins/loopback.js": PLUGIN.format(next_hop_port=relay.next_hop_port if relay else NOWHERE),
    }
    shutil.copytree(PACKAGE / "config", folder / "config")
    (folder / "plugins").mkdir()
    (folder / "queue").mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)


def _listening(program: subprocess.Popen[bytes], *, port: int, log: pathlib.Path) -> bool:
    if program.poll() is not None:
        raise RuntimeError(f"Haraka ended with {program.returncode}: {log.read_text()}")
    return process.listens(port)
