"""What RESULTS.md shows of one benchmark, read from its JSON: a table, remarks, goals, a chart, and the facts."""

import dataclasses
import json
import operator
import pathlib
import typing

from benchmarks import charts, figures, goal_checks, plots, report

DASHBOARD_GOAL_MILLISECONDS = 300.0
DASHBOARD_STORES = {
    "sqlite": "SQLite",
    "sqlite-backlog": "SQLite, all queued",
    "postgresql": "PostgreSQL",
    "postgresql-backlog": "PostgreSQL, all queued",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One benchmark's result. The first row of `rows` is their head; `conditions` is what its own page begins with."""

    title: str
    conditions: str
    facts: typing.Mapping[str, str]
    rows: typing.Sequence[typing.Sequence[str]]
    remarks: typing.Sequence[str]
    goals: typing.Sequence[goal_checks.Goal]
    chart: plots.Chart
    # What the service itself held, checked for all benchmarks together.
    memory: typing.Sequence[goal_checks.Goal] = ()


Read = typing.Callable[[pathlib.Path], Sheet]


def of_rates(path: pathlib.Path) -> Sheet:
    """A benchmark of rates, with one bar for each peer."""
    result = report.read(path)
    return _sheet(result, chart=charts.rates(result), memory=goal_checks.of_memory(result.rounds))


def of_growth(path: pathlib.Path) -> Sheet:
    """The same over what waits in the queue."""
    result = report.read(path)
    return _sheet(result, chart=charts.growth(result), memory=goal_checks.of_memory(result.rounds))


def of_large_messages(path: pathlib.Path) -> Sheet:
    """The memory that large messages take; it has a goal of its own."""
    result = report.read(path)
    return _sheet(result, chart=charts.limits(result.title, result.goals, unit="megabytes"), memory=())


def of_dashboard(path: pathlib.Path) -> Sheet:
    """The time that pages take: of each store only the slowest, because there are too many pages for one table."""
    reported = json.loads(path.read_text())
    by_store: dict[str, list[dict[str, typing.Any]]] = {}
    for figure in reported["figures"]:
        by_store.setdefault(DASHBOARD_STORES[figure["peer"]], []).append(figure)
    rows = [("store", "pages", "slowest ms", "page", "slowest first answer ms", "page", "most CPU ms", "page")]
    goals = []
    for store, pages in by_store.items():
        slowest, first, costly = (max(pages, key=operator.itemgetter(name)) for name in ("slowest", "first", "cpu"))
        rows.append(
            (
                store,
                str(len(pages)),
                f"{slowest['slowest']:.1f}",
                slowest["page"],
                f"{first['first']:.1f}",
                first["page"],
                f"{costly['cpu']:.1f}",
                costly["page"],
            )
        )
        goals.append(
            goal_checks.Goal(
                peer=store,
                value=slowest["slowest"],
                side="at most",
                limit=DASHBOARD_GOAL_MILLISECONDS,
                unit="ms for the slowest page",
                in_doubt=any(page["rest_percent"] > figures.NOISY_PERCENT for page in pages),
            )
        )
    title = "The dashboard with a million messages"
    return Sheet(
        title=title,
        conditions="Milliseconds at the server; every page is in the table of results/dashboard.md.",
        facts=reported["facts"],
        rows=rows,
        remarks=reported["remarks"],
        goals=goals,
        chart=charts.limits(title, goals, unit="milliseconds for the slowest page"),
    )


def of_commands(path: pathlib.Path) -> Sheet:
    """The time that short commands take, each with its goal."""
    return _of_milliseconds(
        path,
        title="Short commands",
        conditions="Milliseconds from the start of the process to its end. The list is of an installation on SQLite.",
    )


def of_codes(path: pathlib.Path) -> Sheet:
    """The time that login codes take, with each length of the queue."""
    return _of_milliseconds(
        path,
        title="Login codes beside mail that waits",
        conditions="Milliseconds from the POST to the final dot at the destination, p99 in the chart. The mail that "
        "waits is ready, of the same account, and goes to the same destination over the same 20 connections. SQLite, "
        "unsigned.",
    )


def of_latency(path: pathlib.Path) -> Sheet:
    """The time until the 202 and until the destination, at each rate."""
    reported = json.loads(path.read_text())
    title, goals = "Latency at ordinary load", _goals(reported)
    return Sheet(
        title=title,
        conditions="Milliseconds from the moment when a message is due, unsigned, to a destination on the same "
        "machine. The chart has 100 messages a second.",
        facts=reported["facts"],
        rows=reported["rows"],
        remarks=[goal.sentence() for goal in goals],
        goals=goals,
        chart=charts.latency(title, reported["figures"], goals),
    )


def _of_milliseconds(path: pathlib.Path, *, title: str, conditions: str) -> Sheet:
    reported = json.loads(path.read_text())
    goals = _goals(reported)
    return Sheet(
        title=title,
        conditions=conditions,
        facts=reported["facts"],
        rows=reported["rows"],
        remarks=[goal.sentence() for goal in goals],
        goals=goals,
        chart=charts.limits(title, goals, unit="milliseconds"),
    )


def _goals(reported: typing.Mapping[str, typing.Any]) -> list[goal_checks.Goal]:
    return [goal_checks.Goal(**goal) for goal in reported["goals"]]


def of_cost_growth(path: pathlib.Path) -> Sheet:
    """The cost of a message at each size of each range."""
    reported = json.loads(path.read_text())
    title = "How cost grows"
    goals = _goals(reported)
    by_range: dict[str, list[tuple[int, float]]] = {}
    for figure in reported["figures"]:
        cost = figure["service_microseconds"] + figure["store_microseconds"]
        by_range.setdefault(f"{figure['range']}, {figure['store']}", []).append((figure["size"], cost))
    return Sheet(
        title=title,
        conditions=reported["conditions"],
        facts=reported["facts"],
        rows=reported["rows"],
        remarks=[
            *(
                f"PROBLEM, {figure['size']:,} {figure['range']}: {text}"
                for figure in reported["figures"]
                for text in figure["problems"]
            ),
            *(f"INCOMPLETE: {gap}" for gap in reported["gaps"]),
            *(goal.sentence() for goal in goals),
        ],
        goals=goals,
        chart=charts.cost_growth(title, {name: sorted(costs) for name, costs in by_range.items()}, limit=1.2),
    )


def of_costs(path: pathlib.Path) -> Sheet:
    """Microseconds by phase, for each path that a message may take; the costliest phases first."""
    reported = json.loads(path.read_text())
    by_path: dict[str, dict[str, float]] = {cost["path"]: cost["microseconds"] for cost in reported["costs"]}
    most: dict[str, float] = {}
    for costs in by_path.values():
        for phase, microseconds in costs.items():
            most[phase] = max(most.get(phase, 0.0), microseconds)
    phases = sorted((phase for phase in most if most[phase] > 0), key=lambda phase: -most[phase])
    rows = [("phase", *(f"{name}: µs" for name in by_path))]
    rows += [(phase, *(f"{costs.get(phase, 0):,.0f}" for costs in by_path.values())) for phase in phases]
    rows.append(("all", *(f"{sum(costs.values()):,.0f}" for costs in by_path.values())))
    title = "What a message costs"
    return Sheet(
        title=title,
        conditions="CPU time of the service alone, on SQLite; every phase and its functions are in results/costs.md.",
        facts=reported["facts"],
        rows=rows,
        remarks=[
            *(f"PROBLEM, {cost['path']}: {problem}" for cost in reported["costs"] for problem in cost["problems"]),
            *(f"INCOMPLETE: {gap}" for gap in reported["gaps"]),
        ],
        goals=(),
        chart=charts.costs(title, by_path),
    )


def _sheet(result: report.Report, *, chart: plots.Chart, memory: typing.Sequence[goal_checks.Goal]) -> Sheet:
    return Sheet(
        title=result.title,
        conditions=result.description,
        facts=result.facts,
        rows=report.table(result.summaries, unit=result.unit),
        remarks=list(report.remarks(result)),
        goals=result.goals,
        chart=chart,
        memory=memory,
    )
