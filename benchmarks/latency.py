"""`make bench-latency`: how long a caller waits, and how long a message takes to its destination, at ordinary load.

Messages of 5 KB come one by one at random moments, 10 to 1,000 a second on average, whatever became of those before.
Two clocks run from the moment when a message is due: until the server has taken responsibility for it (202, or 250 of
Postfix), and until the final dot at the destination, which is a server in this process. Postfix gets the same messages
over open SMTP sessions. What the disk asks for one commit (fdatasync) is measured before each row and stands beside it,
and so does the CPU time of the server and of its store: at a low rate nearly every message is committed alone.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import json
import pathlib
import typing

from benchmarks import failures, goal_checks, machine, measure, message, report, session
from benchmarks.injectors import paced
from benchmarks.peers import next_hop, postfix, postgres, postroad, stores, timed_sink

PEERS = ("sqlite", "postgresql", "two-hosts", "postfix")
NAMES: typing.Mapping[str, stores.Name] = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "two-hosts": "PostgreSQL"}
# One process accepts and another one delivers, as on two hosts.
TWO_HOSTS: postroad.Processes = (("api",), ("delivery", "maintenance"))
ON_POSTGRES = {peer for peer, name in NAMES.items() if name == "PostgreSQL"}
# What is not there by then is lost.
LIMIT_SECONDS = 60.0
WARM_UP_MESSAGES = 50
CONNECTIONS = 32
SEED = 1
# The goals, on SQLite at this rate: until the 202 at most this beyond one fdatasync, p99 at most so many times that.
GOAL_RATE = 100
GOAL_MILLISECONDS = 1.5
GOAL_P99_TIMES = 3.0
GOAL_DESTINATION_MILLISECONDS = 5.0

Percentiles = tuple[float, float, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A server at a rate: p50, p95 and p99 of the milliseconds until the accept and until the destination.

    `cpu_microseconds` are for a message, by part: "service" and "store".
    """

    peer: str
    rate: int
    sync: float
    accepted: Percentiles
    delivered: Percentiles
    cpu_microseconds: dict[str, float]
    messages: int
    missing: int
    in_doubt: bool

    def goals(self) -> list[goal_checks.Goal]:
        """Those of SQLite at an ordinary rate."""
        if (self.peer, self.rate) != ("Postroad, SQLite", GOAL_RATE):
            return []
        limit = GOAL_MILLISECONDS + self.sync
        checked = (
            (self.accepted[0], limit, "ms until the 202, p50"),
            (self.accepted[2], GOAL_P99_TIMES * limit, "ms until the 202, p99"),
            (self.delivered[0], GOAL_DESTINATION_MILLISECONDS, "ms to the destination, p50"),
        )
        return [
            goal_checks.Goal(
                peer=f"{self.peer}, {self.rate} a second",
                value=value,
                side="at most",
                limit=round(most, 2),
                unit=unit,
                in_doubt=self.in_doubt,
            )
            for value, most, unit in checked
        ]


def percentiles(values: typing.Sequence[float]) -> Percentiles:
    """p50, p95 and p99."""
    return report.percentile(values, 50), report.percentile(values, 95), report.percentile(values, 99)


class Server(typing.NamedTuple):
    """A server that is ready: its name in the table, a sender to it, and its processes by part."""

    name: str
    sender: paced.Sender
    processes: typing.Mapping[str, typing.Sequence[int]]


async def measure_one(
    peer: str, folder: pathlib.Path, *, rate: int, seconds: float, server: postgres.Postgres | None
) -> Figure:
    """One server at one rate."""
    messages = max(WARM_UP_MESSAGES, int(rate * seconds))
    in_doubt, sync = machine.is_busy(), machine.sync_milliseconds(folder)
    sink = timed_sink.TimedSink(prefix="customer-0", expected=messages)
    async with await asyncio.start_server(sink.serve, "127.0.0.1", 0) as listening:
        port: int = listening.sockets[0].getsockname()[1]
        with contextlib.ExitStack() as stack:
            started = await asyncio.to_thread(_start, peer, folder, stack, port=port, server=server)
            try:
                taken, cost = await _run(started, sink, messages=messages, rate=rate)
            finally:
                started.sender.close()
                await asyncio.to_thread(stack.close)
    arrived = {serial: sink.arrived.get(f"customer-{serial}@{message.RECIPIENT_DOMAIN}") for serial in taken}
    return Figure(
        peer=started.name,
        rate=rate,
        sync=sync,
        accepted=percentiles([1000 * (at - due) for due, at in taken.values()]),
        delivered=percentiles([1000 * (at - taken[one][0]) for one, at in arrived.items() if at is not None]),
        cpu_microseconds={part: 1e6 * seconds / messages for part, seconds in cost.cpu_seconds.items()},
        messages=messages,
        missing=messages - sum(at is not None for at in arrived.values()),
        in_doubt=in_doubt,
    )


def _start(
    peer: str, folder: pathlib.Path, stack: contextlib.ExitStack, *, port: int, server: postgres.Postgres | None
) -> Server:
    if peer == "postfix":
        relay = next_hop.Relay(next_hop_port=port)
        running = stack.enter_context(postfix.running(folder / "postfix", relay=relay))
        return Server("Postfix", paced.SmtpSender(running.port), {"service": (running.pid,)})
    store = stack.enter_context(stores.empty(NAMES[peer], folder=folder / "service", server=server))
    processes, name = postroad.API_AND_DELIVERY, f"Postroad, {NAMES[peer]}"
    if peer == "two-hosts":
        processes, name = TWO_HOSTS, f"{name}, accepted and delivered by two processes"
    work = postroad.Relay(next_hop_port=port, sign=False, processes=processes)
    service = stack.enter_context(postroad.running(folder / "service", database_url=store.url, work=work))
    processes_by_part = {"service": service.pids, **({"store": (store.pid,)} if store.pid else {})}
    return Server(name, paced.HttpSender(service.port, api_key=service.api_key), processes_by_part)


async def _run(
    server: Server, sink: timed_sink.TimedSink, *, messages: int, rate: int
) -> tuple[dict[str, tuple[float, float]], measure.Cost]:
    """When each message was due and accepted, and the cost; returns when all have arrived, or the limit is over."""
    sender = server.sender
    await sender.warm_up(CONNECTIONS)
    for number in range(WARM_UP_MESSAGES):
        await sender.send(f"9{number:011}")
    await asyncio.sleep(1)
    with measure.Window(server.processes, sample_seconds=LIMIT_SECONDS) as window:
        taken = await paced.send_at_rate(sender, messages=messages, rate=rate, seed=SEED)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LIMIT_SECONDS):
                await sink.is_complete.wait()
    return taken, window.cost()


def table(figures: typing.Iterable[Figure]) -> list[tuple[str, ...]]:
    """The head and a row for each server and rate."""
    head = ("peer", "messages/s", "accepted, p50 ms", "p95", "p99", "at the destination, p50 ms", "p95", "p99")
    return [
        (*head, "CPU µs, service", "CPU µs, store", "fdatasync ms", "messages", "not arrived"),
        *(
            (
                figure.peer,
                f"{figure.rate:,}",
                *(goal_checks.number(value) for value in (*figure.accepted, *figure.delivered)),
                *(_microseconds(figure, part) for part in ("service", "store")),
                goal_checks.number(figure.sync),
                f"{figure.messages:,}",
                str(figure.missing),
            )
            for figure in figures
        ),
    ]


def _microseconds(one: Figure, part: str) -> str:
    return f"{one.cpu_microseconds[part]:,.0f}" if part in one.cpu_microseconds else "-"


def main() -> int:
    """Measure, print, write; 0 when all is well, 1 when a message is lost, 2 when something is missing."""
    options = _options()
    figures: list[Figure] = []
    gaps: list[str] = []
    with session.work_folder(options.folder) as folder:
        facts = machine.facts() | {"file system": machine.file_system(folder)}
        gaps += session.in_memory(folder)
        with session.database(folder, facts, wanted=bool(ON_POSTGRES & set(options.peers))) as server:
            for rate in options.rates:
                for peer in options.peers:
                    with failures.into(gaps, what=f"{peer} at {rate} a second did not end"):
                        run = measure_one(peer, folder, rate=rate, seconds=options.seconds, server=server)
                        figures.append(paced.run(run))
                        print(*table(figures[-1:])[1], flush=True)
    goals = [goal for figure in figures for goal in figure.goals()]
    conditions = (
        f"Messages of 5 KB at random moments, {options.seconds:g} s at each rate, unsigned, over {CONNECTIONS} to "
        f"{paced.MAX_CONNECTIONS} connections, the one that was used last first; the destination is on the same "
        "machine.\n"
    )
    lines = [
        "# Latency at ordinary load\n",
        conditions,
        *report.markdown_table(table(figures)),
        "",
        *(f"- {goal.sentence()}" for goal in goals),
        *(f"- {gap}" for gap in gaps),
        "",
        *report.markdown_table([("fact", "value"), *facts.items()]),
        "",
    ]
    print("\n".join(lines))
    options.results.mkdir(parents=True, exist_ok=True)
    reported = {
        "facts": facts,
        "rows": table(figures),
        "figures": [dataclasses.asdict(figure) for figure in figures],
        "goals": [dataclasses.asdict(goal) for goal in goals],
    }
    (options.results / "latency.md").write_text("\n".join(lines))
    (options.results / "latency.json").write_text(json.dumps(reported, indent=2) + "\n")
    return 1 if any(figure.missing for figure in figures) else 2 if gaps else 0


def _options() -> argparse.Namespace:
    words = session.parser("latency", "Latency at ordinary load.", peers=PEERS, rounds=1)
    words.add_argument("--rates", type=int, nargs="+", default=[10, 100, 300, 1000], help="messages a second")
    words.add_argument("--seconds", type=float, default=20.0, help="seconds at each rate (20)")
    return words.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
