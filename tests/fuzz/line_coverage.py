"""Which lines an input reaches, and how many steps it takes: the fuzzer's feedback, by the interpreter's own trace.

A place is a line of the code under test; a way is two places after each other, so that a branch that was not taken
before is news although both of its ends were seen. Everything else runs untraced, at full speed.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import postroad

ROOT: Final = str(Path(postroad.__file__).parent) + "/"

# A place is the number of its file and of its line, a way two places: numbers, because a trace makes millions of them.
FILE: Final = 100_000
WAY: Final = 1 << 32

Step = Callable[[FrameType, str, Any], Any]


@dataclass(slots=True)
class Trace:
    """What one input reached. `steps` is the number of lines that were run, each as often as it was."""

    ways: set[int] = field(default_factory=set)
    steps: int = 0
    last: int = 0


def lines(ways: set[int]) -> set[int]:
    """The places at the end of ways."""
    return {way % WAY for way in ways}


class Watch:
    """Traces the modules below `places`, which are paths inside the package such as `protocol/smtp/`."""

    def __init__(self, places: tuple[str, ...]) -> None:
        self._prefixes = tuple(ROOT + place for place in places)
        self._steps: dict[str, Step | None] = {}
        self._trace = Trace()

    def run(self, work: Callable[[bytes], None], data: bytes) -> Trace:
        """The trace of the work; what the work raises is raised, and then there is none."""
        self._trace = Trace()
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            work(data)
        finally:
            sys.settrace(before)
        return self._trace

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> Step | None:  # noqa: ANN401 - the interpreter's
        name = frame.f_code.co_filename
        if name not in self._steps:
            self._steps[name] = self._step(FILE * len(self._steps)) if name.startswith(self._prefixes) else None
        return self._steps[name]

    def _step(self, base: int) -> Step:
        """What is called for each line of a file."""

        def step(frame: FrameType, event: str, _argument: Any) -> Step:  # noqa: ANN401 - the same
            if event == "line":
                trace, here = self._trace, base + frame.f_lineno
                trace.ways.add(trace.last * WAY + here)
                trace.steps += 1
                trace.last = here
            return step

        return step
