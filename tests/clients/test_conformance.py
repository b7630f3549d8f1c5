"""The conformance suite for every language: its own tests, the scripted scenarios, and a real service.

`make test-clients` runs the same and prints a table. Python's own tests are not run from here, because pytest finds
them by itself; those of the other languages take long, and `make test` leaves them to `make test-clients`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from anyio import from_thread

from clients.conformance import languages, real_service, runner, service, table
from tests.browser.skip_report import skip
from tests.clients.test_conformance_suite import driver

NAMES = [language.name for language in languages.LANGUAGES]
WITH_TESTS = [language.name for language in languages.LANGUAGES if language.tests and language.folder != "python"]


def language(name: str) -> languages.Language:
    """The language, if this machine has its tools."""
    (chosen,) = languages.chosen([name])
    if chosen.missing():
        _do_without(chosen)
    return chosen


def _do_without(chosen: languages.Language) -> NoReturn:
    what = f"{', '.join(chosen.missing())} is not installed"
    if chosen.is_required:
        pytest.fail(f"{chosen.title}: {what}")
    skip(f"the {chosen.title} client", because=what, remedy=chosen.remedy())


def check(report: runner.Report) -> None:
    """Nothing failed, and something was tried."""
    assert table.failures([report]) == [], "\n".join(table.failures([report]))
    assert report.rows


@pytest.mark.parametrize("name", WITH_TESTS)
async def test_a_client_passes_its_own_tests(name: str) -> None:
    check(await runner.run(language(name), scripted=False))


@pytest.mark.parametrize("name", NAMES)
async def test_a_client_does_what_every_scenario_expects(name: str) -> None:
    check(await runner.run(language(name), own_tests=False))


@pytest.fixture(scope="module")
def running() -> Iterator[service.Service]:
    """One for all clients, each with its own addresses and keys. In a thread, it hears webhooks between tests too."""
    with from_thread.start_blocking_portal() as thread, thread.wrap_async_context_manager(service.running()) as started:
        yield started


@pytest.mark.parametrize("name", NAMES)
async def test_a_client_works_with_a_real_service(name: str, running: service.Service) -> None:
    check(await runner.run(language(name), own_tests=False, scripted=False, running=running))


@pytest.mark.parametrize("fault, found", [("none", []), ("makes a new key", ["keys: expected 1, came 2"])])
async def test_mail_that_would_be_sent_twice_is_caught_at_the_real_service(
    fault: str, found: list[str], tmp_path: Path, running: service.Service
) -> None:
    (lost,) = [name for name in real_service.SCENARIOS if "a lost answer" in name]
    rows: dict[str, list[str] | None] = {}
    faulty = driver(fault, tmp_path)
    await real_service.play(rows, faulty, running, language="faulty", names=[lost])
    await faulty.close()
    assert rows == {lost: found}
