"""`make bench-deliver`: how many messages a second come through, from the POST to the destination, beside its peers.

The clock runs from the injector's start until the last message is at `smtp-sink` and recorded as delivered: its credit
is settled in Postroad's store, its file is gone from the queue of a mail server. All use at most 20 connections to the
sink, where they can be told, and carry the same message, of 5 KB or of 100 KB; signed variants sign by DKIM with
RSA-2048. Rounds alternate between the variants, each on an empty store. After each round the counts are compared: every
message arrived once and is recorded, or the round has a problem.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import shutil
import sys
import typing

from benchmarks import deliveries, failures, figures, goal_checks, machine, measure, message, report, session
from benchmarks.peers import mail_servers, next_hop, opendkim, postfix, postgres, postroad, smtp_sink, stores

# How many times as fast as the Postfix that does the same, by whether mail is signed.
GOALS = {False: 5.0, True: 4.0}
# So few that a sink which keeps them is quick, so many that a signature is no accident.
PROOF_MESSAGES = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One line of the table. Without a store it is the mail server `peer`."""

    store: stores.Name | None
    peer: str = mail_servers.REFERENCE
    signed: bool = False
    large: bool = False

    @property
    def name(self) -> str:
        """What the table calls it."""
        words = ["Postroad", self.store] if self.store else [mail_servers.ALL[self.peer].NAME]
        words += ["100 KB"] if self.large else []
        words += ["signed"] if self.signed else []
        return ", ".join(words)

    @property
    def reference(self) -> str:
        """The line that it is compared with: the Postfix that does the same."""
        return Variant(store=None, signed=self.signed, large=self.large).name

    @property
    def part_bytes(self) -> int:
        """How long its text and its HTML are."""
        return message.LARGE_PART_BYTES if self.large else message.PART_BYTES


VARIANTS = {
    "sqlite": Variant(store="SQLite"),
    "postgresql": Variant(store="PostgreSQL"),
    **{key: Variant(store=None, peer=key) for key in mail_servers.ALL},
    "sqlite-signed": Variant(store="SQLite", signed=True),
    "postgresql-signed": Variant(store="PostgreSQL", signed=True),
    "postfix-signed": Variant(store=None, signed=True),
    "sqlite-large": Variant(store="SQLite", large=True),
    "postfix-large": Variant(store=None, large=True),
    "sqlite-large-signed": Variant(store="SQLite", large=True, signed=True),
    "postfix-large-signed": Variant(store=None, large=True, signed=True),
}


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
            self._contender(variant, sink) as contender,
        ):
            deliveries.deliver(contender, sink, run="proof", messages=PROOF_MESSAGES)
            return deliveries.signature_differences(sink.mail(), messages=PROOF_MESSAGES, signed=variant.signed)

    def measure(self, variant: Variant) -> figures.Round:
        """One round, on a quiet disk."""
        messages = self._options.large_messages if variant.large else self._options.messages
        warm_up_messages = min(self._options.warm_up, messages)
        with (
            smtp_sink.running(self._folder / "sink") as sink,
            self._contender(variant, sink) as contender,
        ):
            warm_up = deliveries.deliver(contender, sink, run="warm-up", messages=warm_up_messages)
            os.sync()
            with measure.Window({**contender.processes(), "sink": (sink.pid,)}) as window:
                done = deliveries.deliver(contender, sink, run="measured", messages=messages)
            delivered = warm_up_messages + messages
            problems = deliveries.arrival_differences(sink, delivered=delivered)
            problems += contender.differences(delivered=delivered)
        if failed := warm_up.sent.failed + done.sent.failed:
            problems.append(f"{failed} messages were refused or not answered")
        return figures.of_round(
            variant.name,
            messages_per_second=messages / done.seconds,
            sent=done.sent,
            cost=window.cost(),
            cores=os.cpu_count() or 1,
            problems=problems,
        )

    @contextlib.contextmanager
    def _contender(self, variant: Variant, sink: smtp_sink.Sink) -> typing.Iterator[deliveries.Contender]:
        with contextlib.ExitStack() as stack:
            if variant.store is None:
                yield self._relaying_peer(stack, variant, sink)
            else:
                yield self._relaying_postroad(stack, variant, sink, store_name=variant.store)

    def _relaying_peer(
        self, stack: contextlib.ExitStack, variant: Variant, sink: smtp_sink.Sink
    ) -> deliveries.OnMailServer:
        mime, sessions = self._folder / "message.eml", self._options.sessions
        mime.write_bytes(message.as_mime(self._options.content, part_bytes=variant.part_bytes))
        relay, folder = next_hop.Relay(next_hop_port=sink.port), self._folder / variant.peer
        if not variant.signed:
            plain = stack.enter_context(mail_servers.ALL[variant.peer].running(folder, relay=relay))
            return deliveries.OnMailServer(server=plain, mime=mime, sessions=sessions)
        milter = stack.enter_context(opendkim.running(self._folder / "opendkim"))
        signing = stack.enter_context(postfix.running(folder, relay=relay, milter=milter.socket))
        return deliveries.OnMailServer(server=signing, milter=milter, mime=mime, sessions=sessions)

    def _relaying_postroad(
        self, stack: contextlib.ExitStack, variant: Variant, sink: smtp_sink.Sink, *, store_name: stores.Name
    ) -> deliveries.OnPostroad:
        folder = self._folder / "service"
        store = stack.enter_context(stores.empty(store_name, folder=folder, server=self._database))
        relay = postroad.Relay(next_hop_port=sink.port, sign=variant.signed)
        service = stack.enter_context(postroad.running(folder, database_url=store.url, work=relay))
        return deliveries.OnPostroad(
            service=service,
            store=store,
            folder=self._folder,
            connections=self._options.connections,
            content=self._options.content,
            part_bytes=variant.part_bytes,
        )


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
        facts |= mail_servers.facts(_mail_servers(names))
        if any(_needs_milter(name) for name in names):
            facts["OpenDKIM"] = opendkim.version()
        bench = Bench(options, folder=folder, database=database)
        proven = _proven(bench, names, gaps=gaps)
        rounds = session.alternate(lambda name: bench.measure(VARIANTS[name]), proven, rounds=options.rounds, gaps=gaps)
    groups = list(_groups(rounds))
    return report.Report(
        title="From the POST to the destination",
        description=_description(options),
        facts=facts,
        summaries=[summary for _, summaries in groups for summary in summaries],
        rounds=[run for _, run in rounds],
        gaps=gaps,
        goals=[
            goal
            for variant, summaries in groups
            for goal in goal_checks.of_ratios(summaries, reference=variant.reference, times=GOALS[variant.signed])
        ],
    )


def _groups(
    rounds: typing.Sequence[tuple[str, figures.Round]],
) -> typing.Iterator[tuple[Variant, list[figures.Summary]]]:
    """Summaries that share a reference, each with one of its variants."""
    for reference in dict.fromkeys(VARIANTS[name].reference for name, _ in rounds):
        of_group = [(VARIANTS[name], run) for name, run in rounds if VARIANTS[name].reference == reference]
        yield of_group[0][0], figures.summarise([run for _, run in of_group], reference=reference)


def _needs_milter(name: str) -> bool:
    return VARIANTS[name].store is None and VARIANTS[name].signed


def _mail_servers(names: typing.Iterable[str]) -> list[str]:
    """The mail servers of these variants, each once."""
    return list(dict.fromkeys(VARIANTS[name].peer for name in names if VARIANTS[name].store is None))


def _proven(bench: Bench, names: typing.Sequence[str], *, gaps: list[str]) -> list[str]:
    """The variants whose mail is signed, or not signed, as their name says."""
    proven = []
    for name in names:
        problems: list[str] = []
        with failures.into(problems, what=f"{name} was not measured"):
            problems += [f"{name} was not measured: {problem}" for problem in bench.prove(VARIANTS[name])]
        gaps += problems
        proven += [] if problems else [name]
    return proven


def _description(options: argparse.Namespace) -> str:
    sizes = [
        len(message.as_mime(options.content, part_bytes=size))
        for size in (message.PART_BYTES, message.LARGE_PART_BYTES)
    ]
    return (
        f"Messages a second from the first send until all {options.messages:,} are at smtp-sink and recorded as "
        f"delivered: text+html ({options.content}; {sizes[0]:,} bytes of MIME), one recipient each; 100 KB: "
        f"{options.large_messages:,} messages of {sizes[1]:,} bytes. Postroad takes them over HTTP with "
        f"{options.connections} persistent connections (wrk) and delivers in the same process, or in a second one; the "
        f"mail servers take them over SMTP with {options.sessions} persistent sessions (smtp-source) and relay them. "
        "All deliver over at most 20 connections, except Haraka (200), Exim and chasquid (no limit); Haraka, Exim and "
        "chasquid open one for each message. Nobody waits for the processes with which Exim delivers, so their CPU "
        "time is counted under rest, and noise in its rounds means nothing. Signed: DKIM, RSA-2048, "
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
    absent = mail_servers.gaps(_mail_servers(names))
    gaps += absent.values()
    names = [name for name in names if VARIANTS[name].store or VARIANTS[name].peer not in absent]
    if any(_needs_milter(name) for name in names) and (reason := opendkim.missing()):
        gaps.append(f"there is nothing to compare signed mail with. {reason}")
        names = [name for name in names if not _needs_milter(name)]
    return gaps, names


def _options() -> argparse.Namespace:
    parser = session.parser("deliver", "Messages delivered.", peers=VARIANTS)
    parser.add_argument("--messages", type=int, default=20_000, help="messages of a round (20000)")
    parser.add_argument("--warm-up", type=int, default=1000, help="messages before it (1000)")
    parser.add_argument("--large-messages", type=int, default=4000, help="the same where they have 100 KB (4000)")
    parser.add_argument("--connections", type=int, default=256, help="persistent HTTP connections (256)")
    session.add_mail_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
