"""Which chart shows a report: rates beside each other, goals beside their limits, or a rate over what waits."""

import re
import typing

from benchmarks import figures, goal_checks, plots, report

# "SQLite, 10,000 waiting, accepts alone": how much lies in the queue meanwhile, and around it what is measured.
WAITING = re.compile(r"(?P<store>.+), (?P<waiting>[\d,]+) waiting(?P<what>.*)")
# The messages a second of the chart of latencies: those of the goals.
LATENCY_RATE = 100


def rates(result: report.Report) -> plots.Chart:
    """A bar for each peer, and a panel for those that are compared with each other."""
    groups: dict[str, list[figures.Summary]] = {}
    for summary in result.summaries:
        groups.setdefault(_group(summary), []).append(summary)
    return plots.Bars(
        title=result.title,
        unit=f"{result.unit}s a second: more is better",
        panels=tuple(
            plots.Panel(
                title=name if len(groups) > 1 else "",
                bars=tuple(map(_rate, group)),
                mark=_mark(result.goals, peers={goal.peer for goal in group}),
            )
            for name, group in groups.items()
        ),
    )


def limits(title: str, goals: typing.Sequence[goal_checks.Goal], *, unit: str) -> plots.Chart:
    """A bar for each goal: the figure that must stay below its limit. Each limit has a panel."""
    panels = []
    for wish in dict.fromkeys(goal.wish for goal in goals):
        group = [goal for goal in goals if goal.wish == wish]
        bars = tuple(
            plots.Bar(label=goal.peer, value=goal.value, text=goal_checks.number(goal.value)) for goal in group
        )
        panels.append(plots.Panel(title="", bars=bars, mark=plots.Mark(value=group[0].limit, text=f"goal: {wish}")))
    return plots.Bars(title=title, unit=f"{unit}: less is better", panels=tuple(panels))


def latency(
    title: str, servers: typing.Sequence[typing.Mapping[str, typing.Any]], goals: typing.Sequence[goal_checks.Goal]
) -> plots.Chart:
    """A panel for each goal, and in it all servers at 100 messages a second."""
    panels = []
    measured = (("accepted", 0), ("accepted", 2), ("delivered", 0))
    for (part, percentile), goal in zip(measured, goals, strict=True):
        bars = tuple(
            plots.Bar(
                label=server["peer"],
                value=server[part][percentile],
                text=goal_checks.number(server[part][percentile]),
                is_ours=figures.is_ours(server["peer"]),
            )
            for server in servers
            if server["rate"] == LATENCY_RATE
        )
        panels.append(plots.Panel(title=goal.unit, bars=bars, mark=plots.Mark(value=goal.limit, text="goal on SQLite")))
    return plots.Bars(title=title, unit="milliseconds: less is better", panels=tuple(panels))


def growth(result: report.Report) -> plots.Chart:
    """A line for each peer over what waits in its queue."""
    found: dict[str, dict[int, float]] = {}
    for summary in result.summaries:
        if match := WAITING.fullmatch(summary.peer):
            waiting = int(match["waiting"].replace(",", ""))
            found.setdefault(match["store"] + match["what"], {})[waiting] = summary.messages_per_second
    steps = sorted({waiting for line in found.values() for waiting in line})
    return plots.Lines(
        title=result.title,
        unit=f"{result.unit}s a second: a flat line is good",
        steps_title="recipients that wait in the queue",
        steps=tuple(f"{step:,}" for step in steps),
        lines=tuple(
            plots.Line(label=name, values=tuple(line.get(step) for step in steps)) for name, line in found.items()
        ),
        goal=next((goal.limit / 100 for goal in result.goals), None),
    )


def costs(title: str, by_path: typing.Mapping[str, typing.Mapping[str, float]]) -> plots.Chart:
    """A panel for each path, and in it the phases that cost something, the costliest first."""
    panels = []
    for path, phases in by_path.items():
        found = sorted(((phase, cost) for phase, cost in phases.items() if cost >= 1), key=lambda one: -one[1])
        bars = tuple(plots.Bar(label=phase, value=cost, text=f"{cost:,.0f}") for phase, cost in found)
        panels.append(plots.Panel(title=f"{path}: {sum(phases.values()):,.0f} in all", bars=bars))
    return plots.Bars(title=title, unit="microseconds of CPU a message: less is better", panels=tuple(panels))


def cost_growth(
    title: str, by_range: typing.Mapping[str, typing.Sequence[tuple[int, float]]], *, limit: float
) -> plots.Chart:
    """A panel for each range, and in it the cost at each size beside so many times that of the smallest."""
    panels = []
    for name, costs in by_range.items():
        bars = tuple(plots.Bar(label=f"{size:,}", value=cost, text=f"{cost:,.0f}") for size, cost in costs)
        mark = plots.Mark(value=limit * costs[0][1], text=f"goal: at most {limit:.0%} of the smallest size")
        panels.append(plots.Panel(title=name, bars=bars, mark=mark if len(costs) > 1 else None))
    return plots.Bars(title=title, unit="microseconds of CPU a message: less is better", panels=tuple(panels))


def _group(one: figures.Summary) -> str:
    """What a peer is compared with; without a reference, others on the same kind of store."""
    if one.reference is not None:
        return f"beside {one.reference}"
    return next((name for name in ("SQLite", "PostgreSQL") if name in one.peer), "")


def _rate(one: figures.Summary) -> plots.Bar:
    rate = one.messages_per_second
    return plots.Bar(label=one.peer, value=rate, text=f"{rate:,.0f}", is_ours=figures.is_ours(one.peer))


def _mark(goals: typing.Iterable[goal_checks.Goal], *, peers: set[str]) -> plots.Mark | None:
    for goal in goals:
        if goal.peer in peers and goal.mark is not None:
            return plots.Mark(value=goal.mark, text=f"goal: {goal.wish}")
    return None
