"""Two real PostgreSQL servers on loopback: a primary and its synchronous standby, which is promoted when it dies.

A commit is acknowledged when both servers have it. After a failover a new standby is made of the new primary, at the
address of the dead server, so that the same URL is good for any number of failovers.
"""

import os
import signal
import time
from typing import Final, Self

from benchmarks.peers import process
from tests.postgres_server import POLL_SECONDS, QUICK, TIMEOUT_SECONDS, PostgresServer
from tests.reliability import process_trees

STANDBY: Final = "standby"
SYNCHRONOUS: Final = "SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync'"


class LoopbackServer(PostgresServer):
    """A server that listens on a port of loopback, and dies as a machine does: all of its processes at once."""

    def __init__(self, port: int, settings: dict[str, str] | None = None) -> None:
        self.port = port
        super().__init__({**QUICK, "listen_addresses": "127.0.0.1", "port": str(port), **(settings or {})})

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}?sslmode=disable"

    def kill(self) -> None:
        """End every process of it, with SIGKILL; what was in flight stays unsaid."""
        assert self._server is not None
        assert self._guard is not None
        self._server.send_signal(signal.SIGSTOP)  # so that it starts no more of them
        for process_id in (self._server.pid, *process_trees.children(self._server.pid)):
            os.kill(process_id, signal.SIGKILL)
        self._server.wait(TIMEOUT_SECONDS)
        self._guard.communicate(b"stopped\n", timeout=TIMEOUT_SECONDS)
        self._server = self._guard = None


class Standby(LoopbackServer):
    """A copy of a running server that follows it until it is promoted."""

    def __init__(self, port: int, primary: LoopbackServer) -> None:
        self._primary = primary
        follows = f"host=127.0.0.1 port={primary.port} user=postgres sslmode=disable application_name={STANDBY}"
        super().__init__(port, {"primary_conninfo": follows})

    def _initialise(self) -> None:
        copied = ["--wal-method=stream", "--checkpoint=fast", "--no-sync", "--write-recovery-conf"]
        self._run(["pg_basebackup", "-d", self._primary.url(), "-D", str(self._data), *copied])
        # What the primary was told about its standby: this one has none until it is told so.
        (self._data / "postgresql.auto.conf").write_text("")

    def promote(self) -> None:
        """Make it the primary; returns when it accepts writes."""
        self.execute("SELECT pg_promote(true)")
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self.execute("SELECT pg_is_in_recovery()") != "f":
            if time.monotonic() > deadline:
                raise RuntimeError("the standby was not promoted")
            time.sleep(POLL_SECONDS)


class Pair:
    """The primary and its standby."""

    def __init__(self) -> None:
        self._ports = process.free_ports(2)
        self.primary: LoopbackServer = LoopbackServer(self._ports[0])
        self.standby: Standby | None = None
        self._dead: LoopbackServer | None = None

    def __enter__(self) -> Self:
        try:
            self.primary.start()
            self._follow(self._ports[1])
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create_database(self) -> str:
        """The address of a new database, with both servers in it."""
        name = self.primary.create_database().partition("?")[0].rpartition("/")[2]
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        return f"postgresql://postgres@{hosts}/{name}?target_session_attrs=read-write&sslmode=disable"

    def fail_over(self) -> None:
        """The primary dies, and the standby takes its place; there is no other until `add_standby`."""
        assert self.standby is not None
        self.primary.kill()
        self.standby.promote()
        self._dead, self.primary, self.standby = self.primary, self.standby, None

    def add_standby(self) -> None:
        """Give the primary a synchronous standby, at the address of the server that died."""
        assert self._dead is not None
        self._dead.close()
        self._follow(self._dead.port)

    def _follow(self, port: int) -> None:
        self.standby = Standby(port, self.primary)
        self.standby.start()
        self.primary.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'")
        self.primary.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self.primary.execute(SYNCHRONOUS) != "1":
            if time.monotonic() > deadline:
                raise RuntimeError("the standby does not follow")
            time.sleep(POLL_SECONDS)

    def close(self) -> None:
        """End both."""
        for server in (self.standby, self.primary, self._dead):
            if server is not None:
                server.close()
