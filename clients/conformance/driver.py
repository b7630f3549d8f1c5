"""A driver: the program in the client's language, asked one line at a time."""

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

# No scenario takes a quarter of it; a client that waits where it should give up is still waiting then.
TIMEOUT_SECONDS: Final = 300.0
# Lines of drivers may hold whole messages.
LINE_BYTES: Final = 32 * 1024 * 1024
# A driver that fails again and again is not started for each of a hundred scenarios.
MAX_STARTS: Final = 4
# A closed port: a client that uses proxy variables of the environment fails.
CLOSED_PORT_URL: Final = "http://127.0.0.1:9"
PROXIES: Final = {
    name: CLOSED_PORT_URL for word in ("http_proxy", "https_proxy", "all_proxy") for name in (word, word.upper())
}


class DriverLost(Exception):
    """The driver gave no answer; the message says what it did instead."""


@dataclass(frozen=True, slots=True)
class Program:
    """How a driver is started."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]


class Driver:
    """A running driver, started when it is first asked, and again after it was lost."""

    def __init__(self, program: Program, *, errors: Path) -> None:
        self._program = program
        self._errors = errors
        self._process: asyncio.subprocess.Process | None = None
        self._starts = 0

    async def ask(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one line. Raises Lost."""
        process = self._process or await self._start()
        written, read = _pipes(process)
        said = b""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                written.write(json.dumps(line).encode() + b"\n")
                await written.drain()
                said = await read.readline()
            answer = json.loads(said)
        except TimeoutError:
            raise await self._lose(f"no answer within {TIMEOUT_SECONDS:g} seconds") from None
        except ConnectionError:
            raise await self._lose("the driver has ended") from None
        except ValueError:
            what = f"not a line of JSON: {said[:500]!r}" if said else "the driver has ended"
            raise await self._lose(what) from None
        if not isinstance(answer, dict):
            raise await self._lose(f"not an object: {said[:500]!r}")
        return answer

    async def close(self) -> str | None:
        """End its input, upon which it has to end; what was wrong with its end."""
        process, self._process = self._process, None
        if process is None:
            return None
        _pipes(process)[0].close()
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                code = await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            return "the driver did not end with its input"
        return f"the driver ended with {code}: {self._stderr_tail()}" if code else None

    async def _start(self) -> asyncio.subprocess.Process:
        if self._starts == MAX_STARTS:
            raise DriverLost(f"the driver failed {MAX_STARTS} times and is not started again")
        self._starts += 1
        with self._errors.open("wb") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *self._program.command,
                cwd=self._program.folder,
                env={**os.environ, **PROXIES, "LC_ALL": "C.UTF-8", **self._program.environment},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=LINE_BYTES,
            )
        return self._process

    async def _lose(self, what: str) -> DriverLost:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None
        return DriverLost(f"{what}; {self._stderr_tail() or 'it wrote nothing to stderr'}")

    def _stderr_tail(self) -> str:
        return self._errors.read_text(errors="replace")[-1500:].strip()


def _pipes(process: asyncio.subprocess.Process) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
    """Its standard input and output; only a process without pipes would have None."""
    return cast("asyncio.StreamWriter", process.stdin), cast("asyncio.StreamReader", process.stdout)
