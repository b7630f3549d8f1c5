"""What a process tree and the machine cost, read from Linux's /proc (proc(5)).

The CPU time of a tree is the sum over its living processes of their own time and of the children that they have
reaped: so a worker that ends within the window is still counted, by its parent. Memory is the proportional set (PSS),
where pages shared by several processes count once. A `Window` takes both from its beginning to its end.
"""

import contextlib
import dataclasses
import math
import os
import pathlib
import threading
import time
import typing

PROC = pathlib.Path("/proc")
# Fields of /proc/PID/stat, counted from the one after the command's closing parenthesis (proc(5): field 3 is 0 here).
PARENT, USER_TIME, SYSTEM_TIME, REAPED_USER_TIME, REAPED_SYSTEM_TIME = 1, 11, 12, 13, 14
# The first line of /proc/stat, work only: user, nice, system, irq, softirq. Idle, iowait and steal are not work.
BUSY = (1, 2, 3, 6, 7)
STEAL = 8
MEMORY_SAMPLE_SECONDS = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a window took: seconds of CPU by part, and the memory of the part that holds most."""

    seconds: float
    cpu_seconds: dict[str, float]
    memory_bytes: dict[str, int]
    machine_busy_seconds: float
    machine_stolen_seconds: float


class Window:
    """Measure the trees under `roots` (process ids by the part they belong to) in a `with` block; then read `cost()`.

    With `seconds` the window ends after that time even when the block goes on: an injector that waits idle for its last
    answers would dilute the figures of the machine. Memory is looked at every `sample_seconds`.
    """

    def __init__(
        self,
        roots: typing.Mapping[str, typing.Sequence[int]],
        *,
        seconds: float = math.inf,
        sample_seconds: float = MEMORY_SAMPLE_SECONDS,
    ) -> None:
        self._roots = dict(roots)
        self._seconds = seconds
        self._sample_seconds = sample_seconds
        self._memory: dict[str, int] = dict.fromkeys(roots, 0)
        self._ended = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._begin: tuple[float, dict[str, float], float, float] | None = None
        self._end: tuple[float, dict[str, float], float, float] | None = None

    def __enter__(self) -> typing.Self:
        self._begin = self._now()
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._sampler.join()

    def cost(self) -> Cost:
        """The differences between the end of the window and its beginning."""
        assert self._begin is not None
        assert self._end is not None
        began, cpu_before, busy_before, stolen_before = self._begin
        ended, cpu_after, busy_after, stolen_after = self._end
        return Cost(
            seconds=ended - began,
            cpu_seconds={name: cpu_after[name] - cpu_before[name] for name in self._roots},
            memory_bytes=dict(self._memory),
            machine_busy_seconds=busy_after - busy_before,
            machine_stolen_seconds=stolen_after - stolen_before,
        )

    def _now(self) -> tuple[float, dict[str, float], float, float]:
        trees = {name: tree_cpu_seconds(*pids) for name, pids in self._roots.items()}
        busy, stolen = machine_cpu_seconds()
        return time.monotonic(), trees, busy, stolen

    def _sample(self) -> None:
        end_at = time.monotonic() + self._seconds
        while not self._ended.wait(max(min(self._sample_seconds, end_at - time.monotonic()), 0)):
            if time.monotonic() >= end_at:
                break
            self._sample_memory()
        self._end = self._now()
        self._sample_memory()  # a short window has seen none yet

    def _sample_memory(self) -> None:
        for name, pids in self._roots.items():
            self._memory[name] = max(self._memory[name], tree_memory_bytes(*pids))


def tree_cpu_seconds(*roots: int) -> float:
    """User and system time of processes, their living descendants, and all children that these have reaped."""
    ticks = 0
    for pid in tree(*roots):
        fields = _stat(pid)
        if fields:
            ticks += sum(int(fields[n]) for n in (USER_TIME, SYSTEM_TIME, REAPED_USER_TIME, REAPED_SYSTEM_TIME))
    return ticks / os.sysconf("SC_CLK_TCK")


def main_thread_cpu_seconds(pid: int) -> float:
    """User and system time of a process's first thread alone."""
    fields = (PROC / str(pid) / "task" / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[USER_TIME]) + int(fields[SYSTEM_TIME])) / os.sysconf("SC_CLK_TCK")


def tree_memory_bytes(*roots: int) -> int:
    """The proportional set of processes and their descendants; 0 where the kernel does not let us look."""
    return sum(_proportional_set(pid) for pid in tree(*roots))


def tree_peak_bytes(*roots: int) -> int:
    """The most that each process of the trees has ever had resident, together; pages that they share count for each."""
    return sum(_kilobytes(PROC / str(pid) / "status", "VmHWM:") for pid in tree(*roots))


def tree(*roots: int) -> list[int]:
    """Processes and all their living descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                children.setdefault(int(fields[PARENT]), []).append(int(entry.name))
    found = list(roots)
    for pid in found:  # grows while it is read: a breadth-first walk
        found.extend(children.get(pid, ()))
    return found


def machine_cpu_seconds() -> tuple[float, float]:
    """Seconds that all cores have worked, and seconds that the hypervisor has taken away, since the start."""
    fields = (PROC / "stat").read_text().split("\n", 1)[0].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return sum(int(fields[n]) for n in BUSY) / ticks, int(fields[STEAL]) / ticks


def _stat(pid: int) -> list[str]:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return []


def _proportional_set(pid: int) -> int:
    return _kilobytes(PROC / str(pid) / "smaps_rollup", "Pss:")


def _kilobytes(file: pathlib.Path, name: str) -> int:
    """The line of this name, in bytes; 0 where the kernel does not let us look, or the process has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for line in file.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
