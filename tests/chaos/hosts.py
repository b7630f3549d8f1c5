"""Processes of the service: started, ordered to die, killed and started again, on one store.

Each start has a log of its own, and all are kept: a finding is reported with the lines of its message. A process that
ends in any other way than by a kill or on request is noted.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Final

import msgspec

from tests import warm_processes
from tests.chaos import boundaries, crashing_process
from tests.reliability import delivery_harness, process_trees, service_process

TIMEOUT_SECONDS: Final = 600.0
POLL_SECONDS: Final = 0.005
KILLED: Final = -signal.SIGKILL
# Frontends are processes of their own and can be killed alone. A writer that has lost one ends with this code.
FRONTENDS: Final = 2
FRONTEND_LOST: Final = 1
FRONTEND_LOST_EVENT: Final = "frontend_lost"
# Frontends end within a second after their writer; a busy machine may take longer.
ORPHAN_SECONDS: Final = 120.0


@dataclass(slots=True)
class Host:
    """One process at a time, with some roles; where it listens is empty while it does not live."""

    name: str
    folder: Path
    roles: Sequence[str]
    service: service_process.Service
    http: str = ""
    smtp: tuple[str, int] | None = None
    starts: int = 0
    # How processes ended that nobody had killed.
    ended_badly: list[str] = field(default_factory=list)
    # The longest time that a frontend outlived its writer.
    orphaned_seconds: float = 0.0
    _frontends: list[int] = field(default_factory=list)
    _process: ForkServerProcess | None = None

    @classmethod
    def make(
        cls, folder: Path, url: str, *, name: str, roles: Sequence[str], tables: Mapping[str, Mapping[str, object]]
    ) -> "Host":
        """A host that is not started yet."""
        own = folder / name
        own.mkdir()
        service = service_process.Service(
            own, url, roles=roles, sections=delivery_harness.as_toml(tables), frontends=FRONTENDS
        )
        return cls(name, own, roles, service)

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    @property
    def log(self) -> Path:
        return self.folder / f"{self.starts:04}.log"

    async def start(self) -> None:
        """Start, and return when it listens or is dead already, which only an order may bring about."""
        self.starts += 1
        words = [word for role in self.roles for word in ("--role", role)]
        self._process = _process(["serve", "--config", str(self.service.file), *words], self.log, self._order)
        await asyncio.to_thread(self._process.start)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while self.is_alive and not self._is_listening():
                await asyncio.sleep(POLL_SECONDS)
        self._frontends = process_trees.children(self._process.pid or 0)

    def _is_listening(self) -> bool:
        for line in lines_of(self.log):
            if line["event"] == "started":
                self.http = f"http://{line['http']}" if "http" in line else ""
                host, _, port = line.get("submission", "").rpartition(":")
                self.smtp = (host, int(port)) if port else None
                return True
        return False

    def order(self, order: boundaries.Order) -> None:
        """Let it die there; an order for a process that is not started yet is its to carry out as well."""
        prepared = self.folder / "order.new"
        prepared.write_bytes(msgspec.json.encode(order))
        prepared.rename(self._order)

    async def wait_for_exit(self, seconds: float) -> bool:
        """Whether it dies by itself within this time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self.is_alive and loop.time() < until:
            await asyncio.sleep(POLL_SECONDS)
        return not self.is_alive

    @property
    def has_frontends(self) -> bool:
        """Whether it is a writer with frontends."""
        return bool(self._frontends)

    async def kill_a_frontend(self, chance: random.Random) -> None:
        """Kill one of its frontends, and return when the rest has ended, as it must."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(self._frontends), signal.SIGKILL)
        if not await self.wait_for_exit(TIMEOUT_SECONDS):
            self.ended_badly.append(f"{self.name}, life {self.starts}: went on without a frontend")

    async def reap(self) -> tuple[str, str]:
        """Kill it if it lives; says where it died: the kind of transaction and the moment."""
        self.http, self.smtp = "", None
        process = self._started()
        process.kill()
        await asyncio.to_thread(process.join, TIMEOUT_SECONDS)
        await self._frontends_end()
        self._order.unlink(missing_ok=True)
        place = next(
            ((line["kind"], line["moment"]) for line in lines_of(self.log) if line["event"] == crashing_process.KILLED),
            None,
        )
        if process.exitcode == FRONTEND_LOST and has_lost_a_frontend(self.log):
            return place or (boundaries.A_FRONTEND, "")
        if process.exitcode != KILLED:
            self.ended_badly.append(f"{self.name}, life {self.starts}: ended with {process.exitcode}")
        return place or (boundaries.ANY_MOMENT, "")

    async def _frontends_end(self) -> None:
        """No frontend outlives its writer or keeps its address."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while any(map(process_trees.is_alive, self._frontends)) and loop.time() < began + ORPHAN_SECONDS:
            await asyncio.sleep(POLL_SECONDS)
        self.orphaned_seconds = max(self.orphaned_seconds, loop.time() - began)
        self.ended_badly += [
            f"{self.name}, life {self.starts}: a frontend was left"
            for frontend in self._frontends
            if process_trees.is_alive(frontend)
        ]

    async def stop(self) -> None:
        """Ask it to stop."""
        self.http, self.smtp = "", None
        process = self._started()
        process.terminate()
        await asyncio.to_thread(process.join, TIMEOUT_SECONDS)
        if process.exitcode != 0:
            self.ended_badly.append(
                f"{self.name}, life {self.starts}: was asked to stop, and ended with {process.exitcode}"
            )

    def abandon(self) -> None:
        """Make sure that nothing is left."""
        if self._process is not None and self._process.is_alive():
            self._process.kill()
            self._process.join(TIMEOUT_SECONDS)

    async def command(self, *words: str) -> tuple[int | None, Any]:
        """Run an operator's command; its exit code, and what it printed."""
        printed = self.folder / "command.json"
        printed.unlink(missing_ok=True)
        process = _process([*words, "--json", "--config", str(self.service.file)], printed, self._order)
        await asyncio.to_thread(process.start)
        await asyncio.to_thread(process.join, TIMEOUT_SECONDS)
        return process.exitcode, json.loads(printed.read_bytes())

    @property
    def _order(self) -> Path:
        return self.folder / "order"

    def _started(self) -> ForkServerProcess:
        if self._process is None:
            raise RuntimeError("it was never started")
        return self._process


def _process(words: Sequence[str], printed: Path, order: Path) -> ForkServerProcess:
    return warm_processes.fork(crashing_process.run, words, printed=printed, order=order)


def lines_of(log: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log."""
    for line in _whole_lines(log):
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def has_lost_a_frontend(log: Path) -> bool:
    """Whether a writer logged at its end that a frontend is gone: it must end then, and log an error."""
    return any(line["event"] == FRONTEND_LOST_EVENT for line in lines_of(log))


def stray_lines(log: Path) -> list[str]:
    """What a process printed that is no line of a log; the first of them say the most."""
    return [f"{log.parent.name}/{log.name}: {line!r}" for line in _whole_lines(log) if not line.startswith(b"{")]


def _whole_lines(log: Path) -> list[bytes]:
    """A line that a kill has cut is none."""
    lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
    return [line for line in lines if line.endswith(b"\n")]
