"""The conformance suite for every language: its own tests, the scripted scenarios, and a real service.

`make test-clients` runs the same and prints a table. Python's own tests are not run from here, because pytest finds
them by itself; those of the other languages take long, and `make test` leaves them to `make test-clients`.
"""

from typing import NoReturn

import pytest

from clients.conformance import languages, runner, service, table
from tests.browser.skip_report import skip

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


@pytest.mark.parametrize("name", NAMES)
async def test_a_client_works_with_a_real_service(name: str) -> None:
    chosen = language(name)
    async with service.running() as started:
        check(await runner.run(chosen, own_tests=False, scripted=False, running=started))
