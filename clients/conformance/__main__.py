"""`python -m clients.conformance`: the suite for all languages, and the table."""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from clients.conformance import languages, runner, service, table

# Half of them wait for a pause or a server at any time.
AT_ONCE: Final = 2


def main() -> int:
    """Run what the arguments ask for; 1 when something failed."""
    parser = argparse.ArgumentParser(
        prog="python -m clients.conformance", description="Hold the clients to their rules."
    )
    parser.add_argument("--only", default="", metavar="A,B", help="some languages, with commas between them")
    parser.add_argument("--no-tests", action="store_true", help="leave out the clients' own tests")
    parser.add_argument("--scripted", action="store_true", help="leave out the real service")
    parser.add_argument("--missing", action="store_true", help="only name the packages of Debian that are missing")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table to a file as well")
    given = parser.parse_args()
    try:
        chosen = languages.chosen([name for name in given.only.split(",") if name])
    except ValueError as problem:
        parser.error(str(problem))
    if given.missing:
        print(*dict.fromkeys(name for language in chosen for name in language.missing_packages()))
        return 0
    reports = asyncio.run(_run(chosen, own_tests=not given.no_tests, is_scripted=given.scripted))
    made = table.markdown(reports)
    if given.output:
        given.output.write_text(made + "\n", encoding="utf-8")
    print("", made, *table.failures(reports), table.box(reports), sep="\n")
    return 0 if all(report.is_good for report in reports) else 1


async def _run(chosen: Sequence[languages.Language], *, own_tests: bool, is_scripted: bool) -> list[runner.Report]:
    turns = asyncio.Semaphore(AT_ONCE)
    async with contextlib.AsyncExitStack() as stack:
        started = None if is_scripted else await stack.enter_async_context(service.running())

        async def run(language: languages.Language) -> runner.Report:
            async with turns:
                report = await runner.run(language, own_tests=own_tests, running=started)
            print(table.line(report), flush=True)
            return report

        return list(await asyncio.gather(*map(run, chosen)))


if __name__ == "__main__":
    sys.exit(main())
