"""The figures of growth as tables and goals: what grows, the cost at each size, and the dearest beside the smallest."""

import dataclasses
import typing

from benchmarks import goal_checks

GOAL_PERCENT = 120.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One size of a range on one store. Microseconds of CPU are those of a message to one recipient."""

    range: str
    store: str
    size: int
    messages: int
    service_microseconds: float
    store_microseconds: float
    memory_mebibytes: float
    query: str
    query_milliseconds: float
    problems: tuple[str, ...]

    @property
    def microseconds(self) -> float:
        """The cost of a message."""
        return self.service_microseconds + self.store_microseconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What grows, the sizes of a full run, and the stores that it is measured on."""

    title: str
    sizes: tuple[int, ...]
    engines: tuple[str, ...] = ("SQLite", "PostgreSQL")
    largest: typing.Mapping[str, int] = dataclasses.field(default_factory=dict)

    def sizes_on(self, store: str, sizes: typing.Sequence[int]) -> list[int]:
        """Those of the sizes that are asked for on this store."""
        return [size for size in sizes if store in self.engines and size <= self.largest.get(store, size)]


RANGES = {
    "recipients": Range(title="recipients of a message", sizes=(1, 10, 50)),
    "accounts": Range(title="accounts", sizes=(1, 100, 1000, 10_000)),
    "destinations": Range(title="destinations", sizes=(1, 100, 1000, 10_000, 100_000)),
    "stored": Range(
        title="stored messages",
        sizes=(10_000, 1_000_000, 10_000_000, 50_000_000),
        largest={"SQLite": 10_000_000},
    ),
    "processes": Range(title="delivery processes", sizes=(1, 2, 4, 8), engines=("PostgreSQL",)),
}


def goals(figures: typing.Sequence[Figure], *, in_doubt: bool) -> typing.Iterator[goal_checks.Goal]:
    """The dearest size of each range on each store beside its smallest."""
    for name, found in by_range(figures).items():
        if len(found) > 1:
            yield goal_checks.Goal(
                peer=name,
                value=100 * max(figure.microseconds for figure in found) / found[0].microseconds,
                side="at most",
                limit=GOAL_PERCENT,
                unit="% of the cost at the smallest size",
                in_doubt=in_doubt,
            )


def by_range(figures: typing.Iterable[Figure]) -> dict[str, list[Figure]]:
    """The figures of each range on each store, by a name for both, the smallest size first."""
    found: dict[str, list[Figure]] = {}
    for figure in sorted(figures, key=lambda each: (list(RANGES).index(each.range), each.store, each.size)):
        found.setdefault(f"{RANGES[figure.range].title}, {figure.store}", []).append(figure)
    return found


def table(figures: typing.Iterable[Figure]) -> list[tuple[str, ...]]:
    """The head and a row for each size."""
    head = ("range", "size", "CPU µs", "of the smallest", "service µs", "store µs", "memory MiB", "slowest query", "ms")
    rows: list[tuple[str, ...]] = [head]
    for name, found in by_range(figures).items():
        rows += (
            (
                name,
                f"{figure.size:,}",
                f"{figure.microseconds:,.0f}",
                f"{100 * figure.microseconds / found[0].microseconds:.0f} %",
                f"{figure.service_microseconds:,.0f}",
                f"{figure.store_microseconds:,.0f}" if figure.store_microseconds else "-",
                f"{figure.memory_mebibytes:,.0f}",
                f"`{figure.query}`" if figure.query else "-",
                goal_checks.number(figure.query_milliseconds) if figure.query else "-",
            )
            for figure in found
        )
    return rows


def reported(
    figures: typing.Sequence[Figure],
    *,
    facts: typing.Mapping[str, str],
    conditions: str,
    gaps: typing.Sequence[str],
    in_doubt: bool,
) -> dict[str, object]:
    """What growth.json has."""
    return {
        "facts": facts,
        "conditions": conditions,
        "gaps": gaps,
        "rows": table(figures),
        "figures": [dataclasses.asdict(figure) for figure in figures],
        "goals": [dataclasses.asdict(goal) for goal in goals(figures, in_doubt=in_doubt)],
    }
