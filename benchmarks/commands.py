"""`make bench-cli`: how long short commands take, from the start of the process to its end.

What a developer or an operator waits for when asking for help or for a list. Commands over HTTP ask a server of this
process, which responds at once: the time of the service itself is another benchmark. The commands alternate, each in a
process of its own; the first turn only fills the caches of the system. CPU time is beside the time on the clock: where
it is much less, the command waited for other programs, and the run proves nothing.
"""

import argparse
import collections.abc
import contextlib
import dataclasses
import http.server
import json
import os
import pathlib
import statistics
import threading
import time
import typing

from benchmarks import goal_checks, machine, report, session
from benchmarks.peers import postroad, stores

# The command, and how long it may take.
COMMANDS: dict[str, float] = {
    "--version": 150.0,
    "--help": 150.0,
    "account --help": 150.0,
    "messages --help": 150.0,
    "send --help": 150.0,
    "messages": 150.0,
    "send --from a@example.com --to b@example.net --subject x --text x": 150.0,
    "account list": 400.0,
}
OF_AN_INSTALLATION = ("account list",)
# A command that alone has the machine waits only for the disk.
NOISY_RATIO = 1.25


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A command and its milliseconds."""

    command: str
    best: float
    median: float
    cpu: float

    def goal(self) -> goal_checks.Goal:
        """The median beside its limit."""
        return goal_checks.Goal(
            peer=f"postroad {self.command}",
            value=self.median,
            side="at most",
            limit=COMMANDS[self.command],
            unit="ms",
            in_doubt=self.median > NOISY_RATIO * self.cpu,
        )


class Responder(http.server.BaseHTTPRequestHandler):
    """Responds to every request of a command in the same way."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Read the request and respond."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b'{"id": "em_1", "recipient_count": 1, "messages": [], "next_cursor": null}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the name of the base class

    def log_message(self, *_: object) -> None:
        """Nothing goes to the log."""


@contextlib.contextmanager
def responding() -> collections.abc.Iterator[str]:
    """The URL of a server on loopback, until the block ends."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Responder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def measure(configuration: pathlib.Path, *, url: str, times: int) -> list[Figure]:
    """Run each command so many times, in turns."""
    found: dict[str, list[tuple[float, float]]] = {command: [] for command in COMMANDS}
    for turn in range(times + 1):
        for command, runs in found.items():
            words = [*postroad.PROGRAM, *command.split()]
            words += ["--config", str(configuration)] if command in OF_AN_INSTALLATION else []
            one = _run(words, {**os.environ, "POSTROAD_URL": url, "POSTROAD_API_KEY": "pr_live_benchmark"})
            if turn > 0:
                runs.append(one)
    return [
        Figure(
            command=command,
            best=min(clock for clock, _ in runs),
            median=statistics.median(clock for clock, _ in runs),
            cpu=statistics.median(cpu for _, cpu in runs),
        )
        for command, runs in found.items()
    ]


def _run(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """The milliseconds of one process, on the clock and of CPU."""
    silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    began = time.perf_counter()
    _, status, used = os.wait4(os.posix_spawn(words[0], words, environment, file_actions=silent), 0)
    clock = time.perf_counter() - began
    if status != 0:
        raise RuntimeError(f"{' '.join(words)} failed")
    return 1000 * clock, 1000 * (used.ru_utime + used.ru_stime)


def table(figures: typing.Sequence[Figure]) -> list[tuple[str, ...]]:
    """The head and a row for each command."""
    rows = [
        (f"`postroad {figure.command}`", *(f"{value:.0f}" for value in (figure.best, figure.median, figure.cpu)))
        for figure in figures
    ]
    return [("command", "best ms", "median ms", "CPU ms"), *rows]


def main() -> int:
    """Measure, print, write; 0 when all is well, 1 when a command was late in a quiet run."""
    options = _options()
    with session.work_folder(options.folder) as folder:
        facts = machine.facts() | {"file system": machine.file_system(folder)}
        with (
            stores.empty("SQLite", folder=folder / "service", server=None) as store,
            postroad.installed(folder / "service", database_url=store.url) as installation,
            responding() as url,
        ):
            figures = measure(installation.configuration, url=url, times=options.times)
    goals = [figure.goal() for figure in figures]
    lines = [
        "# Short commands\n",
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
    (options.results / "commands.md").write_text("\n".join(lines))
    (options.results / "commands.json").write_text(json.dumps(reported, indent=2) + "\n")
    return 0 if all(goal.is_reached or goal.in_doubt for goal in goals) else 1


def _options() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m benchmarks.commands", description="The time of short commands.")
    words.add_argument("--times", type=int, default=15, help="runs of each command (15)")
    words.add_argument("--folder", type=pathlib.Path, help="a folder on the disk to measure (the temporary one)")
    words.add_argument("--results", type=pathlib.Path, default=session.RESULTS, help="where commands.md and .json go")
    return words.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
