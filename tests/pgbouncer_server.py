"""PgBouncer in transaction mode before a PostgreSQL server, on loopback, with few connections that all clients share.

The program is in the Debian package `pgbouncer`.
"""

import contextlib
import shutil
import socket
import subprocess
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.peers import process
from tests import postgres_server

PROGRAM: Final = "pgbouncer"
REMEDY: Final = "install it with: apt-get install pgbouncer"
START_SECONDS: Final = 120
# Fewer than clients have, so that a session serves many of them.
SERVER_CONNECTIONS: Final = 4
CONFIGURATION: Final = """
[databases]
* = host={folder} port=5432 user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 500
"""


def program() -> str | None:
    """Where it is; Debian puts it where only the administrator's path leads."""
    return shutil.which(PROGRAM) or shutil.which(PROGRAM, path="/usr/sbin")


@contextlib.contextmanager
def before(url: str, folder: Path) -> Iterator[str]:
    """For the time of the block, the address of the same database behind PgBouncer."""
    parts = urllib.parse.urlsplit(url)
    (server,) = urllib.parse.parse_qs(parts.query)["host"]
    port = process.free_port()
    configuration, log = folder / "pgbouncer.ini", folder / "pgbouncer.log"
    configuration.write_text(CONFIGURATION.format(folder=server, port=port, connections=SERVER_CONNECTIONS))
    account = postgres_server.account()  # it refuses to run as root, too, and has to find the socket of the server
    with log.open("wb") as file, configuration.open("rb") as opened:
        bouncer = subprocess.Popen(
            [str(program()), f"/proc/self/fd/{opened.fileno()}"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            pass_fds=(opened.fileno(),),
            user=account.user,
            group=account.group,
            extra_groups=account.extra_groups,
        )
        try:
            _wait(bouncer, port, log)
            yield f"postgresql://postgres@127.0.0.1:{port}{parts.path}?sslmode=disable"
        finally:
            bouncer.terminate()
            bouncer.wait()


def _wait(bouncer: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=10).close()
            return
        except OSError:
            if bouncer.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PgBouncer did not start:\n{log.read_text()}") from None
            time.sleep(0.02)
