"""`make bench-destinations`: what a destination that is dead costs those that are not.

The store has a backlog of mail for forty domains; each domain has an MX host of its own, found by DNS. One
`postroad serve --role delivery`, with its default provider limits, delivers it. The clock runs from the end of the
warm-up until every message is at its host *and* recorded as delivered. Then the same with a forty-first domain that has
as many messages as ten of the others, and whose host refuses connections, or accepts them and never replies; only mail
of the forty is counted. Rounds alternate between the variants, each on a new store. After each round the counts are
compared: every host got each of its messages once, and the store knows it.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import sys
import time
import typing

from benchmarks import backlog, figures, goal_checks, machine, measure, message, report, session
from benchmarks.injectors import injection
from benchmarks.peers import mail_hosts, postgres, postroad, smtp_sink, stores

# What must be left of the rate of the healthy ones.
GOAL_PERCENT = 95.0
# Each provider queue opens 10 connections. Fifty of them would use all 500 that a service may have: one domain would
# lack the two connections of the hanging host, and its mail would finish later than that of the rest.
DOMAINS = 40
POLL_SECONDS = 0.05
# Nothing arrives for this long: something waits for its next attempt.
STALL_SECONDS = 30.0
DEATHS: dict[mail_hosts.Death | None, str] = {
    None: "",
    "refuses": " beside one that refuses connections",
    "hangs": " beside one that never answers",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One line of the table: where the mail lies, and what the dead destination does, if there is one."""

    store: stores.Name
    death: mail_hosts.Death | None = None

    def name(self, domains: int) -> str:
        """What the table calls it."""
        return f"{self.store}, {domains} destinations{DEATHS[self.death]}"


VARIANTS = {
    "sqlite": Variant(store="SQLite"),
    "sqlite-refusing": Variant(store="SQLite", death="refuses"),
    "sqlite-hanging": Variant(store="SQLite", death="hangs"),
    "postgresql": Variant(store="PostgreSQL"),
    "postgresql-refusing": Variant(store="PostgreSQL", death="refuses"),
    "postgresql-hanging": Variant(store="PostgreSQL", death="hangs"),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRound:
    """A round that is going on: every host is to get `each` messages."""

    hosts: mail_hosts.Hosts
    store: stores.Store
    service: postroad.Postroad
    each: int

    @property
    def total(self) -> int:
        """How much the healthy ones get together."""
        return self.each * len(self.hosts.sinks)

    def arrived(self) -> int:
        """How much they have got."""
        return sum(self.hosts.counts())

    def unfinished(self) -> int:
        """How much of theirs is not recorded; asked when all is there, because it costs the store."""
        return self.store.ask(f"SELECT COUNT(*) FROM queue WHERE queue_key NOT LIKE '{mail_hosts.DEAD_DOMAIN} %'")  # noqa: S608

    def wait(self, *, arrived: int) -> None:
        """Wait until so much has arrived, and when it is all, until it is recorded."""
        seen, give_up_at = -1, time.monotonic() + STALL_SECONDS
        while (count := self.arrived()) < arrived or (arrived == self.total and self.unfinished()):
            if count > seen:
                seen, give_up_at = count, time.monotonic() + STALL_SECONDS
            if time.monotonic() > give_up_at:
                raise TimeoutError(
                    f"{count} of {arrived} messages have arrived, {self.unfinished()} are not finished, and nothing "
                    f"has moved for {STALL_SECONDS:.0f} s"
                )
            time.sleep(POLL_SECONDS)

    def differences(self) -> list[str]:
        """Where the counts disagree."""
        found = [
            f"destination {number} got {count} messages, but {self.each} are its own"
            for number, count in enumerate(self.hosts.counts())
            if count != self.each
        ]
        delivered = self.store.ask("SELECT COUNT(*) FROM recipients WHERE status = 'delivered'")
        if delivered != self.total:
            found.append(f"{delivered} messages are recorded as delivered, but {self.total} should")
        return [*found, *self.service.verify()[1]]


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
        with self._delivering(variant) as delivering:
            delivering.wait(arrived=self._options.warm_up)
            processes = {"service": delivering.service.pids, "sink": delivering.hosts.pids}
            processes |= {"store": (delivering.store.pid,)} if delivering.store.pid is not None else {}
            with measure.Window(processes) as window:
                before, began = delivering.arrived(), time.monotonic()
                delivering.wait(arrived=delivering.total)
                seconds = time.monotonic() - began
            problems = delivering.differences()
        count = delivering.total - before
        if count <= 0:
            raise RuntimeError("everything had arrived before the clock ran; more --messages are needed")
        done = injection.Injection(
            sent=count, failed=0, accepts_per_second=count / seconds, seconds=seconds, cpu_seconds=None, latency=None
        )
        return figures.of_round(
            variant.name(self._options.domains),
            messages_per_second=count / seconds,
            sent=done,
            cost=window.cost(),
            cores=os.cpu_count() or 1,
            problems=problems,
        )

    @contextlib.contextmanager
    def _delivering(self, variant: Variant) -> typing.Iterator[DeliveryRound]:
        folder, domains, each = self._folder / "service", self._options.domains, self._options.messages
        turns = domains + (mail_hosts.DEAD_TURNS if variant.death else 0)
        mime = message.as_mime("ascii").replace(b"\n", b"\r\n").decode()
        domain = mail_hosts.domain_expression(domains, with_dead=variant.death is not None)
        with contextlib.ExitStack() as stack:
            hosts = stack.enter_context(
                mail_hosts.running(self._folder / "hosts", domains=domains, death=variant.death)
            )
            store = stack.enter_context(stores.empty(variant.store, folder=folder, server=self._database))

            def prepare(_: pathlib.Path) -> None:
                backlog.queue_ready(store, messages=each * turns, domain=domain, mime=mime)
                os.sync()

            exchange = postroad.Exchange(mx_port=hosts.port, name_server=hosts.name_server)
            service = stack.enter_context(
                postroad.running(folder, database_url=store.url, work=exchange, prepare=prepare)
            )
            yield DeliveryRound(hosts=hosts, store=store, service=service, each=each)


def main() -> int:
    """Run, print, write; 0 when all is well, 1 when a message was lost or doubled, 2 when something is missing."""
    options = _options()
    if reason := smtp_sink.missing():
        print(f"!!! INCOMPLETE: mail has nowhere to go. {reason}", file=sys.stderr)
        return 2
    with session.work_folder(options.folder) as folder:
        result = _run(options, folder=folder, gaps=session.in_memory(folder))
    return session.finish(result, folder=options.results, name="destinations")


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
        title="Many destinations, one of them dead",
        description=_description(options),
        facts=facts,
        summaries=summaries,
        rounds=rounds,
        gaps=gaps,
        goals=[
            goal_checks.of_share(
                beside,
                alone=alone,
                percent=GOAL_PERCENT,
                of_what="the rate without it",
                in_doubt=goal_checks.is_noisy(summaries),
            )
            for beside, alone in _pairs(summaries, domains=options.domains)
        ],
        verdicts=[_cost(*pair) for pair in _pairs(summaries, domains=options.domains)],
    )


def _pairs(
    summaries: typing.Sequence[figures.Summary], *, domains: int
) -> typing.Iterator[tuple[figures.Summary, figures.Summary]]:
    """Each variant with a dead one, and the same without it."""
    by_name = {summary.peer: summary for summary in summaries}
    for variant in VARIANTS.values():
        alone, beside = by_name.get(Variant(store=variant.store).name(domains)), by_name.get(variant.name(domains))
        if variant.death is not None and alone is not None and beside is not None:
            yield beside, alone


def _cost(beside: figures.Summary, alone: figures.Summary) -> str:
    more = 100 * beside.cpu_microseconds["service"] / alone.cpu_microseconds["service"] - 100
    return f"{beside.peer}: the service's CPU time for each of their messages changed by {more:+.1f} %."


def _description(options: argparse.Namespace) -> str:
    return (
        f"Messages a second from a backlog in the store, {options.messages:,} of 5 KB for each of {options.domains} "
        "domains, in turns, to their hosts: an MX host name and an address on loopback for each, looked up in DNS, and "
        "an smtp-sink behind each. One process with the role delivery and no limit on the rate, unsigned. "
        f"Beside a dead one: another domain has as many messages as {mail_hosts.DEAD_TURNS} of them, interleaved, "
        "and its host refuses connections, or accepts them and never replies; rate and costs are those of the other "
        "messages. "
        f"Medians of {options.rounds} alternating rounds, each on a new store; the first {options.warm_up:,} messages "
        "of a round warm up. Memory is the peak of the service and its store, shared pages counted once."
    )


def _options() -> argparse.Namespace:
    parser = session.parser("destinations", "Many destinations, one of them dead.", peers=VARIANTS)
    parser.add_argument("--domains", type=int, default=DOMAINS, help=f"healthy destinations ({DOMAINS})")
    parser.add_argument("--messages", type=int, default=1000, help="messages for each of them (1000)")
    parser.add_argument("--warm-up", type=int, default=5000, help="messages before the clock runs (5000)")
    options = parser.parse_args()
    if not 0 < options.domains < 255 or options.warm_up >= options.domains * options.messages:
        parser.error("--domains must be 1 to 254, and --warm-up less than all messages")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
