"""`make bench-codes`: how long a login code takes from the POST to the destination while a million messages wait.

The backlog is ready, belongs to the account that sends the codes, and goes to the same destination through the same
connections, which stay busy with it: a code has nobody else's queue to be in. Codes are posted at an even pace, one by
one, with an `expires_in` of five minutes. The clock runs from the first byte of the POST to the final dot at the
destination, which is a server in this process. The first row has no backlog.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import http.client
import json
import pathlib
import time
import typing

from benchmarks import backlog, goal_checks, machine, report, session
from benchmarks.peers import postroad, stores, timed_sink

DOMAIN = "codes.example.com"
MIME = f"From: shop@{DOMAIN}\r\nSubject: News\r\n\r\nNothing urgent.\r\n"
EXPIRES_IN = 300
GOAL_MILLISECONDS = 1000.0
# What is not there by then is lost.
LIMIT_SECONDS = 60.0
# Before codes are sent, the service has to be busy with the backlog.
WARM_UP_SECONDS = 5.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """How long codes took, in milliseconds, beside how many that waited, and how many of those were sent meanwhile."""

    waiting: int
    milliseconds: tuple[float, ...]
    accepted: tuple[float, ...]  # of these until the 202
    missing: int
    rate: float
    in_doubt: bool

    def goal(self) -> goal_checks.Goal:
        """The 99th percentile beside its limit."""
        return goal_checks.Goal(
            peer=f"{self.waiting:,} waiting",
            value=report.percentile(self.milliseconds, 99),
            side="at most",
            limit=GOAL_MILLISECONDS,
            unit="ms",
            in_doubt=self.in_doubt,
        )


async def measure(folder: pathlib.Path, *, waiting: int, codes: int, pause: float) -> Figure:
    """Codes beside so many messages that wait."""
    sink, in_doubt = timed_sink.TimedSink(prefix="code-", expected=codes), machine.is_busy()
    async with await asyncio.start_server(sink.serve, "127.0.0.1", 0) as server:
        port: int = server.sockets[0].getsockname()[1]
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(stores.empty("SQLite", folder=folder / "service", server=None))
            keys: list[str] = []

            def prepare(configuration: pathlib.Path) -> None:
                domain = "'waiting.example.net'"
                backlog.queue_ready(store, messages=max(1, waiting), domain=domain, mime=MIME)
                keys.append(_sender(configuration))

            running = postroad.running(
                folder / "service",
                database_url=store.url,
                work=postroad.Relay(next_hop_port=port, sign=False),
                prepare=prepare,
            )
            service = await asyncio.to_thread(stack.enter_context, running)
            try:
                milliseconds, accepted, rate = await _send(sink, service, key=keys[0], codes=codes, pause=pause)
                return Figure(
                    waiting=waiting,
                    milliseconds=milliseconds,
                    accepted=accepted,
                    missing=codes - len(milliseconds),
                    rate=rate,
                    in_doubt=in_doubt or 0 < waiting <= sink.count,  # nothing waited any more
                )
            finally:
                await asyncio.to_thread(stack.close)


def _sender(configuration: pathlib.Path) -> str:
    """A key of the account whose mail waits."""
    account = ("--account", backlog.ACCOUNT)
    postroad.operate(configuration, "credits", "add", *account, "--amount", str(postroad.CREDITS))
    postroad.operate(configuration, "domain", "add", *account, "--verified", DOMAIN)
    return str(postroad.operate(configuration, "apikey", "create", *account)["api_key"]["key"])


async def _send(
    sink: timed_sink.TimedSink, service: postroad.Postroad, *, key: str, codes: int, pause: float
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """The milliseconds of the codes that arrived, those until the 202, and other messages a second meanwhile."""
    await asyncio.sleep(WARM_UP_SECONDS)
    sent: dict[str, float] = {}
    accepted: list[float] = []
    before, began = sink.count, time.perf_counter()
    for number in range(codes):
        email = f"code-{number}@waiting.example.net"
        sent[email] = time.perf_counter()
        await asyncio.to_thread(_post, service.port, key, email)
        accepted.append(1000 * (time.perf_counter() - sent[email]))
        await asyncio.sleep(max(0.0, began + (number + 1) * pause - time.perf_counter()))
    rate = (sink.count - before - len(sink.arrived)) / (time.perf_counter() - began)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LIMIT_SECONDS):
            await sink.is_complete.wait()
    taken = tuple(sorted(1000 * (at - sent[email]) for email, at in sink.arrived.items()))
    return taken, tuple(accepted), rate


def _post(port: int, key: str, email: str) -> None:
    code = {"from": f"shop@{DOMAIN}", "to": email, "subject": "Your code", "text": "123456", "expires_in": EXPIRES_IN}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Idempotency-Key": email}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
    with contextlib.closing(connection):
        connection.request("POST", "/emails", json.dumps(code).encode(), headers)
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.ACCEPTED:
            raise RuntimeError(f"a code was not accepted: {answer.status} {answer.read().decode()}")


def table(figures: typing.Sequence[Figure]) -> list[tuple[str, ...]]:
    """The head and a row for each length of the queue."""
    head = ("waiting", "codes", "p50 ms", "p99 ms", "longest ms", "until the 202, p50 ms", "p99 ms", "not arrived")
    return [
        (*head, "messages of the backlog a second"),
        *(
            (
                f"{figure.waiting:,}",
                str(len(figure.milliseconds)),
                *(f"{report.percentile(figure.milliseconds, percent):,.0f}" for percent in (50, 99)),
                f"{figure.milliseconds[-1]:,.0f}",
                *(f"{report.percentile(figure.accepted, percent):,.0f}" for percent in (50, 99)),
                str(figure.missing),
                f"{figure.rate:,.0f}",
            )
            for figure in figures
        ),
    ]


def main() -> int:
    """Measure, print, write; 0 when all is well, 1 when a code was lost, or late on a quiet machine."""
    options = _options()
    figures: list[Figure] = []
    with session.work_folder(options.folder) as folder:
        facts = machine.facts() | {"file system": machine.file_system(folder)}
        for waiting in options.waiting:
            figures.append(asyncio.run(measure(folder, waiting=waiting, codes=options.codes, pause=options.pause)))
            print(*table(figures[-1:])[1], flush=True)
    goals = [figure.goal() for figure in figures]
    lines = [
        "# Login codes beside mail that waits\n",
        _description(options),
        *report.markdown_table(table(figures)),
        "",
        *(f"- {goal.sentence()}" for goal in goals),
        "",
        *report.markdown_table([("fact", "value"), *facts.items()]),
        "",
    ]
    print("\n".join(lines))
    options.results.mkdir(parents=True, exist_ok=True)
    reported = {"facts": facts, "rows": table(figures), "goals": [dataclasses.asdict(goal) for goal in goals]}
    (options.results / "codes.md").write_text("\n".join(lines))
    (options.results / "codes.json").write_text(json.dumps(reported, indent=2) + "\n")
    return (
        0
        if all(goal.is_reached or goal.in_doubt for goal in goals) and not any(figure.missing for figure in figures)
        else 1
    )


def _description(options: argparse.Namespace) -> str:
    return (
        f"A code every {options.pause:g} s, {options.codes} in all, on SQLite, of the account whose mail waits, to the "
        "same destination over the same 20 connections, unsigned. From the POST to the final dot at the destination.\n"
    )


def _options() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m benchmarks.codes", description="Login codes beside a backlog.")
    words.add_argument("--waiting", type=int, nargs="+", default=[0, 250_000, 1_000_000], help="messages that wait")
    words.add_argument("--codes", type=int, default=300, help="codes for each of them (300)")
    words.add_argument("--pause", type=float, default=0.2, help="seconds from one code to the next (0.2)")
    words.add_argument("--folder", type=pathlib.Path, help="a folder on the disk to measure (the temporary one)")
    words.add_argument("--results", type=pathlib.Path, default=session.RESULTS, help="where codes.md and .json go")
    return words.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
