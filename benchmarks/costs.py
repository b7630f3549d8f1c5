"""`make bench-costs`: what a message costs, phase by phase, so that the next person knows where to look.

Messages of 5 KB come over HTTP or over SMTP and stay, or come over HTTP and are delivered to `smtp-sink`, unsigned and
signed; all on SQLite. Each round runs twice: once as an operator would run it, once under `sampled.py`, which looks at
the stack of the main thread. That thread's CPU time is divided among the phases (`phases.py`) as its samples are. The
other threads commit, and the processes below it sign: their time is read from the kernel. So the sum of the phases is
what the sampled service has cost; the cost of the sampling itself is reported beside it.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import sys
import time
import typing

from benchmarks import cost_tables, deliveries, machine, measure, message, phases, session, stacks
from benchmarks.injectors import http, injection, smtp_sessions
from benchmarks.peers import postroad, process, smtp_sink, stores

# A round that is not done by then hangs.
MAX_SECONDS = 600.0

Send = typing.Callable[[str, int], injection.Injection]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a round works, and which program serves."""

    folder: pathlib.Path
    program: typing.Sequence[str]
    options: argparse.Namespace

    @property
    def store(self) -> stores.SqliteFile:
        """Its database."""
        return stores.SqliteFile(self.folder / "service" / "mail.db")

    def contender(self, service: postroad.Postroad) -> deliveries.OnPostroad:
        """The service with its injector for HTTP."""
        return deliveries.OnPostroad(
            service=service,
            store=self.store,
            folder=self.folder,
            connections=self.options.connections,
            content=self.options.content,
            waiting=0,
        )


@contextlib.contextmanager
def _accepting(place: Place) -> typing.Iterator[tuple[postroad.Postroad, Send]]:
    with postroad.running(
        place.folder / "service", database_url=place.store.url, program=place.program, frontends=1
    ) as service:
        contender = place.contender(service)

        def send(run: str, messages: int) -> injection.Injection:
            reserved = contender.unfinished() + messages
            with contender.sending(run, messages=messages) as sending:
                process.wait_until(
                    lambda: contender.unfinished() >= reserved, what="the last accept", seconds=MAX_SECONDS
                )
                time.sleep(http.EDGE_SECONDS)  # for the answers to it
            return sending.ended()

        yield service, send


@contextlib.contextmanager
def _submitting(place: Place) -> typing.Iterator[tuple[postroad.Postroad, Send]]:
    port = process.free_port()
    mime = place.folder / "message.eml"
    mime.write_bytes(message.as_mime(place.options.content))
    logins: list[smtp_sessions.Login] = []
    with postroad.running(
        place.folder / "service",
        database_url=place.store.url,
        work=postroad.SmtpSubmission(smtp_port=port),
        prepare=lambda configuration: logins.append(smtp_sessions.Login(*postroad.create_login(configuration))),
        program=place.program,
        frontends=1,
    ) as service:
        yield (
            service,
            lambda _, messages: smtp_sessions.send(
                port=port,
                messages=messages,
                sessions=place.options.sessions,
                mime=mime,
                login=logins[0],
                keep=True,
            ),
        )


@contextlib.contextmanager
def _delivering(place: Place, *, sign: bool) -> typing.Iterator[tuple[postroad.Postroad, Send]]:
    with (
        smtp_sink.running(place.folder / "sink") as sink,
        postroad.running(
            place.folder / "service",
            database_url=place.store.url,
            work=postroad.Relay(next_hop_port=sink.port, sign=sign),
            program=place.program,
            frontends=1,
        ) as service,
    ):
        contender = place.contender(service)
        yield service, lambda run, messages: deliveries.deliver(contender, sink, run=run, messages=messages).sent


PATHS: typing.Mapping[
    str, tuple[str, typing.Callable[[Place], contextlib.AbstractContextManager[tuple[postroad.Postroad, Send]]]]
] = {
    "http": ("accept over HTTP", _accepting),
    "smtp": ("accept over SMTP", _submitting),
    "deliver": ("end to end", lambda place: _delivering(place, sign=False)),
    "signed": ("end to end, signed", lambda place: _delivering(place, sign=True)),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """CPU seconds by who used them, and the stacks of the main thread if it was looked at."""

    messages: int
    main_thread: float
    other_threads: float
    signers: float
    seen: collections.Counter[stacks.Stack]
    problems: tuple[str, ...]


def measure_round(path: str, folder: pathlib.Path, *, options: argparse.Namespace, sampled: bool) -> Round:
    """One round on an empty store, after a warm-up."""
    samples = folder / "samples"
    samples.write_bytes(b"")
    program = (sys.executable, "-m", "benchmarks.sampled", str(samples)) if sampled else postroad.PROGRAM
    _, running = PATHS[path]
    with running(Place(folder=folder, program=program, options=options)) as (service, send):
        (pid,) = service.pids
        warm_up = send("warm-up", options.warm_up)
        os.sync()
        signers = tuple(measure.tree(pid)[1:])
        size, thread = samples.stat().st_size, measure.main_thread_cpu_seconds(pid)
        with measure.Window({"service": (pid,), "signers": signers}) as window:
            sent = send("measured", options.messages)
        main_thread = measure.main_thread_cpu_seconds(pid) - thread
        seen = stacks.read(samples, begin=size, end=samples.stat().st_size)
        stored, findings = service.verify()
    spent = window.cost().cpu_seconds
    return Round(
        messages=sent.sent,
        main_thread=main_thread,
        other_threads=max(spent["service"] - spent["signers"] - main_thread, 0.0),
        signers=spent["signers"],
        seen=seen,
        problems=(*_differences(warm_up, sent, stored=stored), *findings),
    )


def _differences(*sent: injection.Injection, stored: int) -> list[str]:
    accepted = sum(part.sent - part.failed for part in sent)
    if accepted == stored and not any(part.failed for part in sent):
        return []
    return [f"{sum(part.sent for part in sent)} messages were sent, {accepted} accepted, {stored} stored"]


def summarise(path: str, *, plain: typing.Sequence[Round], sampled: typing.Sequence[Round]) -> cost_tables.Cost:
    """All rounds of one path together."""
    messages = sum(run.messages for run in sampled)
    seen = sum((run.seen for run in sampled), collections.Counter[stacks.Stack]())
    sample = sum(run.main_thread for run in sampled) * 1e6 / messages / max(seen.total(), 1)
    by_phase: dict[str, float] = {
        phases.COMMIT: sum(run.other_threads for run in sampled) * 1e6 / messages,
        phases.SIGNERS: sum(run.signers for run in sampled) * 1e6 / messages,
    }
    for stack, times in seen.items():
        phase = phases.of_stack(stack)
        by_phase[phase] = by_phase.get(phase, 0.0) + times * sample
    return cost_tables.Cost(
        path=PATHS[path][0],
        messages=messages,
        samples=seen.total(),
        microseconds=by_phase,
        unsampled_microseconds=sum(_cpu_seconds(run) for run in plain) * 1e6 / sum(run.messages for run in plain),
        functions=phases.functions(seen, microseconds=sample),
        problems=tuple(problem for run in (*plain, *sampled) for problem in run.problems),
    )


def _cpu_seconds(one: Round) -> float:
    return one.main_thread + one.other_threads + one.signers


def main() -> int:
    """Run, print, write; 0 when all is well, 1 when a message was refused or lost, 2 when a path is missing."""
    options = _options()
    gaps = _gaps(options.paths)
    paths = [] if gaps else options.paths
    rounds: dict[tuple[str, bool], list[Round]] = collections.defaultdict(list)
    with session.work_folder(options.folder) as folder:
        facts = machine.facts() | {"file system": machine.file_system(folder)}
        gaps += session.in_memory(folder)
        for number in range(1, options.rounds + 1):
            for path in paths:
                for sampled in (False, True):
                    one = measure_round(path, folder, options=options, sampled=sampled)
                    rounds[path, sampled].append(one)
                    cost = f"{_cpu_seconds(one) * 1e6 / one.messages:,.0f} µs a message"
                    how = "sampled" if sampled else "as it is"
                    print(f"round {number}, {PATHS[path][0]}, {how}: {cost}", *one.problems, flush=True)
    costs = [summarise(path, plain=rounds[path, False], sampled=rounds[path, True]) for path in paths]
    page = cost_tables.page(costs, description=_description(options), facts=facts, gaps=gaps)
    print(page)
    if options.results is not None and costs:
        options.results.mkdir(parents=True, exist_ok=True)
        reported = {"facts": facts, "gaps": gaps, "costs": [dataclasses.asdict(cost) for cost in costs]}
        (options.results / "costs.md").write_text(page)
        (options.results / "costs.json").write_text(json.dumps(reported, indent=2, ensure_ascii=False) + "\n")
    if any(cost.problems for cost in costs):
        return 1
    return 2 if gaps else 0


def _gaps(paths: typing.Sequence[str]) -> list[str]:
    gaps = []
    if paths != ["smtp"] and shutil.which("wrk") is None:
        gaps.append("wrk is not installed: apt-get install wrk")
    if {"deliver", "signed"} & set(paths) and (reason := smtp_sink.missing()):
        gaps.append(reason)
    return gaps


def _description(options: argparse.Namespace) -> str:
    return (
        f"Microseconds of CPU a message, of the service alone, on SQLite: text+html of 5 KB ({options.content}), one "
        f"recipient each; over HTTP with {options.connections} persistent connections, over SMTP with "
        f"{options.sessions} persistent sessions that log in. {options.rounds} rounds of {options.messages:,} "
        f"messages, each on an empty store after {options.warm_up:,} to warm up. The main thread's time is divided "
        "as the samples of its stack are."
    )


def _options() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m benchmarks.costs", description="What a message costs, by phase.")
    words.add_argument("--paths", nargs="+", choices=list(PATHS), default=list(PATHS), help="measure only these")
    words.add_argument("--rounds", type=int, default=3, help="rounds of each path, sampled and not (3)")
    words.add_argument("--messages", type=int, default=10_000, help="messages of a round (10000)")
    words.add_argument("--warm-up", type=int, default=1000, help="messages before it (1000)")
    words.add_argument("--connections", type=int, default=64, help="persistent HTTP connections (64)")
    words.add_argument("--folder", type=pathlib.Path, help="a folder on the disk to measure (the temporary one)")
    words.add_argument("--results", type=pathlib.Path, default=session.RESULTS, help="where costs.md and costs.json go")
    session.add_mail_options(words)
    return words.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
