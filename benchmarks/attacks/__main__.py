"""`make fairness`: what one account can do to another at acceptance, attack by attack.

A real service with the defaults of an installation (`scene.py`) has a victim, who goes on working (`victim.py`), and an
attacker in a process of its own (`attacker.py`). For each attack of `table.py` the service starts anew; the victim is
measured alone and then during the attack, and both are printed. `--write` also writes the table into
RESULTS.md.
"""

import argparse
import asyncio
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import typing

import msgspec
import uvloop

from benchmarks import machine, report
from benchmarks.attacks import outside, scene, table, victim

PAGE = pathlib.Path(__file__).parent / "RESULTS.md"
BEGIN, END = "<!-- fairness: begin; written by make fairness -->", "<!-- fairness: end -->"
PROGRAM = (sys.executable, "-m", "benchmarks.attacks.attacker")
WARM_UP_SECONDS = 1.0
IDLE_SECONDS = 3.0
# Until the attack is under way.
BEGIN_SECONDS = 1.0
# The goal: within twice the idle figure and so many milliseconds.
GOAL_TIMES = 2
GOAL_MILLISECONDS = 50
# Less growth of the store is not worth a word.
GROWTH_BYTES = 20e6


class Row(typing.NamedTuple):
    """One attack: the victim before and during it, the answers that the attacker got, and what the store grew by."""

    attack: table.Attack
    before: victim.Figures
    during: victim.Figures
    answers: dict[str, int]
    grown_bytes: int

    def misses(self) -> list[str]:
        """The measures that are beyond the goal, and what was refused."""
        return [
            *(name for name in victim.MEASURES if self._is_beyond_goal(name)),
            *(f"{count} {what}" for what, count in self.during.refused.items()),
        ]

    def cells(self) -> tuple[str, ...]:
        """Its row of the table."""
        answers = [f"{what}: {count:,}" for what, count in sorted(self.answers.items())] or ["none"]
        if self.grown_bytes > GROWTH_BYTES:
            answers.append(f"store: +{self.grown_bytes / 1e6:,.0f} MB")
        goal = "yes" if not self.misses() else f"no: {', '.join(self.misses())}"
        figures = (_change(*self._pair(name)) for name in victim.MEASURES)
        return (f"`{self.attack.name}`: {self.attack.about}", *figures, "; ".join(answers), goal)

    def _pair(self, name: str) -> tuple[victim.Figure | None, victim.Figure | None]:
        return self.before.by_measure.get(name), self.during.by_measure.get(name)

    def _is_beyond_goal(self, name: str) -> bool:
        before, during = self._pair(name)
        if before is None or during is None:
            return before != during
        pairs = zip(before, during, strict=True)
        return any(now > GOAL_TIMES * idle + GOAL_MILLISECONDS for idle, now in pairs)


HEAD = ("attack", *(f"{name}, ms" for name in victim.MEASURES), "answers to the attacker", "goal")


async def measure(attack: table.Attack, stage: scene.Scene, around: outside.Outside, *, seconds: float) -> Row:
    """One attack on a service of its own."""
    with contextlib.ExitStack() as stack:
        await asyncio.to_thread(stack.enter_context, stage.started())
        try:
            cookies = await asyncio.to_thread(stage.cookies, stage.victim)
            customer = victim.Victim(stage, around, cookies=cookies, listener=attack.listener)
            plan = stage.folder / "plan"
            plan.write_bytes(msgspec.msgpack.encode(await asyncio.to_thread(attack.streams, stage)))
            await customer.work(WARM_UP_SECONDS)
            before = await customer.work(IDLE_SECONDS)
            size = stage.stored_bytes()
            async with _attacking(plan) as answers:
                await asyncio.sleep(BEGIN_SECONDS)
                during = await customer.work(seconds)
            return Row(attack, before, during, answers, stage.stored_bytes() - size)
        finally:
            await asyncio.to_thread(stack.close)


@contextlib.asynccontextmanager
async def _attacking(plan: pathlib.Path) -> typing.AsyncIterator[dict[str, int]]:
    """The attacker in its process; at the end the block knows its answers."""
    answers: dict[str, int] = {}
    attacker = await asyncio.create_subprocess_exec(*PROGRAM, str(plan), stdout=subprocess.PIPE)
    try:
        yield answers
    finally:
        attacker.terminate()
        printed, _ = await attacker.communicate()
        answers |= json.loads(printed)


async def run(options: argparse.Namespace, folder: pathlib.Path) -> list[Row]:
    """The rows of the attacks that are wanted."""
    rows = []
    async with outside.running(folder / "outside") as around:
        stage = await asyncio.to_thread(scene.prepare, folder / "service", around)
        for attack in table.ALL:
            if attack.name in options.only:
                rows.append(await measure(attack, stage, around, seconds=options.seconds))
                print(f"{' | '.join(rows[-1].cells())}", file=sys.stderr, flush=True)
    return rows


def lines(rows: typing.Sequence[Row], facts: typing.Mapping[str, str], *, is_busy: bool) -> typing.Iterator[str]:
    """The result: how to read it, where it was measured, and the table."""
    yield "Figures are milliseconds as median / p95, before → during; \N{EN DASH} where nothing is measured."
    yield (
        f"The goal: both at most {GOAL_TIMES} times the figure before plus {GOAL_MILLISECONDS} ms, and nothing of the "
        "victim refused or missing."
    )
    yield "Answers are counted by status; `closed:` counts connections that the service closed."
    yield f"`store:` is what the database grew by during the attack, if more than {GROWTH_BYTES / 1e6:.0f} MB."
    yield (
        f"Measured {facts['measured']}, commit {facts['commit']}, on {facts['cores']} cores ({facts['processor']}), "
        "which service, victim and attacker share."
    )
    if is_busy:
        yield "**Preliminary:** other programs used the machine during the measurement."
    yield ""
    yield from report.markdown_table([HEAD, *(row.cells() for row in rows)])


def replace_section(page: str, section: str) -> str:
    """The page with another text between the two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"there is no section between {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{section}\n{END}{after}"


def main() -> int:
    """Attack, print, and write the section if that is wanted."""
    options = _options()
    facts, is_busy = machine.facts(), machine.is_busy()
    with tempfile.TemporaryDirectory(prefix="postroad-attacks-", dir=options.folder) as name:
        folder = pathlib.Path(name)
        (folder / "outside").mkdir()
        rows = uvloop.run(run(options, folder))
    section = "\n".join(lines(rows, facts, is_busy=is_busy))
    print(section)
    if options.write:
        PAGE.write_text(replace_section(PAGE.read_text(), section))
    return 0


def _options() -> argparse.Namespace:
    names = [attack.name for attack in table.ALL]
    words = argparse.ArgumentParser(prog="python -m benchmarks.attacks", description=__doc__.splitlines()[0])
    words.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    words.add_argument("--write", action="store_true", help="also write the table into RESULTS.md")
    words.add_argument("--seconds", type=float, default=7.0, help="how long the victim is measured in an attack (7)")
    words.add_argument("--folder", type=pathlib.Path, help="a folder on the disk to measure (the temporary one)")
    options = words.parse_args()
    if options.write and options.only != names:
        words.error("the page has all attacks: use --write without --only")
    return options


def _change(before: victim.Figure | None, during: victim.Figure | None) -> str:
    return "\N{EN DASH}" if before is during is None else f"{_text(before)} → {_text(during)}"


def _text(figure: victim.Figure | None) -> str:
    return "none" if figure is None else f"{figure.median:,.0f} / {figure.p95:,.0f}"


if __name__ == "__main__":
    raise SystemExit(main())
