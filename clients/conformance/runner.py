"""The whole suite for one language: its own tests, its driver built, every scenario, and the real service."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from clients.conformance import languages, real_service, scenario_player, scenarios, service
from clients.conformance.driver import Driver, Program

OWN_TESTS: Final = "its own tests"
BUILD: Final = "the driver is built, and ends with its input"
VECTORS: Final = "every webhook vector"
EVENTS: Final = "every webhook event"
# How many drivers share the scenarios of one language, which are mostly pauses.
DRIVERS: Final = 4
# For a machine that is busy and has never compiled the language's library before.
TIMEOUT_SECONDS: Final = 3600.0


@dataclass(slots=True)
class Report:
    """What came of a language: for each row what was wrong, or None where it could not be tried."""

    language: languages.Language
    missing: list[str]
    rows: dict[str, list[str] | None] = field(default_factory=dict)

    @property
    def failures(self) -> dict[str, list[str]]:
        """The rows that failed."""
        return {row: found for row, found in self.rows.items() if found}

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong; a language that may be missing is not wrong when it is."""
        return not self.failures and not (self.missing and self.language.is_required)


async def run(
    language: languages.Language,
    *,
    own_tests: bool = True,
    scripted: bool = True,
    running: service.Service | None = None,
) -> Report:
    """Run the chosen parts for a language; the real scenarios need a running service."""
    report = Report(language, language.missing())
    if report.missing:
        return report
    with tempfile.TemporaryDirectory(prefix="postroad-conformance-") as name, tempfile.TemporaryDirectory() as out:
        if own_tests and language.tests is not None:
            report.rows[OWN_TESTS] = await _command(language, language.tests, out=Path(out))
        if scripted or running is not None:
            report.rows[BUILD] = await _command(language, language.build, out=Path(out)) if language.build else []
        if report.rows.get(BUILD) == []:
            async with _drivers(report, out=Path(out), errors=Path(name)) as drivers:
                if scripted:
                    await _play(report, drivers, files=Path(name))
                if running is not None:
                    await real_service.play(report.rows, drivers[0], running, language=language.name)
    return report


@contextlib.asynccontextmanager
async def _drivers(report: Report, *, out: Path, errors: Path) -> AsyncIterator[list[Driver]]:
    language = report.language
    program = Program(language.words(language.driver, out=out), language.path, languages.environment())
    drivers = [Driver(program, errors=errors / f"stderr-{number}") for number in range(DRIVERS)]
    try:
        yield drivers
    finally:
        wrong_ends = [await driver.close() for driver in drivers]
        report.rows[BUILD] = [wrong_end for wrong_end in wrong_ends if wrong_end]


async def _play(report: Report, drivers: list[Driver], *, files: Path) -> None:
    suite = scenarios.load()
    suite.write_files(files)
    report.rows |= dict.fromkeys(scenario.name for scenario in suite.scenarios)  # the table has them in this order
    covered = [
        each for each in suite.scenarios if report.language.covers_api or each.call["operation"] != scenarios.CALL
    ]
    report.rows |= await scenario_player.play_all(drivers, covered, agent=report.language.agent, files=files)
    report.rows[VECTORS] = await scenario_player.try_vectors(drivers[0])
    report.rows[EVENTS] = await scenario_player.try_events(drivers[0])


async def _command(language: languages.Language, command: languages.Command, *, out: Path) -> list[str]:
    """Run a command of the language; what was wrong with it."""
    try:
        process = await asyncio.create_subprocess_exec(
            *language.words(command, out=out),
            cwd=language.path,
            env=languages.environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as problem:
        return [f"{command[0]} could not be started: {problem}"]
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            said, _ = await process.communicate()
    except TimeoutError:
        return [f"{' '.join(command)} did not end within {TIMEOUT_SECONDS:g} seconds"]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = said.decode(errors="replace").strip()
    return [f"{' '.join(command)} ended with {process.returncode}:\n{text[-3000:]}"] if process.returncode else []
