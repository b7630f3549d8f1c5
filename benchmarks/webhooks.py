"""`make bench-webhooks`: webhooks sent per second, and how much one hanging endpoint slows down the others.

The store has a backlog of events for ten accounts. One `postroad serve --role webhooks` sends them, signed and over
TLS, to a process with ten endpoints. The clock runs from the end of the warm-up until the last event was received *and*
is recorded as such. With ten healthy endpoints that is the rate. Then nine are measured alone, and beside a tenth that
accepts, reads and never answers; only what the nine get is counted. Rounds alternate between the variants, each on a
new store. After each round the counts are compared: every healthy endpoint got every event once, the store knows it,
and a sample of the signatures is genuine.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import statistics
import time
import typing

from benchmarks import figures, goal_checks, machine, measure, report, session, webhook_backlog, webhook_rounds
from benchmarks.injectors import injection
from benchmarks.peers import postgres, postroad, stores, webhook_server, webhook_sink

ENDPOINTS = 10
# What must be left of the rate of the healthy nine when the tenth hangs.
GOAL_PERCENT = 95.0
FULL = {"rounds": 3, "events": 20_000, "warm_up": 2000}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One line of the table: how many endpoints are healthy, and what the tenth does otherwise."""

    store: stores.Name
    healthy: int = ENDPOINTS
    hanging: bool = False
    at_one_place: bool = False

    @property
    def name(self) -> str:
        """What the table calls it."""
        words = [f"{self.store}, {self.healthy} endpoints"]
        words += ["at one address"] if self.at_one_place else []
        words += ["beside one that hangs"] if self.hanging else []
        return " ".join(words)

    def urls(self, sink: webhook_sink.Sink) -> list[str]:
        """Where the endpoints are."""
        return [
            sink.url(number, hangs=self.hanging and number >= self.healthy, has_name=not self.at_one_place)
            for number in range(ENDPOINTS)
        ]

    def events_of(self, each: int) -> list[int]:
        """How many events each endpoint has."""
        return [each if number < self.healthy or self.hanging else 0 for number in range(ENDPOINTS)]


VARIANTS = {
    "sqlite": Variant(store="SQLite"),
    "sqlite-shared": Variant(store="SQLite", at_one_place=True),
    "sqlite-nine": Variant(store="SQLite", healthy=ENDPOINTS - 1),
    "sqlite-hanging": Variant(store="SQLite", healthy=ENDPOINTS - 1, hanging=True),
    "postgresql": Variant(store="PostgreSQL"),
    "postgresql-shared": Variant(store="PostgreSQL", at_one_place=True),
    "postgresql-nine": Variant(store="PostgreSQL", healthy=ENDPOINTS - 1),
    "postgresql-hanging": Variant(store="PostgreSQL", healthy=ENDPOINTS - 1, hanging=True),
}


class Bench:
    """One run: its options, its folder, and the database server that lives through all its rounds."""

    def __init__(
        self, options: argparse.Namespace, *, folder: pathlib.Path, database: postgres.Postgres | None
    ) -> None:
        self._options = options
        self._folder = folder
        self._database = database

    def measure(self, variant: Variant) -> figures.Round:
        """One round, on a quiet disk."""
        with webhook_sink.running(self._folder / "endpoints", endpoints=ENDPOINTS) as sink:
            with self._round(variant, sink) as (service, ongoing):
                ongoing.wait(delivered=self._options.warm_up)
                processes = {"service": service.pids, "sink": (sink.pid,)}
                processes |= {"store": (ongoing.store.pid,)} if ongoing.store.pid is not None else {}
                with measure.Window(processes) as window:
                    before, began = ongoing.delivered(), time.monotonic()
                    ongoing.wait(delivered=ongoing.total)
                    seconds = time.monotonic() - began
                if before >= ongoing.total:
                    raise RuntimeError("all events were delivered before the clock started; use more --events")
                latency = ongoing.latency()
                problems = [*ongoing.differences(), *service.verify()[1]]
                print(f"{variant.name}: {sink.connections()} connections for {sum(sink.events()):,} requests")
            problems += webhook_rounds.signature_differences(sink.stop(), secrets=ongoing.pile.secrets)
        rate = (ongoing.total - before) / seconds
        sent = injection.Injection(
            sent=ongoing.total - before,
            failed=0,
            accepts_per_second=rate,
            seconds=seconds,
            cpu_seconds=None,
            latency=latency,
        )
        return figures.of_round(
            variant.name,
            messages_per_second=rate,
            sent=sent,
            cost=window.cost(),
            cores=os.cpu_count() or 1,
            problems=problems,
        )

    @contextlib.contextmanager
    def _round(
        self, variant: Variant, sink: webhook_sink.Sink
    ) -> typing.Iterator[tuple[postroad.Postroad, webhook_rounds.WebhookRound]]:
        folder, each = self._folder / "service", self._options.events // ENDPOINTS
        piles: list[webhook_backlog.WebhookBacklog] = []
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(stores.empty(variant.store, folder=folder, server=self._database))

            def prepare(configuration: pathlib.Path) -> None:
                urls, events_of = variant.urls(sink), variant.events_of(each)
                piles.append(webhook_backlog.write(configuration, urls=urls, events_of=events_of))
                store.load("")  # nothing but the tidying that comes with it
                os.sync()

            teller = postroad.WebhookSending(
                network=f"{webhook_server.ADDRESS}/32", authority=sink.authority, name_server=sink.name_server
            )
            service = stack.enter_context(
                postroad.running(folder, database_url=store.url, work=teller, prepare=prepare)
            )
            yield (
                service,
                webhook_rounds.WebhookRound(
                    healthy=variant.healthy,
                    hanging=variant.hanging,
                    sink=sink,
                    store=store,
                    pile=piles[0],
                    each=each,
                ),
            )


def main() -> int:
    """Run, print, write; 0 when all is well, 1 when an event was lost, doubled or not signed, 2 when one is missing."""
    options = _options()
    with session.work_folder(options.folder) as folder:
        result = _run(options, folder=folder, gaps=session.in_memory(folder))
    return session.finish(result, folder=_results(options), name="webhooks")


def _results(options: argparse.Namespace) -> pathlib.Path | None:
    """Where the result goes; a short run must not replace a whole one unasked."""
    full = all(getattr(options, name) == value for name, value in FULL.items()) and options.peers == list(VARIANTS)
    chosen: pathlib.Path | None = options.results
    return chosen or (session.RESULTS if full else None)


def _run(options: argparse.Namespace, *, folder: pathlib.Path, gaps: list[str]) -> report.Report:
    facts = machine.facts() | {"file system": machine.file_system(folder)}
    with contextlib.ExitStack() as stack:
        wanted = any(VARIANTS[name].store == "PostgreSQL" for name in options.peers)
        database = stack.enter_context(session.database(folder, facts, wanted=wanted))
        bench = Bench(options, folder=folder, database=database)
        ended = session.alternate(
            lambda name: bench.measure(VARIANTS[name]), options.peers, rounds=options.rounds, gaps=gaps
        )
    rounds = [run for _, run in ended]
    summaries = figures.summarise(rounds, reference="")
    return report.Report(
        title="Webhooks",
        description=_description(options),
        facts=facts,
        summaries=summaries,
        rounds=rounds,
        gaps=gaps,
        unit="event",
        goals=list(_goals(summaries)),
        verdicts=[*_shares(summaries), *_memory(rounds)],
    )


def _goals(summaries: typing.Sequence[figures.Summary]) -> typing.Iterator[goal_checks.Goal]:
    """What is left to the nine beside a tenth that hangs, of what they have alone."""
    by_name = {summary.peer: summary for summary in summaries}
    for store in ("sqlite", "postgresql"):
        nine, hanging = (by_name.get(VARIANTS[name].name) for name in (f"{store}-nine", f"{store}-hanging"))
        if nine is not None and hanging is not None:
            yield goal_checks.of_share(
                hanging,
                alone=nine,
                percent=GOAL_PERCENT,
                of_what=f"the rate of the {ENDPOINTS - 1} alone",
                in_doubt=goal_checks.is_noisy(summaries),
            )


def _shares(summaries: typing.Sequence[figures.Summary]) -> typing.Iterator[str]:
    """The same beside their part of ten."""
    rates, doubt = {summary.peer: summary.messages_per_second for summary in summaries}, session.doubt(summaries)
    for store in ("sqlite", "postgresql"):
        ten, hanging = (VARIANTS[name].name for name in (store, f"{store}-hanging"))
        if ten in rates and hanging in rates:
            share = 100 * rates[hanging] / (rates[ten] * (ENDPOINTS - 1) / ENDPOINTS)
            yield f"{hanging}: {share:.1f} % of what they get as {ENDPOINTS - 1} of {ENDPOINTS} healthy ones{doubt}."


def _memory(rounds: typing.Sequence[figures.Round]) -> typing.Iterator[str]:
    for peer in dict.fromkeys(run.peer for run in rounds):
        held = [run.memory_mebibytes["service"] for run in rounds if run.peer == peer]
        yield f"{peer}: the service itself held {statistics.median(held):.0f} MiB."


def _description(options: argparse.Namespace) -> str:
    return (
        f"Webhooks per second from a backlog of {options.events:,} events in the store, over {ENDPOINTS} accounts with "
        "an endpoint each, to a server on loopback: one signed POST over TLS for each event, its response recorded. "
        "One process with the role webhooks and its default settings; one process with all endpoints, which counts and "
        f"answers. {ENDPOINTS - 1} endpoints: the tenth has no events. One that hangs: the tenth has as many as the "
        "others, accepts, reads and never answers; rate and costs are those of the others' events. Each endpoint has a "
        "host name of its own, looked up in DNS; at one address: all share one, as those at a service that takes "
        f"webhooks for many do. Medians of {options.rounds} alternating rounds, each on a new store; the first "
        f"{options.warm_up:,} events of a round warm up. Latency is that of an attempt. Memory is the peak of the "
        "service and its store, shared pages counted once."
    )


def _options() -> argparse.Namespace:
    parser = session.parser(
        "webhooks", "Webhooks to ten endpoints.", peers=VARIANTS, rounds=FULL["rounds"], results=None
    )
    parser.add_argument("--events", type=int, default=FULL["events"], help="events of a round (20000)")
    parser.add_argument("--warm-up", type=int, default=FULL["warm_up"], help="those before the clock runs (2000)")
    options = parser.parse_args()
    if options.events % ENDPOINTS or not options.warm_up < options.events // ENDPOINTS * (ENDPOINTS - 1):
        parser.error(f"--events must be a multiple of {ENDPOINTS}, and more than --warm-up by a quarter or so")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
