"""`make bench-read`: how many messages a second can be read back, alone and while mail comes in.

An account has 10,000 messages of a month. 64 persistent connections ask for them by `GET /emails/{id}`, in random
order, as fast as they are answered; then again while others send at half the rate at which the service accepts, which
is found in between. Every answer must be 200, every send 202 and stored.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import random
import shutil
import sys
import time
import typing

from benchmarks import failures, figures, large_account, machine, measure, message, report, session
from benchmarks.injectors import http, injection
from benchmarks.peers import postgres, postroad, stores

PEERS: dict[str, stores.Name] = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
# Sends begin a little before the readers and end a little after them.
MARGIN_SECONDS = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReadRound:
    """A service with messages to read, and what the injectors ask it."""

    store: stores.Store
    service: postroad.Postroad
    reads: http.Target
    folder: pathlib.Path

    def sends(self, run: str) -> http.Target:
        """Messages to send. No message of one run is one of another's."""
        path = self.folder / f"{run}.request"
        headers = {
            "Authorization": f"Bearer {self.service.api_key}",
            "Content-Type": "application/json",
            "Idempotency-Key": f"{run}-{message.SERIAL}",
        }
        http.write_request(path, target="/emails", headers=headers, body=message.as_json("ascii"))
        return http.Target(port=self.service.port, request=path, connections=self.reads.connections)

    def processes(self) -> typing.Mapping[str, typing.Sequence[int]]:
        """The processes whose costs count."""
        return {"service": self.service.pids} | ({"store": (self.store.pid,)} if self.store.pid is not None else {})


class Bench:
    """One run: its options, its folder, and the database server that lives through all its rounds."""

    def __init__(
        self, options: argparse.Namespace, *, folder: pathlib.Path, database: postgres.Postgres | None
    ) -> None:
        self._options = options
        self._folder = folder
        self._database = database

    def measure(self, store_name: stores.Name) -> list[figures.Round]:
        """One round of both rates, on one store."""
        with self._reading(store_name) as reading:
            http.send(reading.reads, seconds=self._options.warm_up, expect=200)
            alone = self._alone(f"{store_name}, reading alone", reading)
            accepted = http.send(reading.sends("alone"), seconds=self._options.warm_up, expect=202)
            rate = accepted.accepts_per_second / 2
            return [alone, self._beside_sends(f"{store_name}, reading beside sends", reading, rate=rate)]

    def _alone(self, name: str, reading: ReadRound) -> figures.Round:
        seconds = self._options.seconds
        with measure.Window(reading.processes(), seconds=seconds + http.EDGE_SECONDS) as window:
            read = http.send(reading.reads, seconds=seconds)
        return _figures(name, read=read, window=window, problems=_refusals(read, what="reads"))

    def _beside_sends(self, name: str, reading: ReadRound, *, rate: float) -> figures.Round:
        seconds = self._options.seconds
        stored = reading.service.verify()[0]
        with concurrent.futures.ThreadPoolExecutor(1) as beside:
            target = reading.sends("beside")
            sending = beside.submit(http.send, target, seconds=seconds + 2 * MARGIN_SECONDS, rate=rate)
            time.sleep(MARGIN_SECONDS)
            with measure.Window(reading.processes(), seconds=seconds + http.EDGE_SECONDS) as window:
                read = http.send(reading.reads, seconds=seconds)
            sent = sending.result()
        problems = _refusals(read, what="reads") + _refusals(sent, what="sends")
        added = reading.service.verify()[0] - stored
        if added != sent.sent:
            problems.append(f"{sent.sent} messages were sent, but {added} are stored")
        print(
            f"{name}: {sent.sent / (seconds + 2 * MARGIN_SECONDS):,.0f} sends/s came in, {rate:,.0f}/s were asked for"
        )
        return _figures(name, read=read, window=window, problems=problems, sent=sent)

    @contextlib.contextmanager
    def _reading(self, store_name: stores.Name) -> typing.Iterator[ReadRound]:
        folder = self._folder / "service"
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(stores.empty(store_name, folder=folder, server=self._database))

            def prepare(configuration: pathlib.Path) -> None:
                large_account.fill(configuration, store, messages=self._options.messages, queued=0)
                os.sync()

            service = stack.enter_context(postroad.running(folder, database_url=store.url, prepare=prepare))
            yield ReadRound(store=store, service=service, reads=self._reads(service, store), folder=self._folder)

    def _reads(self, service: postroad.Postroad, store: stores.Store) -> http.Target:
        ids = sorted(store.texts("SELECT id FROM messages"))
        random.Random(len(ids)).shuffle(ids)
        values, path = self._folder / "ids", self._folder / "read.request"
        values.write_text("".join(f"{one}\n" for one in ids))
        headers = {"Authorization": f"Bearer {postroad.create_reader(service.configuration)}"}
        http.write_request(path, target=f"/emails/{message.VALUES[0]}", headers=headers)
        connections = self._options.connections
        return http.Target(port=service.port, request=path, connections=connections, values=values)


def _refusals(done: injection.Injection, *, what: str) -> list[str]:
    return [f"{done.failed} of {done.sent} {what} were refused or not answered"] if done.failed else []


def _figures(
    name: str,
    *,
    read: injection.Injection,
    window: measure.Window,
    problems: typing.Sequence[str],
    sent: injection.Injection | None = None,
) -> figures.Round:
    injectors = (read.cpu_seconds or 0) + ((sent.cpu_seconds or 0) if sent else 0)
    return figures.of_round(
        name,
        messages_per_second=read.accepts_per_second,
        sent=dataclasses.replace(read, cpu_seconds=injectors),
        cost=window.cost(),
        cores=os.cpu_count() or 1,
        problems=problems,
    )


def main() -> int:
    """Run, print, write; 0 when all is well, 1 when a request was refused or a message lost, 2 when wrk is missing."""
    options = _options()
    if shutil.which("wrk") is None:
        print("!!! INCOMPLETE: wrk is not installed, so nothing was measured: apt-get install wrk", file=sys.stderr)
        return 2
    with session.work_folder(options.folder) as folder:
        result = _run(options, folder=folder, gaps=session.in_memory(folder))
    return session.finish(result, folder=options.results, name="read")


def _run(options: argparse.Namespace, *, folder: pathlib.Path, gaps: list[str]) -> report.Report:
    facts = machine.facts() | {"file system": machine.file_system(folder)}
    rounds: list[figures.Round] = []
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(session.database(folder, facts, wanted="postgresql" in options.peers))
        bench = Bench(options, folder=folder, database=database)
        for number in range(1, options.rounds + 1):
            for peer in options.peers:
                with failures.into(gaps, what=f"round {number} of {peer} did not end"):
                    for one in bench.measure(PEERS[peer]):
                        rounds.append(one)
                        rate = f"{one.messages_per_second:,.0f}/s"
                        print(f"round {number}, {one.peer}: {rate}", *one.problems, flush=True)
    summaries = figures.summarise(rounds, reference="")
    return report.Report(
        title="Messages read back",
        description=_description(options),
        facts=facts,
        summaries=summaries,
        rounds=rounds,
        verdicts=list(_verdicts(summaries)),
        gaps=gaps,
        unit="request",
    )


def _verdicts(summaries: typing.Sequence[figures.Summary]) -> typing.Iterator[str]:
    by_name, doubt = {summary.peer: summary for summary in summaries}, session.doubt(summaries)
    for store in PEERS.values():
        alone, beside = by_name.get(f"{store}, reading alone"), by_name.get(f"{store}, reading beside sends")
        if alone and beside:
            left = 100 * beside.messages_per_second / alone.messages_per_second
            yield f"{beside.peer}: {left:.0f} % of the rate alone{doubt}."


def _description(options: argparse.Namespace) -> str:
    return (
        f"`GET /emails/{{id}}` a second, over {options.connections} persistent connections (wrk, one thread), in "
        f"random order from {options.messages:,} messages of a month with their recipients. One service with the role "
        f"api. Beside sends: messages of 5 KB come in over {options.connections} more connections at half the rate at "
        "which this service accepts them when nothing else is asked; the CPU time is then that of reads and sends "
        f"together, for each read. Medians of {options.rounds} alternating rounds of {options.seconds:g} s, after a "
        "warm-up. Every send was looked for in the store. Memory is the peak of the service and its store, shared "
        "pages counted once."
    )


def _options() -> argparse.Namespace:
    parser = session.parser("read", "GET /emails/{id} under load.", peers=PEERS)
    parser.add_argument("--messages", type=int, default=10_000, help="messages of the account (10000)")
    parser.add_argument("--seconds", type=float, default=10, help="reading time of a round (10)")
    parser.add_argument("--warm-up", type=float, default=3, help="time before it, and to find the rate of accepts (3)")
    parser.add_argument("--connections", type=int, default=64, help="persistent HTTP connections (64)")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
