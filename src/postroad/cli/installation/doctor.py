"""`postroad doctor`: the checks of this host and of the installation."""

from collections.abc import Sequence
from typing import Final

import click

from postroad import config
from postroad.cli.framework import command, output
from postroad.services.operations.checks import findings, table

EXIT_CODES: Final = {findings.State.OK: 0, findings.State.WARNING: 1, findings.State.ERROR: 2}
_NAMES: Final = {findings.State.WARNING: ("warning", "warnings"), findings.State.ERROR: ("error", "errors")}


class Refused(click.ClickException):
    """The settings cannot be loaded, which is an error: the exit code 1 means that there are only warnings."""

    exit_code = 2


class DoctorCommand(command.SettingsCommand):
    def invoke(self, ctx: click.Context) -> None:
        """Run the checks and print them."""
        try:
            super().invoke(ctx)
        except click.UsageError:
            raise
        except click.ClickException as problem:
            raise Refused(problem.message) from problem


@click.command("doctor", cls=DoctorCommand)
async def doctor(settings: config.Settings) -> output.Report:
    """Check this host and the installation, and say what to do about each finding. Exits with 1 or 2 on problems."""
    async with findings.opened(settings) as given:
        results = await table.run(given)
    worst = table.worst(result.state for result in results)
    state = findings.State.OK if worst is findings.State.SKIPPED else worst
    listed = [
        {
            "name": result.name,
            "state": each.state,
            "found": each.found,
            "advice": each.advice,
            "documentation": result.page,
        }
        for result in results
        for each in result.findings
    ]
    lines = [
        f"{result.name}: {each.state}. {' '.join(_sentence(text) for text in (each.found, each.advice) if text)}"
        for result in results
        for each in result.findings
    ]
    if state in _NAMES:
        # The service that serves the page may be what is broken.
        page = results[0].page.partition("#")[0]
        lines.append(f"Each check is explained at {page}, and in {table.PAGE} of the checkout.")
    text = "\n".join([*lines, _summary(results)])
    return output.Report(data={"state": state, "findings": listed}, text=text, exit_code=EXIT_CODES[state])


def _sentence(text: str) -> str:
    """A sentence; the name of a setting at its beginning is left as it is written."""
    first = text[:1].upper() if text.partition(" ")[0].isalpha() else text[:1]
    return f"{first}{text[1:]}{'' if text.endswith('.') else '.'}"


def _summary(results: Sequence[table.Result]) -> str:
    counts = {state: sum(result.state is state for result in results) for state in findings.State}
    named = [f"{counts[state]} {state}" for state in (findings.State.OK, findings.State.SKIPPED)]
    problems = [f"{counts[state]} {words[counts[state] != 1]}" for state, words in _NAMES.items()]
    return f"{len(results)} checks: {', '.join([*named, *problems])}."
