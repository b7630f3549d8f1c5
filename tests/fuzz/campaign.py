"""The loop: run a neighbour of a kept input, and keep it when it went a way that no other has gone.

An input that breaks its target is made as small as it can be while it breaks it in the same place, and one is kept for
each such place. At the end the corpus is made anew, the shortest inputs first: each has to add a way of its own.
"""

import random
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.fuzz import line_coverage, mutation, target

# A place in the sources; two inputs that break there are one finding.
Site = str
# Beyond it there is something to mend, not more to find.
MAX_FINDINGS: Final = 10
MAX_SHRINKING: Final = 2_000
# So many inputs and octets are replayed by every test run.
MAX_KEPT: Final = 140
MAX_KEPT_OCTETS: Final = 60_000
# What no input of a few thousand octets needs, also where others compete for the processor: steps do not count what a
# regular expression does.
MAX_SECONDS: Final = 2.0


class TooManySteps(AssertionError):
    """The time that an input takes is not explained by its size."""


@dataclass(slots=True)
class Campaign:
    """What was tried, reached and found."""

    chosen: target.Target
    work: target.Work
    chance: random.Random
    words: Sequence[bytes] = ()
    is_guided: bool = True
    inputs: list[bytes] = field(default_factory=list)
    ways: set[int] = field(default_factory=set)
    findings: dict[Site, bytes] = field(default_factory=dict)
    tried: int = 0
    added: int = 0
    slowest: float = 0.0
    max_steps_per_octet: float = 0.0
    _watch: line_coverage.Watch = field(init=False)

    def __post_init__(self) -> None:
        self._watch = line_coverage.Watch(self.chosen.watches)

    @property
    def lines(self) -> int:
        """How many lines were reached."""
        return len(line_coverage.lines(self.ways))

    def begin(self, kept: Iterable[bytes]) -> None:
        """Run the seeds and what was kept before."""
        for data in dict.fromkeys((*self.chosen.seeds, *kept)):
            trace = self._try(data)
            if trace is not None:
                self.inputs.append(data)
                self.ways |= trace.ways

    def go_on(self, until: Callable[[], bool]) -> None:
        """Try new inputs until it is time."""
        while not until() and len(self.findings) < MAX_FINDINGS:
            data = mutation.mutate(
                self.chance,
                self._parent(),
                others=self.inputs or [b""],
                words=self.words,
                most=self.chosen.max_octets,
            )
            trace = self._try(data)
            if trace is None or trace.ways <= self.ways:
                continue
            self.ways |= trace.ways
            if self.is_guided:
                self.inputs.append(data)
                self.added += 1

    def smallest(self) -> list[bytes]:
        """The shortest inputs that go every way that was found, within the bounds of a corpus."""
        covered: set[int] = set()
        kept: list[bytes] = []
        for data in sorted(set(self.inputs), key=lambda data: (len(data), data)):
            trace = self._try(data)
            fits = len(kept) < MAX_KEPT and sum(map(len, kept)) + len(data) <= MAX_KEPT_OCTETS
            if trace is not None and fits and not trace.ways <= covered:
                covered |= trace.ways
                kept.append(data)
        return kept

    def _parent(self) -> bytes:
        """Any input, but the newest more often: what they lead to is not known yet."""
        if not self.inputs:
            return b""
        newest = self.inputs[-20:]
        return self.chance.choice(newest if self.chance.random() < 0.3 else self.inputs)

    def _try(self, data: bytes) -> line_coverage.Trace | None:
        self.tried += 1
        try:
            return self._run(data)
        except Exception as problem:  # noqa: BLE001 - any exception at all is a finding
            site = _site(problem)
            if site not in self.findings:
                self.findings[site] = data
                self.findings[site] = self._shrunk(data, site)
            return None

    def _run(self, data: bytes) -> line_coverage.Trace:
        began = time.process_time()
        trace = self._watch.run(self.work, data)
        seconds = time.process_time() - began
        self.slowest = max(self.slowest, seconds)
        self.max_steps_per_octet = max(self.max_steps_per_octet, trace.steps / (len(data) + 100))
        if trace.steps > self.chosen.may_take(len(data)):
            raise TooManySteps(f"{trace.steps} lines were run for {len(data)} octets")
        if seconds > MAX_SECONDS:
            raise TooManySteps(f"{seconds:.1f} s went by for {len(data)} octets")
        return trace

    def _shrunk(self, data: bytes, site: Site) -> bytes:
        """The input without everything that it does not need to break the target in the same place."""
        size, tries = len(data), 0
        while size and tries < MAX_SHRINKING:
            size = min(size, len(data))
            at = 0
            while at < len(data) and tries < MAX_SHRINKING:
                shorter = data[:at] + data[at + size :]
                tries += 1
                if self._breaks(shorter, site):
                    data = shorter
                else:
                    at += size
            size //= 2
        return data

    def _breaks(self, data: bytes, site: Site) -> bool:
        try:
            self._run(data)
        except Exception as problem:  # noqa: BLE001 - the same
            return _site(problem) == site
        return False


def _site(problem: Exception) -> Site:
    """Where it was raised, and what."""
    frames = traceback.extract_tb(problem.__traceback__)
    last = frames[-1]
    name = last.filename.rpartition("/")[2]
    return f"{type(problem).__name__} in {name}:{last.lineno}"
