"""`make bench-dashboard`: how quick the dashboard answers when an account has sent a million messages within a month.

The store is filled (benchmarks/large_account.py), `postroad serve` is started on it as an operator starts it, somebody
logs in and opens pages, one after the other: each a few times to warm up and then thirty times. What counts is the time
at the server, from the request's first byte until its answer is made, as the service's own log has it. The first answer
to each request is reported too: its caches are empty. An answer other than 200 fails the run. The CPU time of service
and store says what a page costs where other programs use the machine. At the end the newest messages are exported as
CSV, a hundred thousand rows of them.
"""

import argparse
import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import statistics
import time
import typing

from benchmarks import browsers, dashboard_pages, figures, large_account, machine, measure, session
from benchmarks.peers import postgres, postroad, process, stores

GOAL_MILLISECONDS = 300.0
WARM_UP = 3
LOG_SECONDS = 10.0
EXPORTED_ROWS = 100_000
PEERS = ("sqlite", "sqlite-backlog", "postgresql", "postgresql-backlog")
FULL = {"messages": 1_000_000, "times": 30, "peers": list(PEERS)}
QUEUED = 2_000
ROLES: postroad.Processes = (("api", "maintenance"),)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """How long one page took at the server, in milliseconds, of one peer. `cpu` is that of service and store."""

    peer: str
    page: str
    first: float
    p50: float
    p95: float
    slowest: float
    cpu: float
    kilobytes: float
    # Others used so much of the machine meanwhile.
    rest_percent: float
    problem: str = ""

    @property
    def is_quick(self) -> bool:
        """Whether every response met the goal; the first one is reported but not counted: it fills the caches."""
        return not self.problem and self.slowest < GOAL_MILLISECONDS

    @property
    def is_noisy(self) -> bool:
        """Whether other programs took so much that the times prove nothing."""
        return self.rest_percent > figures.NOISY_PERCENT


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Messages as CSV: when the first bytes came, how long it took, and the rows."""

    peer: str
    first_milliseconds: float
    seconds: float
    cpu_seconds: float
    rows: int

    def sentence(self) -> str:
        """The export for the page."""
        return (
            f"{self.peer}: messages as CSV: the first bytes after {self.first_milliseconds:.0f} ms; "
            f"{self.rows:,} rows in {self.seconds:.0f} s, {self.rows / self.seconds:,.0f} a second, with "
            f"{1e6 * self.cpu_seconds / self.rows:.0f} µs of CPU for each."
        )


class Visit:
    """A browser at a running service: what is measured with it."""

    def __init__(self, peer: str, browser: browsers.Browser, *, log: pathlib.Path, pids: typing.Sequence[int]) -> None:
        self.peer = peer
        self.browser = browser
        self._log = log
        self._pids = pids

    def figure(self, name: str, path: str, *, times: int) -> Figure:
        """Open a page so many times."""
        answers = [self.browser.get(path) for _ in range(1 + WARM_UP)]
        with measure.Window({"service": self._pids, "browser": [os.getpid()]}) as window:
            answers += [self.browser.get(path) for _ in range(times)]
        cost = window.cost()
        durations = _durations(self._log, [answer.request_id for answer in answers])
        warm = sorted(durations[1 + WARM_UP :])
        refused = next((answer.status for answer in answers if answer.status != http.HTTPStatus.OK), None)
        rest = cost.machine_busy_seconds + cost.machine_stolen_seconds - sum(cost.cpu_seconds.values())
        figure = Figure(
            peer=self.peer,
            page=name,
            first=durations[0],
            p50=statistics.median(warm),
            p95=warm[min(len(warm) - 1, round(len(warm) * 0.95))],
            slowest=warm[-1],
            cpu=1000 * cost.cpu_seconds["service"] / times,
            kilobytes=len(answers[-1].page) / 1000,
            rest_percent=max(0.0, 100 * rest / (cost.seconds * (os.cpu_count() or 1))),
            problem="" if refused is None else f"was answered with {refused}",
        )
        times_taken = f"p50 {figure.p50:.1f} ms, slowest {figure.slowest:.1f} ms, CPU {figure.cpu:.1f} ms"
        print(f"{self.peer}, {name}: {times_taken} {figure.problem}", flush=True)
        return figure

    def export(self) -> Export:
        """Download messages, and hang up after enough of them."""
        before, began, first, rows = measure.tree_cpu_seconds(*self._pids), time.monotonic(), 0.0, -1
        for part in self.browser.parts("/messages.csv"):
            first = first or time.monotonic()
            rows += part.count(b"\r\n")  # the head is none
            if rows >= EXPORTED_ROWS:
                break
        export = Export(
            peer=self.peer,
            first_milliseconds=1000 * (first - began),
            seconds=time.monotonic() - began,
            cpu_seconds=measure.tree_cpu_seconds(*self._pids) - before,
            rows=rows,
        )
        print(export.sentence(), flush=True)
        return export


def visit(
    peer: str, *, folder: pathlib.Path, database: postgres.Postgres | None, options: argparse.Namespace
) -> tuple[list[Figure], Export]:
    """Fill a store, serve it, open every page, and export messages."""
    filled: list[large_account.Filled] = []
    with contextlib.ExitStack() as stack:
        kind: stores.Name = "SQLite" if peer.startswith("sqlite") else "PostgreSQL"
        store = stack.enter_context(stores.empty(kind, folder=folder, server=database))

        def prepare(configuration: pathlib.Path) -> None:
            began = time.monotonic()
            queued = options.messages if peer.endswith("-backlog") else min(QUEUED, options.messages)
            filled.append(large_account.fill(configuration, store, messages=options.messages, queued=queued))
            os.sync()
            print(f"{peer}: filled in {time.monotonic() - began:.0f} s", flush=True)

        pages = postroad.Pages(processes=ROLES)
        service = stack.enter_context(postroad.running(folder, database_url=store.url, work=pages, prepare=prepare))
        browser = stack.enter_context(
            contextlib.closing(browsers.Browser(service.port, email=large_account.EMAIL, password=filled[0].password))
        )
        pids = [*service.pids, *([store.pid] if store.pid else [])]
        return at_service(Visit(peer, browser, log=folder / "postroad-1.log", pids=pids), filled[0], options=options)


def at_service(
    visit: Visit, filled: large_account.Filled, *, options: argparse.Namespace
) -> tuple[list[Figure], Export]:
    """Open every page, and export messages."""
    asked = list(dashboard_pages.questions(filled, lambda path: visit.browser.get(path).page))
    return [visit.figure(name, path, times=options.times) for name, path in asked], visit.export()


def _durations(log: pathlib.Path, request_ids: typing.Sequence[str]) -> list[float]:
    """What the service's log says of these requests; a line may come a moment after its answer."""
    wanted, found = set(request_ids), dict[str, float]()

    def read() -> bool:
        for line in log.read_text().splitlines():
            if line.startswith("{") and '"request"' in line and (reported := json.loads(line))["event"] == "request":
                found[reported["request_id"]] = reported["duration_ms"]
        return wanted <= found.keys()

    process.wait_until(read, what="the log lines of the requests", seconds=LOG_SECONDS)
    return [found[request_id] for request_id in request_ids]


def table(found: typing.Sequence[Figure]) -> list[str]:
    """The figures as a Markdown table."""
    head = (
        "store",
        "page",
        "first ms",
        "p50 ms",
        "p95 ms",
        "slowest ms",
        "CPU ms",
        "KB",
        f"under {GOAL_MILLISECONDS:.0f} ms",
    )
    rows = [
        (
            figure.peer,
            figure.page,
            *(
                f"{value:,.1f}"
                for value in (figure.first, figure.p50, figure.p95, figure.slowest, figure.cpu, figure.kilobytes)
            ),
            figure.problem or ("yes" if figure.is_quick else "NO"),
        )
        for figure in found
    ]
    return [f"| {' | '.join(cells)} |" for cells in (head, tuple("---" for _ in head), *rows)]


def verdicts(found: typing.Sequence[Figure]) -> list[str]:
    """A sentence for each store."""
    sentences = []
    for peer in dict.fromkeys(figure.peer for figure in found):
        of_peer = [figure for figure in found if figure.peer == peer]
        late = [figure.page for figure in of_peer if not figure.is_quick]
        worst, first = max(of_peer, key=lambda one: one.slowest), max(of_peer, key=lambda one: one.first)
        outcome = f"NOT reached: {', '.join(late)}" if late else "reached"
        costly = max(of_peer, key=lambda one: one.cpu)
        sentences.append(
            f"{peer}: the goal of {GOAL_MILLISECONDS:.0f} ms is {outcome}. The slowest answer was {worst.page} with "
            f"{worst.slowest:.0f} ms; the slowest of the first ones was {first.page} with {first.first:.0f} ms; the "
            f"most CPU took {costly.page} with {costly.cpu:.0f} ms."
        )
        if noisy := sum(figure.is_noisy for figure in of_peer):
            sentences.append(
                f"NOISE, {peer}: at {noisy} of {len(of_peer)} pages other programs used more than "
                f"{figures.NOISY_PERCENT:.0f} % of the machine; repeat on a quiet one."
            )
    return sentences


def main() -> int:
    """Fill, measure, print, write; 0 when all is well, 1 when a page failed or was late, 2 when a gap is left."""
    options = _options()
    found: list[Figure] = []
    exports: list[Export] = []
    with session.work_folder(options.folder) as folder, contextlib.ExitStack() as stack:
        facts = machine.facts() | {"file system": machine.file_system(folder)}
        gaps = session.in_memory(folder)
        wanted = any(peer.startswith("postgresql") for peer in options.peers)
        database = stack.enter_context(session.database(folder, facts, wanted=wanted))
        for peer in options.peers:
            shown, export = visit(peer, folder=folder / "service", database=database, options=options)
            found += shown
            exports.append(export)
    remarks = [
        *verdicts(found),
        *(export.sentence() for export in exports),
        *(f"INCOMPLETE: {gap}" for gap in gaps),
    ]
    page = "\n".join(_page(options, found, facts=facts, remarks=remarks))
    print(page)
    _write(options, found, facts=facts, remarks=remarks, page=page)
    if not all(figure.is_quick for figure in found):
        return 1
    return 2 if gaps else 0


def _page(
    options: argparse.Namespace, found: list[Figure], *, facts: dict[str, str], remarks: list[str]
) -> typing.Iterator[str]:
    yield "# The dashboard with a million messages\n"
    yield (
        f"Milliseconds at the server, from the service's own log, of an account with {options.messages:,} messages of "
        f"{large_account.DAYS} days, of which {QUEUED:,} are queued; backlog: all of them are. The installation has "
        f"{large_account.ACCOUNTS:,} other accounts. One visitor, who is an operator, over one connection; "
        f"{options.times} answers for each page after {WARM_UP} that warm up. First: the first answer to this question "
        "since the service started.\n"
    )
    yield from table(found)
    yield ""
    yield from (f"- {remark}" for remark in remarks)
    yield "\n| fact | value |\n| --- | --- |"
    yield from (f"| {name} | {value} |" for name, value in facts.items())
    yield ""


def _write(
    options: argparse.Namespace, found: list[Figure], *, facts: dict[str, str], remarks: list[str], page: str
) -> None:
    """A short run replaces the result of a whole one only when somebody says where to write."""
    is_full = all(getattr(options, name) == value for name, value in FULL.items())
    folder: pathlib.Path | None = options.results or (session.RESULTS if is_full else None)
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    reported = {"facts": facts, "remarks": remarks, "figures": [dataclasses.asdict(figure) for figure in found]}
    (folder / "dashboard.md").write_text(page)
    (folder / "dashboard.json").write_text(json.dumps(reported, indent=2, ensure_ascii=False) + "\n")


def _options() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m benchmarks.dashboard", description="Pages over a million messages.")
    words.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), help="measure only these")
    words.add_argument("--messages", type=int, default=FULL["messages"], help="how many were sent (1000000)")
    words.add_argument("--times", type=int, default=FULL["times"], help="answers measured for each page (30)")
    words.add_argument("--folder", type=pathlib.Path, help="a folder on the disk to measure (the temporary one)")
    words.add_argument("--results", type=pathlib.Path, help="where dashboard.md and dashboard.json go")
    return words.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
