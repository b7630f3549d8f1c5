"""`make bench-deliver`: how many messages a second come through, from the POST to the destination, beside Postfix.

The clock runs from the injector's start until the last message is at `smtp-sink` and recorded as delivered: its credit
is settled in Postroad's store, its file is gone from Postfix's queue. Both accept durably, use at most 20 connections
to the sink, and carry the same 5 KB message; signed variants sign by DKIM with RSA-2048. Rounds alternate between the
variants, each on an empty store, or on one with a backlog that waits. After each round the books are compared: every
message arrived once and is recorded, or the round has a problem.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import typing

from benchmarks import backlog, deliveries, figures, machine, measure, message, report, session
from benchmarks.peers import opendkim, postfix, postgres, postroad, smtp_sink, stores

REFERENCES = {False: "Postfix", True: "Postfix, signed"}
# How many times as fast as its reference.
GOALS = {"Postfix": 5.0, "Postfix, signed": 4.0}
# So few that a sink which keeps them is quick, so many that a signature is no accident.
PROOF_MESSAGES = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One line of the table. Without a store it is Postfix."""

    store: typing.Literal["SQLite", "PostgreSQL"] | None
    signed: bool = False
    processes: postroad.Processes = postroad.ONE_PROCESS
    backlog: bool = False

    def name(self, *, waiting: int) -> str:
        """What the table calls it."""
        words = ["Postroad", self.store] if self.store else ["Postfix"]
        words += ["two processes"] if self.processes == postroad.TWO_PROCESSES else []
        words += ["signed"] if self.signed else []
        words += [f"{waiting:,} waiting"] if self.backlog else []
        return ", ".join(words)


VARIANTS = {
    "sqlite": Variant(store="SQLite"),
    "postgresql": Variant(store="PostgreSQL"),
    "sqlite-two": Variant(store="SQLite", processes=postroad.TWO_PROCESSES),
    "postgresql-two": Variant(store="PostgreSQL", processes=postroad.TWO_PROCESSES),
    "sqlite-backlog": Variant(store="SQLite", backlog=True),
    "postgresql-backlog": Variant(store="PostgreSQL", backlog=True),
    "postfix": Variant(store=None),
    "sqlite-signed": Variant(store="SQLite", signed=True),
    "postgresql-signed": Variant(store="PostgreSQL", signed=True),
    "sqlite-two-signed": Variant(store="SQLite", signed=True, processes=postroad.TWO_PROCESSES),
    "postgresql-two-signed": Variant(store="PostgreSQL", signed=True, processes=postroad.TWO_PROCESSES),
    "postfix-signed": Variant(store=None, signed=True),
}
# The backlog's rate beside the rate without one.
WITH_AND_WITHOUT = {"sqlite-backlog": "sqlite", "postgresql-backlog": "postgresql"}


class Bench:
    """One run: its options, its folder, and the database server that lives through all its rounds."""

    def __init__(
        self, options: argparse.Namespace, *, folder: pathlib.Path, database: postgres.Postgres | None
    ) -> None:
        self._options = options
        self._folder = folder
        self._database = database

    def prove(self, variant: Variant) -> list[str]:
        """What is wrong with the signatures of this variant, seen at a sink that keeps its mail."""
        with (
            smtp_sink.running(self._folder / "sink", keep=True) as sink,
            self._contender(variant, sink, waiting=0) as contender,
        ):
            deliveries.deliver(contender, sink, run="proof", messages=PROOF_MESSAGES)
            return deliveries.signature_differences(sink.mail(), messages=PROOF_MESSAGES, signed=variant.signed)

    def measure(self, variant: Variant) -> figures.Round:
        """One round, on a quiet disk."""
        waiting = self._options.backlog if variant.backlog else 0
        messages = self._options.messages
        with (
            smtp_sink.running(self._folder / "sink") as sink,
            self._contender(variant, sink, waiting=waiting) as contender,
        ):
            warm_up = deliveries.deliver(contender, sink, run="warm-up", messages=self._options.warm_up)
            os.sync()
            with measure.Window({**contender.processes(), "sink": (sink.pid,)}) as window:
                done = deliveries.deliver(contender, sink, run="measured", messages=messages)
            delivered = self._options.warm_up + messages
            problems = deliveries.arrival_differences(sink, delivered=delivered)
            problems += contender.differences(delivered=delivered)
        if failed := warm_up.sent.failed + done.sent.failed:
            problems.append(f"{failed} messages were refused or not answered")
        return figures.of_round(
            variant.name(waiting=waiting),
            messages_per_second=messages / done.seconds,
            sent=done.sent,
            cost=window.cost(),
            cores=os.cpu_count() or 1,
            problems=problems,
        )

    @contextlib.contextmanager
    def _contender(
        self, variant: Variant, sink: smtp_sink.Sink, *, waiting: int
    ) -> typing.Iterator[deliveries.Contender]:
        with contextlib.ExitStack() as stack:
            if variant.store is None:
                yield self._relaying_postfix(stack, variant, sink)
            else:
                yield self._relaying_postroad(stack, variant, sink, waiting=waiting)

    def _relaying_postfix(
        self, stack: contextlib.ExitStack, variant: Variant, sink: smtp_sink.Sink
    ) -> deliveries.OnPostfix:
        mime = self._folder / "message.eml"
        mime.write_bytes(message.as_mime(self._options.content))
        milter = stack.enter_context(opendkim.running(self._folder / "opendkim")) if variant.signed else None
        relay = postfix.Relay(next_hop_port=sink.port, milter_port=milter.port if milter else None)
        server = stack.enter_context(postfix.running(self._folder / "postfix", relay=relay))
        return deliveries.OnPostfix(server=server, milter=milter, mime=mime, sessions=self._options.sessions)

    def _relaying_postroad(
        self, stack: contextlib.ExitStack, variant: Variant, sink: smtp_sink.Sink, *, waiting: int
    ) -> deliveries.OnPostroad:
        folder = self._folder / "service"
        store = self._store(stack, variant, folder=folder)
        service = stack.enter_context(
            postroad.running(
                folder,
                database_url=store.url,
                work=postroad.Relay(next_hop_port=sink.port, sign=variant.signed, processes=variant.processes),
                prepare=lambda _: backlog.load(store, recipients=waiting) if waiting else None,
            )
        )
        return deliveries.OnPostroad(
            service=service,
            store=store,
            folder=self._folder,
            connections=self._options.connections,
            content=self._options.content,
            waiting=waiting,
        )

    def _store(self, stack: contextlib.ExitStack, variant: Variant, *, folder: pathlib.Path) -> stores.Store:
        if variant.store == "SQLite":
            return stores.SqliteFile(folder / "mail.db")
        assert self._database is not None
        name = "postroad_bench"
        stack.enter_context(self._database.database(name))
        return stores.PostgresDatabase(self._database, name=name)


def main() -> int:
    """Run, print, write; 0 when all is well, 1 when a message was refused, lost or doubled, 2 when one is missing."""
    options = _options()
    gaps, names = _runnable(options.peers)
    for gap in gaps:
        print(f"!!! INCOMPLETE: {gap}", file=sys.stderr)
    if not names:
        return 2
    with session.work_folder(options.folder) as folder:
        gaps += session.in_memory(folder)
        result = _run(options, names=names, folder=folder, gaps=gaps)
    return session.finish(result, folder=options.results, name="deliver")


def _run(
    options: argparse.Namespace, *, names: typing.Sequence[str], folder: pathlib.Path, gaps: list[str]
) -> report.Report:
    facts = machine.facts() | {"file system": machine.file_system(folder)}
    with contextlib.ExitStack() as stack:
        wanted = any(VARIANTS[name].store == "PostgreSQL" for name in names)
        database = stack.enter_context(session.database(folder, facts, wanted=wanted))
        if any(VARIANTS[name].store is None for name in names):
            facts["Postfix"] = postfix.version()
        if "postfix-signed" in names:
            facts["OpenDKIM"] = opendkim.version()
        bench = Bench(options, folder=folder, database=database)
        rounds = _rounds(bench, options, names=_proven(bench, names, gaps=gaps), gaps=gaps)
    groups = {
        reference: figures.summarise(
            [one for name, one in rounds if VARIANTS[name].signed == signed], reference=reference
        )
        for signed, reference in REFERENCES.items()
    }
    summaries = [summary for group in groups.values() for summary in group]
    return report.Report(
        title="From the POST to the destination",
        description=_description(options),
        facts=facts,
        summaries=summaries,
        rounds=[one for _, one in rounds],
        verdicts=[
            *(
                line
                for name, group in groups.items()
                for line in session.verdicts(group, reference=name, goal=GOALS[name])
            ),
            *_backlog_verdicts(summaries, waiting=options.backlog),
        ],
        gaps=gaps,
    )


def _proven(bench: Bench, names: typing.Sequence[str], *, gaps: list[str]) -> list[str]:
    """The variants whose mail is signed, or not signed, as their name says; a backlog changes nothing about that."""
    proven = []
    for name in names:
        problems: list[str] = []
        if not VARIANTS[name].backlog:
            with _failures_into(problems, what=f"{name} was not measured"):
                problems += [f"{name} was not measured: {problem}" for problem in bench.prove(VARIANTS[name])]
        gaps += problems
        proven += [] if problems else [name]
    return proven


def _rounds(
    bench: Bench, options: argparse.Namespace, *, names: typing.Sequence[str], gaps: list[str]
) -> list[tuple[str, figures.Round]]:
    rounds = []
    for number in range(1, options.rounds + 1):
        for name in names:
            with _failures_into(gaps, what=f"round {number} of {name} did not end"):
                one = bench.measure(VARIANTS[name])
                rounds.append((name, one))
                print(f"round {number}, {one.peer}: {one.messages_per_second:,.0f}/s", *one.problems, flush=True)
    return rounds


@contextlib.contextmanager
def _failures_into(problems: list[str], *, what: str) -> typing.Iterator[None]:
    """A variant that fails must not take the figures of the others with it."""
    try:
        yield
    except (RuntimeError, TimeoutError, subprocess.CalledProcessError) as failure:
        print(f"!!! {what}: {failure}", file=sys.stderr)
        problems.append(f"{what}: {failure}")


def _backlog_verdicts(summaries: typing.Sequence[figures.Summary], *, waiting: int) -> list[str]:
    sentences = []
    doubt = session.doubt(summaries)
    rates = {one.peer: one.messages_per_second for one in summaries}
    for loaded, empty in WITH_AND_WITHOUT.items():
        names = [VARIANTS[name].name(waiting=waiting) for name in (loaded, empty)]
        if all(name in rates for name in names):
            percent = 100 * rates[names[0]] / rates[names[1]]
            sentences.append(f"{names[0]}: {percent:.0f} % of the rate with an empty queue{doubt}.")
    return sentences


def _description(options: argparse.Namespace) -> str:
    return (
        f"Messages a second from the first send until all {options.messages:,} are at smtp-sink and recorded as "
        f"delivered: text+html ({options.content}; {len(message.as_mime(options.content)):,} bytes of MIME), one "
        f"recipient each. Postroad takes them over HTTP with {options.connections} kept connections (wrk) and delivers "
        f"in the same process, or in a second one; Postfix takes them over SMTP with {options.sessions} kept sessions "
        "(smtp-source) and relays them. Both deliver over at most 20 connections. Signed: DKIM, RSA-2048, "
        "relaxed/relaxed, by Postroad itself and by OpenDKIM as Postfix's milter. Medians of "
        f"{options.rounds} alternating rounds, each on an empty store after {options.warm_up:,} messages to warm up. "
        "The ratio is to the Postfix that does the same. Latency is that of the POST. Memory is the peak of the "
        "service and its store, shared pages counted once."
    )


def _runnable(wanted: typing.Sequence[str]) -> tuple[list[str], list[str]]:
    gaps = []
    names = list(wanted)
    if reason := smtp_sink.missing():
        return [f"mail has nowhere to go. {reason}"], []
    if shutil.which("wrk") is None:
        gaps.append("wrk is not installed, so Postroad was not measured: apt-get install wrk")
        names = [name for name in names if VARIANTS[name].store is None]
    if any(VARIANTS[name].store is None for name in names) and (reason := postfix.missing()):
        gaps.append(f"there is nothing to compare with. {reason}")
        names = [name for name in names if VARIANTS[name].store is not None]
    if "postfix-signed" in names and (reason := opendkim.missing()):
        gaps.append(f"there is nothing to compare signed mail with. {reason}")
        names.remove("postfix-signed")
    return gaps, names


def _options() -> argparse.Namespace:
    parser = session.parser("deliver", "Delivery beside Postfix.", peers=VARIANTS)
    parser.add_argument("--messages", type=int, default=20_000, help="messages of a round (20000)")
    parser.add_argument("--warm-up", type=int, default=1000, help="messages before it (1000)")
    parser.add_argument(
        "--backlog", type=int, default=1_000_000, help="recipients that wait, a multiple of 50 (1000000)"
    )
    parser.add_argument("--connections", type=int, default=64, help="kept HTTP connections (64)")
    session.add_mail_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
