"""`make bench-accept`: how many messages a second are durably accepted by Postroad and its peers, in the same run.

Postroad takes 5 KB text+html messages over 256 persistent HTTP connections, on SQLite and on PostgreSQL; the mail
servers of `peers/mail_servers.py` take the same content over 20 persistent SMTP sessions. An answer counts when the
message is on disk: SQLite `synchronous=FULL`, PostgreSQL `fsync` and `synchronous_commit`, the synced queue files of
the others; a row says so where a peer syncs less. Rounds alternate between the peers, each on an empty store, and
medians are reported. After each round the stored messages are counted: one for each answer, or the round has a problem.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import sys
import typing

from benchmarks import failures, figures, goal_checks, machine, measure, message, report, session
from benchmarks.injectors import http, injection, smtp
from benchmarks.peers import mail_servers, postfix, postgres, postroad

GOAL = 3.0
REFERENCE = postfix.NAME
PEERS = ("sqlite", "postgresql", *mail_servers.ALL)
# Enough for a mail server to have all its workers and for a rate to be seen.
SMTP_WARM_UP_MESSAGES = 2000


class Bench:
    """One run: its options, its folder, and the servers that live through all its rounds."""

    def __init__(
        self, options: argparse.Namespace, *, folder: pathlib.Path, database: postgres.Postgres | None
    ) -> None:
        self._options = options
        self._folder = folder
        self._database = database

    def measure(self, peer: str) -> figures.Round:
        """One round of one peer, on an empty store and a quiet disk."""
        os.sync()
        if peer in mail_servers.ALL:
            return self._smtp_round(peer)
        if peer == "sqlite":
            return self._postroad_round("Postroad, SQLite", database_url=f"sqlite:///{self._folder}/service/mail.db")
        assert self._database is not None
        with self._database.database("postroad_bench") as url:
            return self._postroad_round("Postroad, PostgreSQL", database_url=url, store_pid=self._database.pid)

    def _postroad_round(self, name: str, *, database_url: str, store_pid: int | None = None) -> figures.Round:
        with postroad.running(self._folder / "service", database_url=database_url) as service:
            warm_up = http.send(self._requests(service, run="warm-up"), seconds=self._options.warm_up, expect=202)
            processes = {"service": service.pids} | ({"store": (store_pid,)} if store_pid is not None else {})
            target = self._requests(service, run="measured")
            with measure.Window(processes, seconds=self._options.seconds + http.EDGE_SECONDS) as window:
                sent = http.send(target, seconds=self._options.seconds)
            stored, findings = service.verify()
        accepted = warm_up.sent - warm_up.failed + sent.sent - sent.failed
        problems = [*_differences(answered=accepted, stored=stored), *findings]
        if warm_up.failed or sent.failed:
            problems.append(f"{warm_up.failed} answers of the warm-up and {sent.failed} of the round were not 202")
        return _figures(name, sent=sent, window=window, problems=problems)

    def _requests(self, service: postroad.Postroad, *, run: str) -> http.Target:
        path = self._folder / f"{run}.request"
        headers = {
            "Authorization": f"Bearer {service.api_key}",
            "Content-Type": "application/json",
            "Idempotency-Key": f"{run}-{message.SERIAL}",
        }
        http.write_request(path, target="/emails", headers=headers, body=message.as_json(self._options.content))
        return http.Target(port=service.port, request=path, connections=self._options.connections)

    def _smtp_round(self, peer: str) -> figures.Round:
        mime = self._folder / "message.eml"
        mime.write_bytes(message.as_mime(self._options.content))
        sessions = self._options.sessions
        with mail_servers.ALL[peer].running(self._folder / peer) as server:
            warm_up = smtp.send(port=server.port, messages=SMTP_WARM_UP_MESSAGES, sessions=sessions, mime=mime)
            count = max(int(warm_up.accepts_per_second * self._options.seconds), 1)
            with measure.Window({"service": (server.pid,)}) as window:
                sent = smtp.send(port=server.port, messages=count, sessions=sessions, mime=mime)
            problems = _differences(answered=warm_up.sent + sent.sent, stored=server.stored())
        return _figures(mail_servers.ALL[peer].NAME, sent=sent, window=window, problems=problems)


def _figures(
    peer: str, *, sent: injection.Injection, window: measure.Window, problems: typing.Sequence[str]
) -> figures.Round:
    return figures.of_round(
        peer,
        messages_per_second=sent.accepts_per_second,
        sent=sent,
        cost=window.cost(),
        cores=os.cpu_count() or 1,
        problems=problems,
    )


def _differences(*, answered: int, stored: int) -> list[str]:
    if answered == stored:
        return []
    return [f"{answered} messages were accepted, but {stored} are stored"]


def main() -> int:
    """Run, print, write; 0 when all is well, 1 when a message was refused or lost, 2 when a peer is missing."""
    options = _options()
    gaps, peers = _runnable(options.peers)
    for gap in gaps:
        print(f"!!! INCOMPLETE: {gap}", file=sys.stderr)
    if not peers:
        return 2
    with session.work_folder(options.folder) as folder:
        gaps += session.in_memory(folder)
        result = _run(options, peers=peers, folder=folder, gaps=gaps)
    return session.finish(result, folder=options.results, name="accept")


def _run(
    options: argparse.Namespace, *, peers: typing.Sequence[str], folder: pathlib.Path, gaps: list[str]
) -> report.Report:
    facts = machine.facts() | {"file system": machine.file_system(folder)}
    rounds = []
    with contextlib.ExitStack() as stack:
        wanted = "postgresql" in peers
        database = stack.enter_context(session.database(folder, facts, wanted=wanted))
        facts |= mail_servers.facts(peer for peer in peers if peer in mail_servers.ALL)
        bench = Bench(options, folder=folder, database=database)
        for number in range(1, options.rounds + 1):
            for peer in peers:
                with failures.into(gaps, what=f"round {number} of {peer} did not end"):
                    one = bench.measure(peer)
                    rounds.append(one)
                    print(f"round {number}, {one.peer}: {one.messages_per_second:,.0f}/s", *one.problems, flush=True)
    summaries = figures.summarise(rounds, reference=REFERENCE)
    return report.Report(
        title="Durable accepts over HTTP",
        description=_description(options),
        facts=facts,
        summaries=summaries,
        rounds=rounds,
        gaps=gaps,
        goals=goal_checks.of_ratios(summaries, reference=REFERENCE, times=GOAL),
    )


def _description(options: argparse.Namespace) -> str:
    sizes = (
        f"{len(message.as_json(options.content)):,} bytes of JSON, {len(message.as_mime(options.content)):,} of MIME"
    )
    return (
        f"Messages durably accepted, a second: text+html ({options.content}; {sizes}). Postroad over HTTP with "
        f"{options.connections} persistent connections and a new Idempotency-Key each (wrk, one thread); the others "
        f"over SMTP with {options.sessions} persistent sessions, mail held in the queue (smtp-source). Medians of "
        f"{options.rounds} alternating rounds of {options.seconds:g} s, after a warm-up, each on an empty store. "
        "Every answer was checked against the store. Memory is the peak of the service and its store, shared pages "
        "counted once."
    )


def _runnable(wanted: typing.Sequence[str]) -> tuple[list[str], list[str]]:
    gaps = []
    peers = list(wanted)
    if shutil.which("wrk") is None:
        gaps.append("wrk is not installed, so Postroad was not measured: apt-get install wrk")
        peers = [peer for peer in peers if peer in mail_servers.ALL]
    if reason := smtp.missing():
        gaps.append(f"no mail server was measured. {reason}")
        peers = [peer for peer in peers if peer not in mail_servers.ALL]
    absent = mail_servers.gaps(peer for peer in peers if peer in mail_servers.ALL)
    return [*gaps, *absent.values()], [peer for peer in peers if peer not in absent]


def _options() -> argparse.Namespace:
    parser = session.parser("accept", "Durable accepts over HTTP.", peers=PEERS)
    parser.add_argument("--seconds", type=float, default=10, help="sending time of a round (10)")
    parser.add_argument("--warm-up", type=float, default=3, help="sending time before it (3)")
    parser.add_argument("--connections", type=int, default=256, help="persistent HTTP connections (256)")
    session.add_mail_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
