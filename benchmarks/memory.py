"""`make bench-memory`: how much memory 64 messages of 10 MiB take that are sent at the same time.

One `postroad serve` with all roles takes them over HTTP, signs them and delivers them to `smtp-sink`, which keeps them.
Memory is looked at twenty times a second, and the kernel's own mark of the highest water is read at the end. A refusal
with `Retry-After` is an answer that a service may give: the sender repeats the same request until it is accepted. A
message that is lost, doubled or damaged is a problem of the round: each must be at the sink once, with its whole file.
"""

import argparse
import base64
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import typing

from benchmarks import deliveries, failures, goal_checks, machine, measure, message, report, session
from benchmarks import figures as measured_figures
from benchmarks.injectors import injection, large
from benchmarks.peers import postgres, postroad, smtp_sink, stores

# 1 GB.
GOAL_MEGABYTES = 1000.0
SAMPLE_SECONDS = 0.05
# The first message arrives when all have been read, in the worst case.
STALL_SECONDS = 240.0
# As base64 in lines of 76, and with its headers, just below the 10 MiB that a message may have.
FILE_BYTES = 7_650_000
PEERS: dict[str, stores.Name] = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
# The lines of the message that say which one it is.
MARK = "This is message number {number:06}."
MARKED = re.compile(rb"This is message number (\d{6})\.")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LargeMail:
    """A service that is sent large files, as a contender of `deliveries`; `answers` counts what it said, by status."""

    inner: deliveries.OnPostroad
    file: str
    answers: collections.Counter[str]

    def sending(self, run: str, *, messages: int) -> contextlib.AbstractContextManager[injection.Sending]:
        """See Contender."""
        rest = f', "attachments": [{{"filename": "file.bin", "content": "{self.file}"}}]}}'.encode()
        letters = [self._request(run, number, rest=rest) for number in range(messages)]
        return large.sending(self.inner.service.port, letters, answers=self.answers)

    def _request(self, run: str, number: int, *, rest: bytes) -> large.LargeRequest:
        fields = {
            "from": message.SENDER,
            "to": f"customer-{number}@{message.RECIPIENT_DOMAIN}",
            "subject": message.SUBJECT,
            "text": MARK.format(number=number),
        }
        return large.LargeRequest(
            headers={
                "Authorization": f"Bearer {self.inner.service.api_key}",
                "Content-Type": "application/json",
                "Idempotency-Key": f"{run}-{number}",
            },
            beginning=json.dumps(fields).encode()[:-1],
            rest=rest,
        )

    def unfinished(self) -> int:
        """See Contender."""
        return self.inner.unfinished()

    def processes(self) -> typing.Mapping[str, typing.Sequence[int]]:
        """See Contender."""
        return self.inner.processes()

    def differences(self, *, delivered: int) -> list[str]:
        """See Contender."""
        return self.inner.differences(delivered=delivered)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A round, and what only this benchmark sees: the highest water of the service's processes, and the answers."""

    figures: measured_figures.Round
    peak_mebibytes: float
    answers: collections.Counter[str]


def measure_round(
    store_name: stores.Name, *, options: argparse.Namespace, folder: pathlib.Path, database: postgres.Postgres | None
) -> Observed:
    """One round, on a new store."""
    file = base64.b64encode(random.Random(FILE_BYTES).randbytes(FILE_BYTES)).decode()
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(smtp_sink.running(folder / "sink", keep=True))
        store = stack.enter_context(stores.empty(store_name, folder=folder / "service", server=database))
        relay = postroad.Relay(next_hop_port=sink.port, sign=True, processes=postroad.ALL_ROLES)
        service = stack.enter_context(postroad.running(folder / "service", database_url=store.url, work=relay))
        inner = deliveries.OnPostroad(
            service=service, store=store, folder=folder, connections=options.messages, content="ascii"
        )
        contender = LargeMail(inner=inner, file=file, answers=collections.Counter())
        processes = {**contender.processes(), "sink": (sink.pid,)}
        with measure.Window(processes, sample_seconds=SAMPLE_SECONDS) as window:
            done = deliveries.deliver(
                contender, sink, run="measured", messages=options.messages, stall_seconds=STALL_SECONDS
            )
        peak = measure.tree_peak_bytes(*service.pids) / 2**20
        problems = deliveries.arrival_differences(sink, delivered=options.messages)
        problems += contender.differences(delivered=options.messages)
        problems += content_differences(sink.letters(), file=file, messages=options.messages)
    one = measured_figures.of_round(
        f"Postroad, {store_name}",
        messages_per_second=options.messages / done.seconds,
        sent=done.sent,
        cost=window.cost(),
        cores=os.cpu_count() or 1,
        problems=problems,
    )
    return Observed(figures=one, peak_mebibytes=peak, answers=contender.answers)


def content_differences(letters: typing.Iterable[bytes], *, file: str, messages: int) -> list[str]:
    """Messages that are missing, that came twice, or whose file did not come whole."""
    content = file.encode()
    arrived = collections.Counter[int]()
    problems = []
    for letter in letters:
        if content not in letter.replace(b"\n", b""):
            problems.append(f"a message of {len(letter):,} bytes arrived without its whole file")
        arrived.update(int(number) for number in MARKED.findall(letter))
    times = ((number, arrived[number]) for number in range(messages))
    return problems + [f"message {number} arrived {count} times" for number, count in times if count != 1]


def main() -> int:
    """Run, print, write; 0 when all is well, 1 when a message was lost or damaged, 2 when something is missing."""
    options = _options()
    if reason := smtp_sink.missing():
        print(f"!!! INCOMPLETE: mail has nowhere to go. {reason}")
        return 2
    with session.work_folder(options.folder) as folder:
        result = _run(options, folder=folder, gaps=session.in_memory(folder))
    return session.finish(result, folder=options.results, name="memory")


def _run(options: argparse.Namespace, *, folder: pathlib.Path, gaps: list[str]) -> report.Report:
    facts = machine.facts() | {"file system": machine.file_system(folder)}
    rounds: list[Observed] = []
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(session.database(folder, facts, wanted="postgresql" in options.peers))
        for number in range(1, options.rounds + 1):
            for peer in options.peers:
                with failures.into(gaps, what=f"round {number} of {peer} did not end"):
                    one = measure_round(PEERS[peer], options=options, folder=folder, database=database)
                    rounds.append(one)
                    print(f"round {number}, {one.figures.peer}: {one.peak_mebibytes:,.0f} MiB", *one.figures.problems)
    return report.Report(
        title="Memory under large messages",
        description=_description(options),
        facts=facts,
        summaries=measured_figures.summarise([run.figures for run in rounds], reference=""),
        rounds=[run.figures for run in rounds],
        gaps=gaps,
        goals=list(_goals(rounds)),
        verdicts=list(_answers(rounds)),
    )


def _goals(rounds: typing.Sequence[Observed]) -> typing.Iterator[goal_checks.Goal]:
    """The most that the service itself held, by the kernel's highest water."""
    for peer in dict.fromkeys(run.figures.peer for run in rounds):
        peak = max(run.peak_mebibytes for run in rounds if run.figures.peer == peer)
        megabytes = peak * goal_checks.MEGABYTES_OF_MEBIBYTE
        yield goal_checks.Goal(
            peer=peer, value=megabytes, side="at most", limit=GOAL_MEGABYTES, unit="MB held by the service"
        )


def _answers(rounds: typing.Sequence[Observed]) -> typing.Iterator[str]:
    for peer in dict.fromkeys(run.figures.peer for run in rounds):
        of_peer = [run for run in rounds if run.figures.peer == peer]
        answers = sum((figure.answers for figure in of_peer), collections.Counter[str]())
        reported = ", ".join(f"{count} times {status}" for status, count in sorted(answers.items()))
        yield f"{peer}: answers in {len(of_peer)} rounds: {reported}."


def _description(options: argparse.Namespace) -> str:
    return (
        f"{options.messages} messages with a file of {FILE_BYTES / 1e6:.2f} MB each, which makes 10 MiB of MIME, sent "
        f"over HTTP at the same time on as many connections to one service with all roles, signed, and delivered to "
        f"smtp-sink over at most 20 connections. Memory is the peak of the service and its store, sampled every "
        f"{SAMPLE_SECONDS * 1000:.0f} ms, shared pages counted once. A sender that is told to try again later does "
        f"so. Every message was looked for at the sink, with its whole file. {options.rounds} rounds, each on an empty "
        "store; latency is the time until a message was accepted, its repetitions included."
    )


def _options() -> argparse.Namespace:
    parser = session.parser("memory", "Memory under large messages.", peers=PEERS)
    parser.add_argument("--messages", type=int, default=64, help="messages at the same time (64)")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
