"""RESULTS.md: the machine first, then each benchmark with its chart and its table, then the goals.

It is made from the JSON of the benchmarks and from nothing else, so it can be made again at any time. Results of
different days stand side by side: each says when and at which commit it was measured, and a fact that is not the same
in all of them stands beside the figures that it belongs to.
"""

import pathlib
import typing

from benchmarks import chapters, goal_checks, plots, report, sheets

# The facts of one run, which its own chapter shows.
OF_A_RUN = ("measured", "commit", "command")
NOT_MEASURED = "not measured"
Sheets = typing.Mapping[str, sheets.Sheet]


def write(folder: pathlib.Path) -> pathlib.Path:
    """Write RESULTS.md and its charts from `results` in the same folder; where the page is."""
    found: dict[str, sheets.Sheet] = {}
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    for chapter in chapters.ALL:
        path = folder / "results" / f"{chapter.name}.json"
        if path.exists():
            found[chapter.name] = chapter.read(path)
            (folder / "plots" / f"{chapter.name}.svg").write_text(plots.svg(found[chapter.name].chart))
    page = folder / "RESULTS.md"
    page.write_text("\n".join(_page(found)) + "\n")
    return page


def _page(found: Sheets) -> typing.Iterator[str]:
    yield "# Results of the benchmarks"
    yield ""
    yield (
        "`make bench` measures all of this and writes this page; [README.md](README.md) says how. Peers are measured "
        "in the same run, on the same disk. Each part says when and at which commit it was measured."
    )
    yield "\n## Machine and versions\n"
    common = common_facts(found.values())
    yield from report.markdown_table([("fact", "value"), *_processors(found.values()), *common.items()])
    for chapter in chapters.ALL:
        if chapter.name in found:
            yield from _chapter(chapter, found[chapter.name], common=common)
        else:
            yield f"\n## {_heading(chapter)}\n\n{chapter.about}\n\nNot measured yet: `{chapter.target}`."
    yield "\n## Goals\n"
    yield "What each benchmark is to reach one day; a release does not wait for them.\n"
    yield from report.markdown_table([("goal", "measured", "outcome"), *goal_rows(found)])


def _heading(chapter: chapters.Chapter) -> str:
    """The title of a benchmark without a result, which would have one."""
    return chapter.name.replace("_", " ").capitalize()


def _chapter(
    chapter: chapters.Chapter, sheet: sheets.Sheet, *, common: typing.Mapping[str, str]
) -> typing.Iterator[str]:
    yield f"\n## {sheet.title}\n"
    yield chapter.about
    yield ""
    command = sheet.facts.get("command", f"python -m benchmarks.{chapter.name}")
    when, commit = sheet.facts.get("measured", "at an unknown time"), sheet.facts.get("commit", "unknown")
    yield f"`{chapter.target}`; this result: `{command}`, measured {when}, commit {commit}."
    yield f"\n![{sheet.title}](plots/{chapter.name}.svg)\n"
    yield from report.markdown_table(sheet.rows)
    yield ""
    own = {name: value for name, value in sheet.facts.items() if name not in common and name not in OF_A_RUN}
    yield from (f"- {line}" for line in sheet.remarks)
    yield from (f"- Here {name} is {value}." for name, value in own.items())
    yield f"\n<details><summary>Conditions</summary>\n\n{sheet.conditions}\n\n</details>"


def _processors(found: typing.Iterable[sheets.Sheet]) -> typing.Iterator[tuple[str, str]]:
    """A row for each processor, with the benchmarks that it ran; none if one processor ran all of them."""
    titles: dict[str, list[str]] = {}
    for sheet in found:
        if "processor" in sheet.facts:
            titles.setdefault(sheet.facts["processor"], []).append(sheet.title)
    if len(titles) > 1:
        yield from (("processor", f"{name}: {', '.join(ran)}") for name, ran in titles.items())


def common_facts(found: typing.Iterable[sheets.Sheet]) -> dict[str, str]:
    """What is the same in all results that say it."""
    values: dict[str, set[str]] = {}
    for sheet in found:
        for name, value in sheet.facts.items():
            values.setdefault(name, set()).add(value)
    return {
        name: next(iter(reported)) for name, reported in values.items() if len(reported) == 1 and name not in OF_A_RUN
    }


def goal_rows(found: Sheets) -> typing.Iterator[tuple[str, str, str]]:
    """A row for each goal of each benchmark, and one for the memory in all of them."""
    for chapter in chapters.ALL:
        goals = found[chapter.name].goals if chapter.name in found else ()
        title = found[chapter.name].title if chapter.name in found else _heading(chapter)
        for wish in dict.fromkeys(goal.wish for goal in goals):
            checked = [goal for goal in goals if goal.wish == wish]
            measured = "<br>".join(f"{goal.peer}: {goal_checks.number(goal.value)}" for goal in checked)
            yield f"{title}: {wish}", measured, outcome(checked)
        if chapter.goal and not goals:
            yield f"{title}: {chapter.goal}", NOT_MEASURED, NOT_MEASURED
    held = [(sheet.title, goal) for sheet in found.values() for goal in sheet.memory]
    if held:
        title, most = max(held, key=lambda one: one[1].value)
        measured = f"{goal_checks.number(most.value)} at the most ({title}; {most.peer})"
        yield (
            f"Memory of the service itself where rates are measured, sampled every second: {most.wish}",
            measured,
            outcome([goal for _, goal in held]),
        )


def outcome(checked: typing.Sequence[goal_checks.Goal]) -> str:
    """Whether all, some or none of the variants are where they should be."""
    reached = sum(goal.is_reached for goal in checked)
    words = (
        "reached"
        if reached == len(checked)
        else f"reached by {reached} of {len(checked)}"
        if reached
        else "NOT reached"
    )
    return f"{words} ({goal_checks.DOUBT})" if any(goal.in_doubt for goal in checked) else words
