"""`make bench-batch`: how many messages a second are durably accepted in batches of 100, beside single sends.

Both take the same 5 KB text+html messages over persistent HTTP connections, in the same run and on the same store: over
one connection, as a program that sends in a loop; over eight; and single sends over 256, which is as fast as they
become, while eight batches have as many messages under way. Rounds alternate, each on an empty store, and medians are
reported. After each round the stored messages are counted: one for each that was accepted, or the round has a problem.
"""

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import sys
import typing

from benchmarks import figures, goal_checks, machine, measure, message, report, session
from benchmarks.injectors import http, injection
from benchmarks.peers import postgres, postroad, stores

GOAL = 3.0
ITEMS = 100
SINGLE_CONNECTIONS = (1, 8, 256)
BATCH_CONNECTIONS = (1, 8)
# Batches over how many connections are compared with single sends over how many.
PAIRS = ((1, 1), (8, 8), (8, 256))
STORES: dict[str, stores.Name] = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of request, how many messages it has, and over how many connections it is sent."""

    name: str
    path: str
    items: int
    connections: int
    body: bytes


class Bench:
    """One run: its options, its folder, and the database server that lives through all its rounds."""

    def __init__(
        self, options: argparse.Namespace, *, folder: pathlib.Path, database: postgres.Postgres | None
    ) -> None:
        self._options = options
        self._folder = folder
        self._database = database
        single = message.as_json(options.content)
        kinds = [
            *(
                Kind(name=_single(count), path="/emails", items=1, connections=count, body=single)
                for count in SINGLE_CONNECTIONS
            ),
            *(
                Kind(name=_batches(count), path="/emails/batch", items=ITEMS, connections=count, body=_batch(single))
                for count in BATCH_CONNECTIONS
            ),
        ]
        self.kinds = {kind.name: kind for kind in kinds}

    def measure(self, peer: str) -> figures.Round:
        """One round of one kind, on an empty store and a quiet disk."""
        store_name, _, kind_name = peer.partition(", ")
        kind = self.kinds[kind_name]
        os.sync()
        folder = self._folder / "service"
        with (
            stores.empty(typing.cast("stores.Name", store_name), folder=folder, server=self._database) as store,
            postroad.running(folder, database_url=store.url) as service,
        ):
            warm_up = http.send(self._requests(service, kind, run="warm-up"), seconds=self._options.warm_up, expect=202)
            processes = {"service": service.pids} | ({"store": (store.pid,)} if store.pid is not None else {})
            target = self._requests(service, kind, run="measured")
            with measure.Window(processes, seconds=self._options.seconds + http.EDGE_SECONDS) as window:
                sent = http.send(target, seconds=self._options.seconds)
            stored, findings = service.verify()
        accepted = kind.items * (warm_up.sent - warm_up.failed + sent.sent - sent.failed)
        problems = list(findings)
        if accepted != stored:
            problems.append(f"{accepted} messages were accepted, but {stored} are stored")
        if warm_up.failed or sent.failed:
            problems.append(f"{warm_up.failed} answers of the warm-up and {sent.failed} of the round were not 202")
        return figures.of_round(
            peer,
            messages_per_second=kind.items * sent.accepts_per_second,
            sent=_messages(sent, kind.items),
            cost=window.cost(),
            cores=os.cpu_count() or 1,
            problems=problems,
        )

    def _requests(self, service: postroad.Postroad, kind: Kind, *, run: str) -> http.Target:
        path = self._folder / f"{run}.request"
        headers = {
            "Authorization": f"Bearer {service.api_key}",
            "Content-Type": "application/json",
            "Idempotency-Key": f"{run}-{message.SERIAL}",
        }
        http.write_request(path, target=kind.path, headers=headers, body=kind.body)
        return http.Target(port=service.port, request=path, connections=kind.connections)


def _single(connections: int) -> str:
    return f"single sends over {connections}"


def _batches(connections: int) -> str:
    return f"batches of {ITEMS} over {connections}"


def _batch(single: bytes) -> bytes:
    """The same message for a hundred different recipients."""
    fields = json.loads(single)
    emails = [{**fields, "to": f"item-{number}-{fields['to']}"} for number in range(ITEMS)]
    return json.dumps({"emails": emails}, ensure_ascii=False).encode()


def _messages(sent: injection.Injection, items: int) -> injection.Injection:
    """The same, counted in messages."""
    return dataclasses.replace(
        sent,
        sent=sent.sent * items,
        failed=sent.failed * items,
        accepts_per_second=sent.accepts_per_second * items,
    )


def main() -> int:
    """Run, print, write; 0 when all is well, 1 when a message was refused or lost, 2 when wrk is missing."""
    options = _options()
    if shutil.which("wrk") is None:
        print("!!! INCOMPLETE: wrk is not installed, so nothing was measured: apt-get install wrk", file=sys.stderr)
        return 2
    with session.work_folder(options.folder) as folder:
        result = _run(options, folder=folder, gaps=session.in_memory(folder))
    return session.finish(result, folder=options.results, name="batch")


def _run(options: argparse.Namespace, *, folder: pathlib.Path, gaps: list[str]) -> report.Report:
    facts = machine.facts() | {"file system": machine.file_system(folder)}
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(session.database(folder, facts, wanted="postgresql" in options.peers))
        bench = Bench(options, folder=folder, database=database)
        names = [f"{STORES[peer]}, {kind}" for peer in options.peers for kind in bench.kinds]
        rounds = [run for _, run in session.alternate(bench.measure, names, rounds=options.rounds, gaps=gaps)]
    summaries = figures.summarise(rounds, reference="")
    return report.Report(
        title="Batches beside single sends",
        description=_description(options),
        facts=facts,
        summaries=summaries,
        rounds=rounds,
        gaps=gaps,
        goals=list(_goals(summaries)),
    )


def _goals(summaries: typing.Sequence[figures.Summary]) -> typing.Iterator[goal_checks.Goal]:
    by_name = {summary.peer: summary for summary in summaries}
    for store, (batch_count, single_count) in itertools.product(STORES.values(), PAIRS):
        single = by_name.get(f"{store}, {_single(single_count)}")
        batch = by_name.get(f"{store}, {_batches(batch_count)}")
        if single and batch:
            yield goal_checks.Goal(
                peer=batch.peer,
                value=batch.messages_per_second / single.messages_per_second,
                side="at least",
                limit=GOAL,
                unit=f"times {_single(single_count)}",
                mark=GOAL * single.messages_per_second,
                in_doubt=goal_checks.is_noisy(summaries),
            )


def _description(options: argparse.Namespace) -> str:
    return (
        f"Messages durably accepted, a second: text+html ({options.content}, 5 KB), as single `POST /emails` and as "
        f"`POST /emails/batch` of {ITEMS} messages, over the number of persistent connections that is named, with a "
        "new Idempotency-Key each (wrk, one thread). One service with the role api. Medians of "
        f"{options.rounds} alternating rounds of {options.seconds:g} s, after a warm-up, each on an "
        "empty store. Every answer was checked against the store. Response times are those of requests. Memory is the "
        "peak of the service and its store, shared pages counted once."
    )


def _options() -> argparse.Namespace:
    parser = session.parser("batch", "Batches beside single sends.", peers=STORES)
    parser.add_argument("--seconds", type=float, default=10, help="sending time of a round (10)")
    parser.add_argument("--warm-up", type=float, default=3, help="sending time before it (3)")
    parser.add_argument("--content", choices=("ascii", "utf8"), default="ascii", help="what the messages say (ascii)")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
