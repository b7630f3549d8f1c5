"""`make bench-backlog`: whether the service slows down while the queue grows.

For each length of the queue, from nothing to a million recipients that are due next week, a store is filled, and two
rates are measured on it: messages a second from the POST to the destination, all roles in one service, and then those
durably accepted without delivery. What is asked for is that the longest queue leaves nine tenths of the rate of the
empty one. Rounds alternate between the lengths, each on a new store. After each round the counts are compared: every
message arrived once and is recorded, every accepted one is stored, and what waited still waits.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import sys
import typing

from benchmarks import backlog, deliveries, failures, figures, goal_checks, machine, measure, message, report, session
from benchmarks.injectors import http
from benchmarks.peers import postgres, postroad, smtp_sink, stores

# What must be left of the rate.
GOAL_PERCENT = 90.0
# Before accepts alone are measured: the first ones of a process are slow.
WARM_UP_SECONDS = 1.0
WAITING = (0, 10_000, 100_000, 1_000_000)
PEERS: dict[str, stores.Name] = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def name_of(store: stores.Name, waiting: int, *, accepting: bool) -> str:
    """What the table calls it."""
    return f"{store}, {waiting:,} waiting{', accepts alone' if accepting else ''}"


class Bench:
    """One run: its options, its folder, and the database server that lives through all its rounds."""

    def __init__(
        self, options: argparse.Namespace, *, folder: pathlib.Path, database: postgres.Postgres | None
    ) -> None:
        self._options = options
        self._folder = folder
        self._database = database

    def measure(self, store_name: stores.Name, waiting: int) -> list[figures.Round]:
        """One round of both rates, on one store."""
        folder = self._folder / "service"
        with contextlib.ExitStack() as stack:
            sink = stack.enter_context(smtp_sink.running(self._folder / "sink"))
            store = stack.enter_context(stores.empty(store_name, folder=folder, server=self._database))
            installation = stack.enter_context(
                postroad.installed(
                    folder,
                    database_url=store.url,
                    work=postroad.Relay(next_hop_port=sink.port, sign=False),
                    prepare=lambda _: backlog.load(store, recipients=waiting) if waiting else store.load(""),
                )
            )
            with postroad.serving(installation, processes=postroad.API_AND_DELIVERY) as service:
                contender = self._contender(service, store, waiting=waiting)
                name = name_of(store_name, waiting, accepting=False)
                delivered = self._delivering_round(name, contender, sink)
            with postroad.serving(installation, processes=postroad.API_ONLY) as service:
                contender = self._contender(service, store, waiting=waiting)
                name = name_of(store_name, waiting, accepting=True)
                return [delivered, self._accepting_round(name, contender)]

    def _contender(self, service: postroad.Postroad, store: stores.Store, *, waiting: int) -> deliveries.OnPostroad:
        return deliveries.OnPostroad(
            service=service,
            store=store,
            folder=self._folder,
            connections=self._options.connections,
            content="ascii",
            waiting=waiting,
        )

    def _delivering_round(self, name: str, contender: deliveries.OnPostroad, sink: smtp_sink.Sink) -> figures.Round:
        warm_up, messages = self._options.warm_up, self._options.messages
        deliveries.deliver(contender, sink, run="warm-up", messages=warm_up)
        os.sync()
        with measure.Window({**contender.processes(), "sink": (sink.pid,)}) as window:
            done = deliveries.deliver(contender, sink, run="measured", messages=messages)
        problems = deliveries.arrival_differences(sink, delivered=warm_up + messages)
        problems += contender.differences(delivered=warm_up + messages)
        if done.sent.failed:
            problems.append(f"{done.sent.failed} messages were refused or not answered")
        return figures.of_round(
            name,
            messages_per_second=messages / done.seconds,
            sent=done.sent,
            cost=window.cost(),
            cores=os.cpu_count() or 1,
            problems=problems,
        )

    def _accepting_round(self, name: str, contender: deliveries.OnPostroad) -> figures.Round:
        seconds = self._options.seconds
        http.send(contender.target("accepts-warm-up"), seconds=WARM_UP_SECONDS, expect=202)
        before = contender.service.verify()[0]
        os.sync()
        with measure.Window(contender.processes(), seconds=seconds + http.EDGE_SECONDS) as window:
            sent = http.send(contender.target("accepted"), seconds=seconds)
        stored, findings = contender.service.verify()
        problems = list(findings)
        if stored - before != sent.sent or sent.failed:
            problems.append(f"{sent.sent} messages were sent, {sent.failed} not accepted, {stored - before} stored")
        return figures.of_round(
            name,
            messages_per_second=sent.accepts_per_second,
            sent=sent,
            cost=window.cost(),
            cores=os.cpu_count() or 1,
            problems=problems,
        )


def main() -> int:
    """Run, print, write; 0 when all is well, 1 when a message was refused, lost or doubled, 2 when one is missing."""
    options = _options()
    reason = smtp_sink.missing() or (None if shutil.which("wrk") else "wrk is not installed: apt-get install wrk")
    if reason:
        print(f"!!! INCOMPLETE: nothing was measured. {reason}", file=sys.stderr)
        return 2
    with session.work_folder(options.folder) as folder:
        result = _run(options, folder=folder, gaps=session.in_memory(folder))
    return session.finish(result, folder=options.results, name="backlog_growth")


def _run(options: argparse.Namespace, *, folder: pathlib.Path, gaps: list[str]) -> report.Report:
    facts = machine.facts() | {"file system": machine.file_system(folder)}
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(session.database(folder, facts, wanted="postgresql" in options.peers))
        rounds = _rounds(Bench(options, folder=folder, database=database), options, gaps=gaps)
    summaries = figures.summarise(rounds, reference="")
    return report.Report(
        title="While the queue grows",
        description=_description(options),
        facts=facts,
        summaries=summaries,
        rounds=rounds,
        gaps=gaps,
        goals=list(_goals(summaries, options)),
    )


def _rounds(bench: Bench, options: argparse.Namespace, *, gaps: list[str]) -> list[figures.Round]:
    rounds = []
    for number in range(1, options.rounds + 1):
        for peer in options.peers:
            for waiting in options.waiting:
                with failures.into(gaps, what=f"round {number} of {peer} with {waiting:,} waiting did not end"):
                    for one in bench.measure(PEERS[peer], waiting):
                        rounds.append(one)
                        rate = f"{one.messages_per_second:,.0f}/s"
                        print(f"round {number}, {one.peer}: {rate}", *one.problems, flush=True)
    # A table that shows one rate after the other reads better than one that mixes them.
    names = [
        name_of(PEERS[peer], waiting, accepting=accepting)
        for peer in options.peers
        for accepting in (False, True)
        for waiting in options.waiting
    ]
    return sorted(rounds, key=lambda one: names.index(one.peer))


def _goals(
    summaries: typing.Sequence[figures.Summary], options: argparse.Namespace
) -> typing.Iterator[goal_checks.Goal]:
    """What the longest queue leaves of the rate of the shortest."""
    by_name = {summary.peer: summary for summary in summaries}
    for peer in options.peers:
        for accepting in (False, True):
            shortest, longest = (
                by_name.get(name_of(PEERS[peer], waiting, accepting=accepting))
                for waiting in (options.waiting[0], options.waiting[-1])
            )
            if shortest is not None and longest is not None:
                yield goal_checks.of_share(
                    longest,
                    alone=shortest,
                    percent=GOAL_PERCENT,
                    of_what=f"the rate with {options.waiting[0]:,} waiting",
                    in_doubt=goal_checks.is_noisy(summaries),
                )


def _description(options: argparse.Namespace) -> str:
    return (
        "Messages a second beside so many recipients that wait in the queue, due next week, of another account, at "
        f"{backlog.DOMAINS:,} domains. First from the POST until all {options.messages:,} are at smtp-sink and "
        "recorded as delivered, with api, delivery and maintenance in one service; then durably accepted, for "
        f"{options.seconds:g} s, with api alone. 5 KB of text+html ({len(message.as_mime('ascii')):,} bytes of MIME), "
        f"one recipient each, unsigned, over HTTP with {options.connections} persistent connections (wrk). Medians of "
        f"{options.rounds} alternating rounds, each on a new store after {options.warm_up:,} messages to warm up. "
        "Latency is that of the POST. Memory is the peak of the service and its store, shared pages counted once."
    )


def _options() -> argparse.Namespace:
    parser = session.parser("backlog_growth", "Rates beside a growing queue.", peers=PEERS)
    parser.add_argument(
        "--waiting", type=int, nargs="+", default=list(WAITING), help="recipients that wait, multiples of 50"
    )
    parser.add_argument("--messages", type=int, default=10_000, help="messages of a round (10000)")
    parser.add_argument("--warm-up", type=int, default=1000, help="messages before it (1000)")
    # As long as from one look at the length of the queue to the next, so that each round has one.
    parser.add_argument("--seconds", type=float, default=10, help="sending time of accepts alone (10)")
    parser.add_argument("--connections", type=int, default=64, help="persistent HTTP connections (64)")
    options = parser.parse_args()
    if any(waiting % backlog.RECIPIENTS_PER_MESSAGE for waiting in options.waiting):
        parser.error(f"--waiting takes multiples of {backlog.RECIPIENTS_PER_MESSAGE}")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
